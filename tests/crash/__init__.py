"""Brokers that die in the middle of their work."""
