"""What Fetch remembers and waits for. The handler is handlers/fetch.py.

fetch_sessions      the partitions of a consumer between its requests (KIP-227)
fetch_waiters       the requests that wait for records of a log
down_conversion     records for clients older than batches
fetching            groups all of these
"""
