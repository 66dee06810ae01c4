"""Whether a connection may serve its next request. It does no I/O.

Requests of a connection are served one after another, as Kafka does by muting channels. None is
served while one of these holds is set:

    hold       set when                                         cleared when
    ANSWER     the current request waits: a Fetch for records,  its answer is there
               a JoinGroup for other members, an fsync
    TURN       the next request waits for a turn of the loop    the turn has come, or FINISHING
    THROTTLE   the client has exceeded a quota (KIP-219)        that time is over, or FINISHING
    UNSENT     the socket did not take the whole answer         it has taken the last byte
    FINISHING  the connection ends after its current answer     never
    CLOSED     nothing more is read, served or sent             never

Several can be set at once: the answers before a request that waits may be unsent. A connection of
which FINISHING is the only hold is to be closed.

A client may end, by a close or a reset, while a hold is set. `has_ended` says so. The requests that
have arrived are then served as before, and the connection is closed when none is left, or as soon
as an answer cannot be sent. So no record of a producer with acks=0 is lost when it closes.
"""

from __future__ import annotations

ANSWER = 1
TURN = 2
THROTTLE = 4
UNSENT = 8
FINISHING = 16
CLOSED = 32


class ServingState:
    """The holds of a connection. Setting a hold twice is one hold."""

    __slots__ = ("has_ended", "holds")

    def __init__(self) -> None:
        self.holds = 0
        self.has_ended = False

    @property
    def must_close(self) -> bool:
        """Whether nothing is left to do but to close the connection."""
        return self.holds == FINISHING

    def hold(self, reason: int) -> None:
        """Serve no request until the reason is released."""
        self.holds |= reason

    def release(self, reason: int) -> None:
        """Clear a hold, if it is set."""
        self.holds &= ~reason

    def end(self) -> bool:
        """Note that the client has ended. Returns whether something is left to do."""
        self.has_ended = self.holds != 0 and not self.holds & CLOSED
        return self.has_ended

    def finish(self) -> None:
        """Serve no request any more."""
        self.release(TURN | THROTTLE)
        self.hold(FINISHING)
