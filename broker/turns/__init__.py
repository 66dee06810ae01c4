"""Divides the time of the event loop among connections, so that no client holds up the others.

All clients share one loop, so a turn of it must be short, whatever a client has sent:

- slices: a request with many entries is served in slices, with other requests in between.
- large_turns: each turn of the loop serves one request of many bytes, or one slice.
- group_turns: each turn serves the requests of group members for a millisecond.

Reading order: group_turns, large_turns, slices (with full_collections), turns.
"""
