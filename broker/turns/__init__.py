"""Divides the time of the event loop among connections, so that no client holds up the others.

All clients share one loop, so a turn of it must be short, whatever a client has sent. One mechanism
sees to that. Each kind of work that may be long has a TurnQueue with a limit: so much time a turn
of the loop spends on it. What comes after that waits in the queue, and the next turns serve it in
the order of its arrival, for the same time each. Work that has no queue is either short, or done by
a thread or another process.

    queue          what waits in it                                        time in a turn
    group_turns    connections with a request of a group member            1 ms
    large_turns    connections with a request of 256 KiB or more, or with  one of them
                   more small requests than 1 ms is enough for;
                   requests that are served in slices
    send_turns     connections with an answer that the socket takes, and   1 ms
                   that is sent from files (network/answer_sender)
    share_fetches  ShareFetches that have waited, and that records have    1 ms
                   woken (shares/waiting)

A request with many entries is cut into slices (slices.py), which wait in large_turns one by one. A
decision of the group coordinator that turns out to be long is cut in the same way (group_slices).
Reading is limited by bytes: a connection that brought 512 KiB is not read for one turn.

So a turn is at most the sum of these limits and one step of each: about 4 ms, and less than 1 ms
when nobody sends what is large.

Reading order: turn_queue, group_turns, large_turns, slices (with full_collections, seen
and message_parts), group_slices, turns.
"""
