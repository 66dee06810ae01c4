"""Keys and values of the internal logs, control records, the consumer protocol."""
