"""Benchmarks, printed and never asserted: `python -m tests.bench`."""
