"""Declares the records of the internal logs, control records, and the consumer protocol."""
