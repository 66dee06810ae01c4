"""One file per API: its request and its response, one class each for all versions."""
