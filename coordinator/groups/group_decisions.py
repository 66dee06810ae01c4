"""Decides about groups in slices if a decision takes long: a large topology, or many tasks.

A decision reads the state of one group and changes nothing, so it may be interrupted and given up.
It is tried at once first. When that has taken a millisecond it begins again, in slices between
which other requests are served. It is committed only if its group has not changed meanwhile; else
it is made again.

While a group has such a decision, its other requests wait for it, as they wait in Kafka for the
thread of their shard. So only deadlines change the group in between.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Generic, NamedTuple, Protocol, TypeVar
from weakref import WeakValueDictionary

from odradek.coordinator.classic_groups.group import ClassicGroup
from odradek.coordinator.modern_groups.draft import DraftResult
from odradek.coordinator.modern_groups.group import EpochGroup
from odradek.coordinator.runtime.alarm import Alarm
from odradek.coordinator.runtime.journal import Prepared
from odradek.coordinator.runtime.outcome import Outcome
from odradek.coordinator.runtime.steps import Step
from odradek.coordinator.runtime.timers import Now
from odradek.protocol.errors import ApiError, ErrorCode

from .group_shards import GroupShard
from .modern_group_commits import commit

R = TypeVar("R")
T = TypeVar("T")

# A decision is made so often if its group changes each time.
MAX_ATTEMPTS = 10


class TakesLongError(Exception):
    """The work has taken more time than it may take at once."""


class Slicer(Protocol):
    """Runs work in slices."""

    def limited(self) -> Step:
        """Return a step that raises TakesLongError when the time for work at once is over."""

    def run(self, work: Callable[[Step], Coroutine[Any, Any, T]]) -> Awaitable[T]:
        """Begin work that gives way at its steps."""


# Raises ApiError if the shard is not served.
FindShard = Callable[[], GroupShard]
# Decides about a group. Returns its shard and the decision. Raises ApiError.
Decide = Callable[[Now, Step], tuple[GroupShard, Outcome[DraftResult[R]]]]


class GroupVersion(NamedTuple):
    """What a group is at one moment. Equal versions: a decision about it is still right."""

    shard: GroupShard
    group: object
    changes: object


class _Decided(NamedTuple, Generic[R]):
    """A decision, and its batch."""

    shard: GroupShard
    outcome: Outcome[DraftResult[R]]
    now: Now
    prepared: Prepared | None


class GroupDecisions:
    """Makes the decisions about groups, and commits them."""

    def __init__(self, alarm: Alarm, slicer: Slicer, clock: Callable[[], Now]) -> None:
        self._alarm = alarm
        self._slicer = slicer
        self._clock = clock
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def decide(self, group_id: str, find: FindShard, decide: Decide[R]) -> R | Awaitable[R]:
        """Decide and commit, and return the reply. `find` finds the group's shard.

        Raises ApiError.
        """
        if group_id not in self._locks:
            try:
                return self._commit(self._decided(decide, self._slicer.limited()))
            except TakesLongError:
                pass

        def work(step: Step) -> Coroutine[Any, Any, R]:
            return self._decide_in_slices(group_id, find, decide, step)

        return self._slicer.run(work)

    async def _decide_in_slices(
        self, group_id: str, find: FindShard, decide: Decide[R], step: Step
    ) -> R:
        lock = self._locks.setdefault(group_id, asyncio.Lock())
        async with lock:
            for _ in range(MAX_ATTEMPTS):
                before = version_of(group_id, find)
                decided = self._decided(decide, step)
                if version_of(group_id, find) == before:
                    return self._commit(decided)
        text = f"group {group_id} has changed during {MAX_ATTEMPTS} decisions"
        raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, text)

    def _decided(self, decide: Decide[R], step: Step) -> _Decided[R]:
        now = self._clock()
        shard, outcome = decide(now, step)
        return _Decided(shard, outcome, now, shard.journal.prepare(outcome, now.wall_ms, step))

    def _commit(self, decided: _Decided[R]) -> R:
        reply = commit(*decided)
        self._alarm.set(decided.now)
        return reply


def version_of(group_id: str, find: FindShard) -> GroupVersion | None:
    """Return what the group is now; None if its shard is not served."""
    try:
        shard = find()
    except ApiError:
        return None
    group = shard.state.groups.get(group_id)
    changes: object = None
    if isinstance(group, EpochGroup):
        changes = group.changes
    elif isinstance(group, ClassicGroup):
        changes = group.state, group.generation_id, group.subscribed_topics
    return GroupVersion(shard, group, changes)
