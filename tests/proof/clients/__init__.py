"""Programs whose histories are checked, one for each client; task.py says what they do."""
