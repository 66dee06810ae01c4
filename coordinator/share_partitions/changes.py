"""How records leave a member: it acknowledges them, its session ends, or a lock ends.

Of those that go to a dead-letter queue, also how they leave that state (`archive`).

    changes = acknowledge(partition, ...)     # checks everything, changes nothing
    store(changes.batches, changes.complete_count)
    changes.apply()                           # and the start offset moves

If one record of a request cannot be acknowledged, none is. A decision about many records may be
made in steps; it holds if `changes.is_current` afterwards, because nothing else was decided about
the share-partition, or changed, between two steps. Kafka: SharePartition.acknowledge,
releaseAcquiredRecords, releaseAcquisitionLockOnTimeout, rollbackOrProcessStateUpdates.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import IntEnum
from itertools import groupby
from typing import NamedTuple

from odradek.coordinator.runtime.steps import Step, no_step, stepping
from odradek.coordinator.share_state.batches import DeliveryBatch
from odradek.protocol.errors import ApiError, ErrorCode

from .dead_letters import Cause, DeadLetters
from .in_flight import NO_MEMBER, Batch, DeliveryRules, InFlight, RecordState
from .share_partition import SharePartition


class AcknowledgeType(IntEnum):
    """On the wire: never renumber."""

    GAP = 0
    """There is no such record: it was compacted, or is a marker."""
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4
    """The member keeps the record, and its lock begins again."""


# Of the types that lead to the same state whatever the rules of the group are.
STATE_OF = {
    AcknowledgeType.GAP: RecordState.ARCHIVED,
    AcknowledgeType.ACCEPT: RecordState.ACKNOWLEDGED,
}


class Acknowledgement(NamedTuple):
    """Offsets, both ends included, and one type for all of them, or one for each."""

    first_offset: int
    last_offset: int
    types: Sequence[int]

    def ranges(self, first: int, last: int) -> Iterator[tuple[int, int, AcknowledgeType]]:
        """Divide a range of the offsets by their types."""
        if len(self.types) == 1:
            yield first, last, AcknowledgeType(self.types[0])
            return
        types = self.types[first - self.first_offset : last - self.first_offset + 1]
        for kind, group in groupby(types):
            count = sum(1 for _ in group)
            yield first, first + count - 1, AcknowledgeType(kind)
            first += count


class AcknowledgeCall(NamedTuple):
    """Who acknowledges, and what applies. `renewed_until_ms`: None: locks cannot be renewed."""

    member_id: str
    rules: DeliveryRules
    renewed_until_ms: int | None


class StaleDecisionError(Exception):
    """Something else has been decided, or has changed, while a decision was made in steps."""


class Changes:
    """Decided changes of one share-partition, which are to be stored and then applied."""

    def __init__(self, partition: SharePartition) -> None:
        self.batches: list[DeliveryBatch] = []
        self.dead_letters: list[DeadLetters] = []
        """What the queue of the group gets when the changes are applied."""
        self.complete_count = partition.complete_count
        """How many records are done from the start offset on, after the changes."""
        self._partition = partition
        partition.version += 1
        self._version = partition.version
        # By id, because runs with equal fields are different ones.
        self._settled: dict[int, tuple[InFlight, RecordState]] = {}
        self._changed: dict[int, Batch] = {}
        self._available: list[int] = []
        self._renewed: list[tuple[InFlight, int]] = []

    def settle(
        self,
        batch: Batch,
        first: int,
        last: int,
        state: RecordState,
        cause: Cause = Cause.DELIVERED_TOO_OFTEN,
    ) -> None:
        """Settle records of a batch that are acquired, and share a state, as this state."""
        self.settle_run(batch, first, last, batch.separate(first, last), state, cause)

    def settle_run(
        self,
        batch: Batch,
        first: int,
        last: int,
        in_flight: InFlight,
        state: RecordState,
        cause: Cause = Cause.DELIVERED_TOO_OFTEN,
    ) -> None:
        """Settle a run of a batch, which is acquired, as this state.

        `cause`: why it is given up, if it is.
        """
        self._changed[batch.first_offset] = batch
        self._settled[id(in_flight)] = in_flight, state
        self.batches.append(DeliveryBatch(first, last, in_flight.delivery_count, state))
        if state is RecordState.ARCHIVING:
            self.dead_letters.append(DeadLetters(first, last, in_flight.delivery_count, cause))
        if state.is_terminal:
            self.complete_count += max(last - max(first, self._partition.start_offset) + 1, 0)
        elif state is RecordState.AVAILABLE:
            self._available.append(first)

    def renew(self, batch: Batch, first: int, last: int, until_ms: int) -> None:
        """Begin the lock of records again, as `settle`. It is not stored."""
        self._changed[batch.first_offset] = batch
        self._renewed.append((batch.separate(first, last), until_ms))

    @property
    def is_current(self) -> bool:
        """Whether the decision holds still."""
        return self._partition.version == self._version

    @property
    def renews(self) -> bool:
        """Whether a lock begins again."""
        return bool(self._renewed)

    def is_acquired(self, in_flight: InFlight) -> bool:
        """Whether a record is acquired, and would be after the changes so far."""
        return in_flight.state is RecordState.ACQUIRED and id(in_flight) not in self._settled

    def apply(self) -> bool:
        """Apply the changes, which have been stored. Returns whether there was one to store."""
        partition = self._partition
        for in_flight, until_ms in self._renewed:
            in_flight.locked_until_ms = until_ms
        for in_flight, state in self._settled.values():
            in_flight.settle(state)
        for offset in self._available:
            partition.made_available(offset)
        for batch in self._changed.values():
            batch.unite()
        partition.complete_count = self.complete_count
        if self.batches:
            partition.move_start()
        return bool(self.batches)


# -- acknowledge -----------------------------------------------------------------------------------


def acknowledge(
    partition: SharePartition,
    call: AcknowledgeCall,
    acknowledgements: Iterable[Acknowledgement],
    step: Step = no_step,
) -> Changes:
    """Decide about a member's acknowledgements, in order.

    Records before the start offset are done: acknowledging them again changes nothing. A lock may
    be renewed again and again, which is done once.
    Raises ApiError: INVALID_RECORD_STATE, INVALID_REQUEST; StaleDecisionError in place of these if
    something has changed in a step.
    """
    changes = Changes(partition)
    try:
        before: Acknowledgement | None = None
        for each in stepping(acknowledgements, step):
            if each.last_offset < partition.start_offset or (each == before and _renews(each)):
                continue
            before = each
            for batch in stepping(_batches_of(partition, each), step):
                if batch.last_offset >= partition.start_offset:
                    _acknowledge_batch(partition, changes, call, each, batch, step)
    except ApiError:
        if changes.is_current:
            raise
    if not changes.is_current:
        raise StaleDecisionError
    return changes


def _renews(acknowledgement: Acknowledgement) -> bool:
    return set(acknowledgement.types) == {AcknowledgeType.RENEW}


def _batches_of(partition: SharePartition, wanted: Acknowledgement) -> list[Batch]:
    floor = partition.batches.floor(wanted.first_offset)
    if floor is None and wanted.first_offset < partition.start_offset:
        floor = partition.batches.floor(partition.start_offset)
    if floor is None:
        raise _invalid_state(f"{wanted.first_offset} is not in flight")
    found = partition.batches.between(floor.first_offset, wanted.last_offset)
    if found[-1].last_offset < wanted.last_offset:
        text = f"{wanted.first_offset} to {wanted.last_offset} is not all in flight"
        raise ApiError(ErrorCode.INVALID_REQUEST, text)
    return found


def _acknowledge_batch(
    partition: SharePartition,
    changes: Changes,
    call: AcknowledgeCall,
    wanted: Acknowledgement,
    batch: Batch,
    step: Step,
) -> None:
    whole = batch.whole
    if whole is not None:
        _check_owner(changes, whole, call.member_id, batch.first_offset)
    first = max(wanted.first_offset, partition.start_offset, batch.first_offset)
    last = min(wanted.last_offset, batch.last_offset)
    if first > last:
        return  # only in a gap after the batch
    for begin, end, kind in stepping(wanted.ranges(first, last), step):
        for run_first, run_last, state in batch.states_in(begin, end):
            _check_owner(changes, state, call.member_id, run_first)
            _decide(changes, call, batch, run_first, run_last, state.delivery_count, kind)


def _decide(
    changes: Changes,
    call: AcknowledgeCall,
    batch: Batch,
    first: int,
    last: int,
    delivery_count: int,
    kind: AcknowledgeType,
) -> None:
    if kind is AcknowledgeType.RENEW:
        if call.renewed_until_ms is None:
            raise _invalid_state("the group does not allow that locks are renewed")
        changes.renew(batch, first, last, call.renewed_until_ms)
        return
    if kind is AcknowledgeType.REJECT:
        changes.settle(batch, first, last, call.rules.rejected_state, Cause.REJECTED)
    elif kind is AcknowledgeType.RELEASE:
        changes.settle(batch, first, last, call.rules.released_state(delivery_count))
    else:
        changes.settle(batch, first, last, STATE_OF[kind])


def _check_owner(changes: Changes, in_flight: InFlight, member_id: str, offset: int) -> None:
    if not changes.is_acquired(in_flight):
        raise _invalid_state(f"{offset} is not acquired")
    if in_flight.member_id != member_id:
        raise _invalid_state(f"{offset} is acquired by another member")


def _invalid_state(message: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_RECORD_STATE, message)


# -- release ---------------------------------------------------------------------------------------


def release(
    partition: SharePartition, member_id: str, rules: DeliveryRules, step: Step = no_step
) -> Changes:
    """Release all records of a member, because its session has ended.

    It may have changed in a step, see `Changes.is_current`.
    """
    return _released(
        partition,
        rules,
        lambda in_flight: in_flight.member_id in (member_id, NO_MEMBER),
        step,
    )


def expire(
    partition: SharePartition, now_ms: int, rules: DeliveryRules, step: Step = no_step
) -> Changes:
    """Release the records whose locks have ended at `now_ms` (timer time), as `release`."""
    return _released(
        partition,
        rules,
        lambda in_flight: (
            in_flight.locked_until_ms is not None and in_flight.locked_until_ms <= now_ms
        ),
        step,
    )


def next_lock_end_ms(partition: SharePartition, step: Step = no_step) -> int | None:
    """When the next lock ends, in timer time; None if nothing is locked.

    Locks that begin in a step may be left out.
    """
    return min(
        (
            state.locked_until_ms
            for batch in stepping(list(partition.batches), step)
            for _, _, state in batch.states()
            if state.locked_until_ms is not None
        ),
        default=None,
    )


def _released(
    partition: SharePartition,
    rules: DeliveryRules,
    is_wanted: Callable[[InFlight], bool],
    step: Step,
) -> Changes:
    """Release the acquired records that are wanted. Those before the start offset are archived."""
    changes = Changes(partition)
    start = partition.start_offset
    for batch in stepping(list(partition.batches), step):
        batch.divide_at(start)
        for first, last, state in stepping(list(batch.states()), step):
            if state.state is RecordState.ACQUIRED and is_wanted(state):
                new = rules.released_state(state.delivery_count)
                new = RecordState.ARCHIVED if last < start else new
                changes.settle_run(batch, first, last, state, new)
    return changes


# -- archive ---------------------------------------------------------------------------------------


def archive(
    partition: SharePartition, letters: Iterable[DeadLetters], step: Step = no_step
) -> Changes:
    """Archive records that the dead-letter queue has got, or cannot get.

    It may have changed in a step, see `Changes.is_current`.
    """
    changes = Changes(partition)
    for each in stepping(letters, step):
        floor = partition.batches.floor(each.first_offset)
        first_offset = each.first_offset if floor is None else floor.first_offset
        for batch in partition.batches.between(first_offset, each.last_offset):
            for first, last, state in batch.states_in(each.first_offset, each.last_offset):
                if state.state is RecordState.ARCHIVING:
                    changes.settle(batch, first, last, RecordState.ARCHIVED)
    return changes
