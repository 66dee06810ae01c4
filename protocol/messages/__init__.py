"""The requests and responses: one file for each API, one class for all versions of a message."""
