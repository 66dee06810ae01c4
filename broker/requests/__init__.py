"""From a frame to the handler of its API, and what handlers share while they serve it.

Reading order: session, context, dispatch; then what a request may wait for or use (fetch_sessions,
fetch_waiters, down_conversion, offsets_topic, lost_writes).
"""
