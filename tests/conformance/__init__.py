"""Unmodified clients of other people, against a broker in its own process."""
