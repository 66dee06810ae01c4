"""What Fetch remembers and waits for. The handler is handlers/fetch.py.

fetch_sessions      the partitions of a consumer between its requests (KIP-227)
fetch_waiters       those who wait for records of a log
down_conversion     records for clients older than batches
fetching            all of these, as one part of the broker
"""
