"""Time in the coordinators: moments on two clocks, and a queue of deadlines.

No code here reads a clock; the time is an argument.

A Deadline belongs to what expires (a member, a phase of a rebalance). It has a time and a function
to call then. Moving it later or cancelling it only writes to the object: its heap entry stays and
is checked again when its time comes. So a heartbeat, which may move a session's end ten thousand
times before it is reached, costs one assignment; the heap is changed once per session timeout.
Kafka has a hashed timing wheel for this (SystemTimer), made for cancelling in O(1) across threads.

A member or group that is removed must cancel its deadlines: some find their subject by name, and
would expire a later one of the same name. A subject that is in a shard names the shard, because its
name may hash to another one by now (shards.py).

A call that fails is logged and repeated later. It does not affect other deadlines.
Kafka: CoordinatorTimerImpl.
"""

import heapq
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any, Generic, TypeVar

from msgspec import Struct

S = TypeVar("S")
K = TypeVar("K")

logger = logging.getLogger("odradek")

NEVER_MS = -(1 << 63)
# The delay before a call that failed is repeated. No failure is expected: each is a bug, or memory
# is short.
RETRY_FAILED_MS = 10_000


class Now(Struct, frozen=True, gc=False):
    """One moment on two clocks, in milliseconds.

    `wall_ms` is the time since 1970, for timestamps in records. `timer_ms` is a time on a monotonic
    clock, for deadlines. That clock never jumps: a laptop that wakes up, or a corrected wall clock,
    must not expire every member.
    """

    wall_ms: int
    timer_ms: int


class TimerMoment:
    """A journaled wall-clock time converted to the timer clock, by which its age is measured.

    It is converted once, when it is noted: when it is written, or read after a restart. Later
    changes of the wall clock have no effect. A time in the future counts as now.
    """

    __slots__ = ("_wall_ms", "timer_ms")

    def __init__(self) -> None:
        self._wall_ms = NEVER_MS
        self.timer_ms = NEVER_MS

    def note(self, wall_ms: int, now: Now) -> None:
        """Convert `wall_ms` if it differs from the last one; NEVER_MS or 0: there is no time."""
        if wall_ms == self._wall_ms:
            return
        self._wall_ms = wall_ms
        age_ms = max(now.wall_ms - wall_ms, 0)
        self.timer_ms = now.timer_ms - age_ms if wall_ms > 0 else NEVER_MS


@dataclass(slots=True, eq=False)
class Deadline(Generic[S]):
    """A call of `expire(subject, now)` at `at_ms` of the timer clock; None: it is not scheduled.

    `queued_at_ms` is the time of its valid heap entry; None: it has none. Deadlines of one kind
    share their `expire`: a closure for each would take three times the memory.
    """

    expire: Callable[[S, Now], None]
    subject: S
    at_ms: int | None = None
    queued_at_ms: int | None = None

    def cancel(self) -> None:
        """Do not call `expire`, unless it is scheduled again."""
        self.at_ms = None


class DeadlineQueue:
    """Deadlines of all kinds, ordered by their time on the timer clock."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Deadline[Any]]] = []
        self._order = count()
        # While `expire_due` runs: the earliest time for a deadline that is scheduled meanwhile.
        self._next_pass_ms: int | None = None

    def schedule(self, deadline: Deadline[Any], at_ms: int) -> None:
        """Schedule `deadline` for `at_ms`, earlier or later than it was scheduled before."""
        deadline.at_ms = at_ms
        if deadline.queued_at_ms is None or at_ms < deadline.queued_at_ms:
            self._push(deadline, at_ms)

    @property
    def next_deadline_ms(self) -> int | None:
        """The time to call `expire_due`: that of the earliest deadline, or before it."""
        while self._heap:
            queued_at_ms, _, deadline = self._heap[0]
            superseded = deadline.queued_at_ms != queued_at_ms
            if not superseded and deadline.at_ms is not None:
                return queued_at_ms
            # Cancelled or superseded: no reason to wake up.
            heapq.heappop(self._heap)
            if not superseded:
                deadline.queued_at_ms = None
        return None

    def expire_due(self, now: Now, goes_on: Callable[[], bool] = lambda: True) -> None:
        """Call the deadlines that are due at `now`, earliest first, while `goes_on` says so.

        A deadline that is scheduled meanwhile is called at least 1 ms later: one that schedules
        itself for the present moment must not keep this loop running. One whose call fails is
        called again later, unless the call has scheduled or cancelled it.
        """
        self._next_pass_ms = now.timer_ms + 1
        for deadline in self._due(now.timer_ms):
            if deadline is not None:
                self._call(deadline, now)
            if not goes_on():
                break
        self._next_pass_ms = None

    def _call(self, deadline: Deadline[Any], now: Now) -> None:
        again_ms = None
        try:
            deadline.expire(deadline.subject, now)
        except Exception:
            logger.exception("a deadline failed and is tried again: %r", deadline.subject)
            again_ms = now.timer_ms + RETRY_FAILED_MS
        if deadline.at_ms is not None and deadline.queued_at_ms is None:
            deadline.at_ms = None  # else the call has cancelled or scheduled it
            if again_ms is not None:
                self.schedule(deadline, again_ms)

    def _due(self, now_ms: int) -> Iterator[Deadline[Any] | None]:
        """Yield the deadlines that are due, and None for each entry that is out of date.

        Ten thousand sessions that heartbeats have extended take as long as some that have expired.
        """
        while self._heap and self._heap[0][0] <= now_ms:
            queued_at_ms, _, deadline = heapq.heappop(self._heap)
            if deadline.queued_at_ms != queued_at_ms:
                yield None  # it was scheduled for an earlier time, which has its own entry
                continue
            deadline.queued_at_ms = None
            if deadline.at_ms is None:
                yield None
            elif deadline.at_ms > now_ms:
                self._push(deadline, deadline.at_ms)
                yield None
            else:
                yield deadline

    def __len__(self) -> int:
        """The number of heap entries, stale ones included."""
        return len(self._heap)

    def _push(self, deadline: Deadline[Any], at_ms: int) -> None:
        if self._next_pass_ms is not None:
            at_ms = max(at_ms, self._next_pass_ms)
        deadline.queued_at_ms = at_ms
        heapq.heappush(self._heap, (at_ms, next(self._order), deadline))


class KeyedDeadlines(Generic[K]):
    """The deadlines of one kind, by key. One that was called or cancelled is dropped."""

    def __init__(self, queue: DeadlineQueue, expire: Callable[[K, Now], int | None]) -> None:
        """`expire` returns the timer time at which to call it again; None: never."""
        self._queue = queue
        self._expire = expire
        self._by_key: dict[K, Deadline[K]] = {}
        self._bound_on_due = self._on_due  # one object for all of them

    def schedule(self, key: K, at_ms: int) -> None:
        """Schedule the key's deadline for `at_ms`; one that exists is moved."""
        deadline = self._by_key.get(key)
        if deadline is None:
            deadline = self._by_key[key] = Deadline(self._bound_on_due, key)
        self._queue.schedule(deadline, at_ms)

    def schedule_if_absent(self, key: K, at_ms: int) -> None:
        """Schedule the key's deadline unless it has one."""
        if key not in self:
            self.schedule(key, at_ms)

    def schedule_no_later(self, key: K, at_ms: int) -> None:
        """Schedule the key's deadline for `at_ms`, unless it is earlier already."""
        deadline = self._by_key.get(key)
        if (
            deadline is None
            or deadline.queued_at_ms is None
            or deadline.at_ms is None
            or at_ms < deadline.at_ms
        ):
            self.schedule(key, at_ms)

    def cancel(self, key: K) -> None:
        """Cancel the key's deadline, if it has one."""
        deadline = self._by_key.pop(key, None)
        if deadline is not None:
            deadline.cancel()

    def __contains__(self, key: K) -> bool:
        """Whether the key has a deadline, other than one that is being called."""
        deadline = self._by_key.get(key)
        return deadline is not None and deadline.queued_at_ms is not None

    def __len__(self) -> int:
        return len(self._by_key)

    def _on_due(self, key: K, now: Now) -> None:
        deadline = self._by_key[key]  # it stays there if the call fails: the queue repeats it
        again_ms = self._expire(key, now)
        if again_ms is not None:
            self.schedule(key, again_ms)
        elif deadline.queued_at_ms is None and self._by_key.get(key) is deadline:
            del self._by_key[key]
