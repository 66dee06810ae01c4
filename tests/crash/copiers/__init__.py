"""Programs that copy one topic to another in transactions, one for each client."""
