"""Time in the coordinators: moments, and a queue of things to do at a time.

Nothing here has a clock; the time is an argument.

A Deadline belongs to what expires (a member, a phase of a rebalance) and says when, and what to do
then. Moving it later or cancelling it only writes to the object: its place in the heap stays, and
is looked at again when that moment comes. So a heartbeat, which moves a session's end by three
seconds ten thousand times before it is ever reached, costs an assignment; the heap is touched once
per session timeout. Kafka has a hashed timing wheel for this (SystemTimer), made for cancelling in
O(1) across threads.

What has gone must cancel its deadlines: a deadline knows its subject by name, and would end a
later one of the same name.
"""

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any, Generic, NamedTuple, TypeVar

S = TypeVar("S")
K = TypeVar("K")

NEVER_MS = -(1 << 63)


class Now(NamedTuple):
    """One moment on two clocks.

    Deadlines are on a clock that never jumps: a laptop that wakes up, or a corrected wall clock,
    must not expire every member. What is written down is wall-clock time.
    """

    wall_ms: int
    timer_ms: int


class TimerMoment:
    """The moment of a journaled wall time, on the timer clock: by that its age is measured.

    The wall clock is asked once, when the time is noted: as it is written, or read after a restart.
    What it does later changes nothing. A time that is yet to come counts as that moment.
    """

    __slots__ = ("_wall_ms", "timer_ms")

    def __init__(self) -> None:
        self._wall_ms = NEVER_MS
        self.timer_ms = NEVER_MS

    def note(self, wall_ms: int, now: Now) -> None:
        """Note what is journaled, if it is new; NEVER_MS, or 0: it has never been."""
        if wall_ms == self._wall_ms:
            return
        self._wall_ms = wall_ms
        age_ms = max(now.wall_ms - wall_ms, 0)
        self.timer_ms = now.timer_ms - age_ms if wall_ms > 0 else NEVER_MS


@dataclass(slots=True, eq=False)
class Deadline(Generic[S]):
    """At `at_ms` (None: never) `expire` is to be called with `subject` and the time.

    Deadlines of one kind share their `expire`: a closure each would take three times the memory.
    """

    expire: Callable[[S, Now], None]
    subject: S
    at_ms: int | None = None
    queued_at_ms: int | None = None

    def cancel(self) -> None:
        """It will not fall, until it is scheduled again."""
        self.at_ms = None


class DeadlineQueue:
    """Deadlines of all kinds in the order of time, by the timer clock."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Deadline[Any]]] = []
        self._order = count()
        # While deadlines fall, what is scheduled waits until then.
        self._next_pass_ms: int | None = None

    def schedule(self, deadline: Deadline[Any], at_ms: int) -> None:
        """Let `deadline` fall at `at_ms`, whether or not it was to fall before or after."""
        deadline.at_ms = at_ms
        if deadline.queued_at_ms is None or at_ms < deadline.queued_at_ms:
            self._push(deadline, at_ms)

    @property
    def next_deadline_ms(self) -> int | None:
        """When to call `expire_due`: never later than the earliest deadline, sometimes before."""
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

    def expire_due(self, now: Now) -> None:
        """Call what has ended by `now`, earliest first.

        What is scheduled meanwhile falls in a later pass, at least 1 ms after this one: a deadline
        that is set again for the present moment must not keep the caller from anything else.
        """
        self._next_pass_ms = now.timer_ms + 1
        for deadline in self._due(now.timer_ms):
            deadline.expire(deadline.subject, now)
        self._next_pass_ms = None

    def _due(self, now_ms: int) -> Iterator[Deadline[Any]]:
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
            yield deadline

    def __len__(self) -> int:
        """How many entries the heap holds, stale ones included."""
        return len(self._heap)

    def _push(self, deadline: Deadline[Any], at_ms: int) -> None:
        if self._next_pass_ms is not None:
            at_ms = max(at_ms, self._next_pass_ms)
        deadline.queued_at_ms = at_ms
        heapq.heappush(self._heap, (at_ms, next(self._order), deadline))


class KeyedDeadlines(Generic[K]):
    """The deadlines of one kind, found by a key. What has fallen or is cancelled is forgotten."""

    def __init__(self, queue: DeadlineQueue, expire: Callable[[K, Now], int | None]) -> None:
        """`expire` returns when it is to be called again, in timer time; None: it is done."""
        self._queue = queue
        self._expire = expire
        self._by_key: dict[K, Deadline[K]] = {}
        self._fall = self._fell  # one object for all of them

    def schedule(self, key: K, at_ms: int) -> None:
        """Let the key's deadline fall at `at_ms`, whether or not there was one."""
        deadline = self._by_key.get(key)
        if deadline is None:
            deadline = self._by_key[key] = Deadline(self._fall, key)
        self._queue.schedule(deadline, at_ms)

    def schedule_if_absent(self, key: K, at_ms: int) -> None:
        """The same, unless there is one."""
        if key not in self._by_key:
            self.schedule(key, at_ms)

    def cancel(self, key: K) -> None:
        """The key's deadline will not fall, if there is one."""
        deadline = self._by_key.pop(key, None)
        if deadline is not None:
            deadline.cancel()

    def __len__(self) -> int:
        return len(self._by_key)

    def _fell(self, key: K, now: Now) -> None:
        del self._by_key[key]
        again_ms = self._expire(key, now)
        if again_ms is not None:
            self.schedule(key, again_ms)
