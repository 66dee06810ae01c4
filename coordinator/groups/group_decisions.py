"""Decides about groups in slices if a decision takes long: a large topology, or many tasks.

A decision reads the state of one group and changes nothing, so it may be interrupted and given up.
It is tried at once first. When that has taken a millisecond, it begins again, in slices between
which other requests are served. It is committed only if its group has not changed meanwhile;
otherwise it is made again.

While a group has such a decision, its other requests wait for it, as they wait in Kafka for the
thread of their shard. So only deadlines change the group in between. The records of a decision in
slices are replayed into a copy of the group, which takes its place when they are written. A few
records may be long work to replay, because a member owns very many partitions.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Generic, NamedTuple, Protocol, TypeVar
from weakref import WeakValueDictionary

from odradek.coordinator.classic_groups.group import ClassicGroup
from odradek.coordinator.modern_groups.draft import DraftResult
from odradek.coordinator.modern_groups.group import EpochGroup
from odradek.coordinator.runtime.alarm import Alarm
from odradek.coordinator.runtime.journal import Prepared
from odradek.coordinator.runtime.outcome import JoinedRecord, JournalRecord, Outcome
from odradek.coordinator.runtime.steps import Step, TakesLongError, stepping
from odradek.coordinator.runtime.timers import Now
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.records.consumer_group import ConsumerGroupTargetAssignmentMemberKey
from odradek.protocol.records.streams_group import StreamsGroupTargetAssignmentMemberKey

from .group_shards import GroupShard, GroupShards
from .modern_group_commits import commit

R = TypeVar("R")
T = TypeVar("T")

# A decision is made so often if its group changes each time.
MAX_ATTEMPTS = 10
# At most this many records are encoded at once.
FEW_RECORDS = 20
# Records of members that own more partitions or tasks are not replayed at once.
MANY_PARTITIONS = 2_000
# The replay of these records leaves alone what their member owns.
_TARGET_KEYS = (
    ConsumerGroupTargetAssignmentMemberKey,
    StreamsGroupTargetAssignmentMemberKey,
)


class Slicer(Protocol):
    """Runs work in slices."""

    def limited(self) -> Step:
        """Return a step that raises TakesLongError when the time for work at once is over."""

    def run(self, work: Callable[[Step], Coroutine[Any, Any, T]]) -> Awaitable[T]:
        """Begin work that gives way at its steps."""


# Raises ApiError if the shard is not served.
FindShard = Callable[[], GroupShard]
# Decides about a group of the shard. Raises ApiError.
Decide = Callable[[GroupShard, Now, Step], Outcome[DraftResult[R]]]


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

    def __init__(
        self, shards: GroupShards, alarm: Alarm, slicer: Slicer, clock: Callable[[], Now]
    ) -> None:
        self._shards = shards
        self.alarm = alarm
        self._slicer = slicer
        self.clock = clock
        # By group id; a lock exists while a decision in slices holds it or waits for it.
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._in_slices = 0  # mostly none: then there is no lock to look up
        self._kept: set[asyncio.Future[Any]] = set()

    def decide(
        self,
        shard: GroupShard,
        group_id: str,
        decide: Decide[R],
        now: Now,
        refusal: Callable[[ApiError], R] | None = None,
    ) -> R | Awaitable[R]:
        """Decide and commit, and return the reply; then the caller sets the alarm.

        Returns an awaitable if the decision takes long; `refusal` makes its reply of an ApiError.
        Raises ApiError.
        """
        if not self._in_slices or group_id not in self._locks:
            try:
                step = self._slicer.limited()
                outcome = decide(shard, now, step)
                if _changes_much(shard.state.groups.get(group_id), outcome.records):
                    raise TakesLongError
                prepared = None
                if len(outcome.records) > FEW_RECORDS:  # else steps would cost more than the work
                    prepared = shard.journal.prepare(outcome, now.wall_ms, step)
                return commit(shard, outcome, now, prepared)
            except TakesLongError:
                pass
        find = partial(self._shards.at, shard.partition)

        async def work(step: Step) -> R:
            self._in_slices += 1
            try:
                return await self._decide_in_slices(group_id, find, decide, step)
            except ApiError as error:
                if refusal is None:
                    raise
                return refusal(error)
            finally:
                self._in_slices -= 1

        return self._slicer.run(work)

    def keep(self, work: Awaitable[T]) -> asyncio.Future[T]:
        """Run what follows a decision, also if nobody waits for it."""
        task = asyncio.ensure_future(work)
        self._kept.add(task)
        task.add_done_callback(self._kept.discard)
        return task

    async def _decide_in_slices(
        self, group_id: str, find: FindShard, decide: Decide[R], step: Step
    ) -> R:
        lock = self._locks.setdefault(group_id, asyncio.Lock())
        async with lock:
            decided = while_unchanged(
                group_id, find, lambda shard: self._decided(shard, group_id, decide, step)
            )
            reply = self._commit(decided)
            records = [*decided.outcome.records]
            del decided
            for _ in stepping(range(len(records)), step):  # each may have thousands of entries
                records.pop()
            return reply

    def _decided(
        self, shard: GroupShard, group_id: str, decide: Decide[R], step: Step
    ) -> _Decided[R]:
        now = self.clock()
        outcome = decide(shard, now, step)
        prepared = shard.journal.prepare(outcome, now.wall_ms, step)
        if prepared is not None and not _is_of_classic_group(shard, group_id, prepared):
            # One record in their place has the group as they leave it.
            records = [joined.record for joined in prepared.joined]
            new_group = outcome.reply.new_group
            replayed = shard.state.replayed(group_id, records, now.wall_ms, step, new_group)
            prepared = Prepared([JoinedRecord(replayed, len(records))], prepared.batch)
        return _Decided(shard, outcome, now, prepared)

    def _commit(self, decided: _Decided[R]) -> R:
        reply = commit(*decided)
        self.alarm.set(decided.now)
        return reply


def _changes_much(group: object, records: Sequence[JournalRecord]) -> bool:
    """Whether some members that the records change own very many partitions or tasks."""
    if not records or not isinstance(group, EpochGroup):
        return False
    keys = (record.key for record in records if not isinstance(record.key, _TARGET_KEYS))
    changed = {getattr(key, "member_id", "") for key in keys}
    owned: int = sum(group.members[each].owned_count for each in changed if each in group.members)
    return owned > MANY_PARTITIONS


def _is_of_classic_group(shard: GroupShard, group_id: str, prepared: Prepared) -> bool:
    """Whether this is the record of a classic group that stays one: it need not be copied.

    Its replay is short, see ClassicGroup.plan.
    """
    return len(prepared.joined) == 1 and shard.state.find_classic(group_id) is not None


def while_unchanged(group_id: str, find: FindShard, make: Callable[[GroupShard], T]) -> T:
    """Return what `make` makes in steps; it is made again if the group changes in them.

    Raises ApiError.
    """
    for _ in range(MAX_ATTEMPTS):
        before = version_of(group_id, find)
        made = make(find())
        if version_of(group_id, find) == before:
            return made
    text = f"group {group_id} has changed during {MAX_ATTEMPTS} decisions"
    raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, text)


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
        roster = group.roster
        changes = group.state, group.generation_id, group.subscriptions, roster, roster.changes
    return GroupVersion(shard, group, changes)
