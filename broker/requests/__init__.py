"""Decodes frames, calls the handler of their API, and holds the state that handlers share.

Reading order: session, context, route, dispatch; then what handlers use or wait for
(fetch_sessions, fetch_waiters, down_conversion, internal_topic, lost_writes, modern_group_describe,
share_requests, share_state_requests).
"""
