"""Processes that walk records for the broker, so that its event loop keeps its latency."""
