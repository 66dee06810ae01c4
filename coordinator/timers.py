"""Deadlines without a clock: a queue of things to do at a time, which asks for the time each call.

A Deadline belongs to what expires (a member, a phase of a rebalance) and says when. Moving it later
or cancelling it only writes to the object: its place in the heap stays, and is looked at again when
that moment comes. So a heartbeat, which moves a session's end by three seconds ten thousand times
before it is ever reached, costs an assignment; the heap is touched once per session timeout.
Kafka has a hashed timing wheel for this (SystemTimer), made for cancelling in O(1) across threads.
"""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(slots=True, eq=False)
class Deadline(Generic[T]):
    """Something that ends at `at_ms`, or not (None); `what` says what ends."""

    what: T
    at_ms: int | None = None
    queued_at_ms: int | None = None


class DeadlineQueue(Generic[T]):
    """Deadlines in the order of time; times are milliseconds of whatever clock the caller has."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Deadline[T]]] = []
        self._order = count()
        # While deadlines fall, what is scheduled waits until then.
        self._next_pass_ms: int | None = None

    def schedule(self, deadline: Deadline[T], at_ms: int) -> None:
        """Let `deadline` fall at `at_ms`, whether or not it was to fall before or after."""
        deadline.at_ms = at_ms
        if deadline.queued_at_ms is None or at_ms < deadline.queued_at_ms:
            self._push(deadline, at_ms)

    @staticmethod
    def cancel(deadline: Deadline[T]) -> None:
        """It will not fall, until it is scheduled again."""
        deadline.at_ms = None

    @property
    def next_deadline_ms(self) -> int | None:
        """When to call `due`: never later than the earliest deadline, sometimes before it."""
        while self._heap:
            queued_at_ms, _, deadline = self._heap[0]
            superseded = deadline.queued_at_ms != queued_at_ms
            if not superseded and deadline.at_ms is not None:
                return queued_at_ms
            # Cancelled or superseded: nobody need wake up for it.
            heapq.heappop(self._heap)
            if not superseded:
                deadline.queued_at_ms = None
        return None

    def due(self, now_ms: int) -> Iterator[T]:
        """What has ended by `now_ms`, earliest first.

        What is scheduled meanwhile falls in a later pass, at least 1 ms after this one: a deadline
        that is set again for the present moment must not keep the caller from anything else.
        """
        self._next_pass_ms = now_ms + 1
        while self._heap and self._heap[0][0] <= now_ms:
            queued_at_ms, _, deadline = heapq.heappop(self._heap)
            if deadline.queued_at_ms != queued_at_ms:
                continue  # it was scheduled for an earlier moment, which has its own entry
            deadline.queued_at_ms = None
            if deadline.at_ms is None:
                continue
            if deadline.at_ms > now_ms:
                self._push(deadline, deadline.at_ms)
                continue
            deadline.at_ms = None
            yield deadline.what
        self._next_pass_ms = None

    def __len__(self) -> int:
        """How many entries the heap holds, stale ones included."""
        return len(self._heap)

    def _push(self, deadline: Deadline[T], at_ms: int) -> None:
        if self._next_pass_ms is not None:
            at_ms = max(at_ms, self._next_pass_ms)
        deadline.queued_at_ms = at_ms
        heapq.heappush(self._heap, (at_ms, next(self._order), deadline))
