"""Decodes frames, calls the handler of their API, and holds what several handlers use.

Reading order: context, route, answer, dispatch, timed_requests; then what handlers of more than one
API have in common (internal_topic, lost_writes, modern_group_describe, named_leaders,
share_requests, ...).
"""
