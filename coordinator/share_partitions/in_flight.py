"""Records in flight: their state, how often they were delivered, and who has them.

    AVAILABLE      can be acquired            -> ACQUIRED
    ACQUIRED       locked for one member      -> ACKNOWLEDGED, AVAILABLE (released, or the lock
                                                 ended), ARCHIVED (rejected, or delivered too often)
                                                 or ARCHIVING
    ACKNOWLEDGED   done                       -> nothing
    ARCHIVING      as ARCHIVED, and being     -> ARCHIVED
                   written to the dead-letter
                   queue of the group
    ARCHIVED       done, not processed        -> nothing

Two changes are not in this table (`archive`). When records are deleted from the start of the log,
those that are AVAILABLE become ARCHIVED; those that are ACQUIRED stay so until they are settled as
usual. And records of aborted transactions become ARCHIVED as soon as they are acquired.

A batch has one state for each run of neighbouring records whose states are equal, not one for each
record: its header may announce millions of records. A run is divided when a part of it changes, and
united with a neighbour that has become equal.

Kafka: RecordState, InFlightState, InFlightBatch. It keeps a state for each record of a batch that
has records with different states.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from itertools import chain, islice
from typing import NamedTuple

NO_MEMBER = ""


class RecordState(IntEnum):
    """On disk and on the wire: never renumber."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVING = 3
    ARCHIVED = 4

    @property
    def is_terminal(self) -> bool:
        """Whether the record is done."""
        return self is RecordState.ACKNOWLEDGED or self is RecordState.ARCHIVED


@dataclass(slots=True)
class InFlight:
    """The state of a run of records.

    `locked_until_ms` is set while it is acquired.
    """

    state: RecordState
    delivery_count: int
    member_id: str = NO_MEMBER
    locked_until_ms: int | None = None

    def acquire(self, member_id: str, locked_until_ms: int) -> None:
        """Lock it for a member; this counts as a delivery."""
        self._become(RecordState.ACQUIRED)
        self.delivery_count += 1
        self.member_id = member_id
        self.locked_until_ms = locked_until_ms

    def settle(self, state: RecordState) -> None:
        """Acknowledge, release or archive it. No member has it from then on."""
        self._become(state)
        self.member_id = NO_MEMBER
        self.locked_until_ms = None

    def archive(self) -> None:
        """Archive it from any state. Its records are no longer in the log, or were aborted."""
        self.state = RecordState.ARCHIVED
        self.member_id = NO_MEMBER
        self.locked_until_ms = None

    def copy(self) -> "InFlight":
        """Return an equal state, for a part of its records."""
        return InFlight(self.state, self.delivery_count, self.member_id, self.locked_until_ms)

    def _become(self, state: RecordState) -> None:
        # No table: the hash of an enum is a call, and thousands of records change in one turn.
        if state is RecordState.ACQUIRED:
            is_legal = self.state is RecordState.AVAILABLE
        elif self.state is RecordState.ARCHIVING:
            is_legal = state is RecordState.ARCHIVED
        else:
            is_legal = self.state is RecordState.ACQUIRED
        assert is_legal, f"{self.state.name} cannot become {state.name}"
        self.state = state

    def equals(self, other: "InFlight") -> bool:
        """As ==, but quicker: that makes tuples of all fields first."""
        return (
            self.state is other.state
            and self.delivery_count == other.delivery_count
            and self.member_id == other.member_id
            and self.locked_until_ms == other.locked_until_ms
        )


class DeliveryRules(NamedTuple):
    """What happens to records that are not processed.

    `has_queue`: whether the group has a dead-letter queue.
    """

    max_delivery_count: int
    has_queue: bool = False

    @property
    def rejected_state(self) -> RecordState:
        """The state of a record that will not be delivered again."""
        return RecordState.ARCHIVING if self.has_queue else RecordState.ARCHIVED

    def released_state(self, delivery_count: int) -> RecordState:
        """The state of a released record, which may have been delivered too often."""
        was_often = delivery_count >= self.max_delivery_count
        return self.rejected_state if was_often else RecordState.AVAILABLE


class Batch:
    """A range of offsets in flight, both ends included, in runs of records with one state."""

    __slots__ = ("_firsts", "_states", "first_offset", "last_offset")

    def __init__(self, first_offset: int, last_offset: int, state: InFlight) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self._firsts = [first_offset]  # of the runs, ascending
        self._states = [state]

    @property
    def record_count(self) -> int:
        return self.last_offset - self.first_offset + 1

    @property
    def whole(self) -> InFlight | None:
        """The state of all records; None if they have different ones."""
        return self._states[0] if len(self._states) == 1 else None

    def state_at(self, offset: int) -> InFlight | None:
        """The state of one record; None if the batch does not have it."""
        if not self.first_offset <= offset <= self.last_offset:
            return None
        return self._states[bisect_right(self._firsts, offset) - 1]

    def states(self) -> Iterator[tuple[int, int, InFlight]]:
        """Iterate over the runs: the first and the last offset of each, and its state."""
        if len(self._states) == 1:  # quicker: thousands of batches are walked through
            return iter(((self.first_offset, self.last_offset, self._states[0]),))
        lasts = chain((first - 1 for first in islice(self._firsts, 1, None)), (self.last_offset,))
        return zip(self._firsts, lasts, self._states, strict=True)

    def first_available(self, from_offset: int) -> int | None:
        """The offset of the first available record at or after `from_offset`; None if none is.

        `from_offset` must not be before the batch.
        """
        if from_offset > self.last_offset:
            return None
        for index in range(bisect_right(self._firsts, from_offset) - 1, len(self._states)):
            if self._states[index].state is RecordState.AVAILABLE:
                return max(self._firsts[index], from_offset)
        return None

    def states_in(self, first_offset: int, last_offset: int) -> list[tuple[int, int, InFlight]]:
        """The runs of a range, cut to it. A list, so that the batch may be changed meanwhile."""
        first, last = max(first_offset, self.first_offset), min(last_offset, self.last_offset)
        if first > last:
            return []
        low = bisect_right(self._firsts, first) - 1
        high = bisect_right(self._firsts, last, low)
        if high == low + 1:
            return [(first, last, self._states[low])]
        firsts = [first, *self._firsts[low + 1 : high]]
        lasts = [first - 1 for first in firsts[1:]] + [last]
        return list(zip(firsts, lasts, self._states[low:high], strict=True))

    def separate(self, first_offset: int, last_offset: int) -> InFlight:
        """Make a range of records, all of one run, a run of its own.

        Returns the state of that run, which may then be changed.
        """
        self.divide_at(last_offset + 1)
        return self._states[self.divide_at(first_offset)]

    def divide_at(self, offset: int) -> int:
        """Divide the run that contains an offset, so that a run begins there. Returns its index.

        Nothing is divided where a run begins already, or outside of the batch.
        """
        index = bisect_left(self._firsts, offset)
        is_inside = self.first_offset < offset <= self.last_offset
        if is_inside and (index == len(self._firsts) or self._firsts[index] != offset):
            self._firsts.insert(index, offset)
            self._states.insert(index, self._states[index - 1].copy())
        return index

    def unite(self) -> None:
        """Unite neighbours with equal states."""
        if len(self._states) > 1:
            self.unite_in(self.first_offset, self.last_offset)

    def unite_in(self, first_offset: int, last_offset: int) -> None:
        """Unite neighbours with equal states that meet in a range, or at one of its ends."""
        low = max(bisect_right(self._firsts, first_offset) - 1, 1)
        high = min(bisect_right(self._firsts, last_offset) + 1, len(self._firsts))
        states = self._states
        kept = [at for at in range(low, high) if not states[at].equals(states[at - 1])]
        if len(kept) < high - low:
            self._firsts[low:high] = [self._firsts[at] for at in kept]
            self._states[low:high] = [self._states[at] for at in kept]

    def is_within(self, first_offset: int, last_offset: int) -> bool:
        """Whether the whole batch is in a range."""
        return self.first_offset >= first_offset and self.last_offset <= last_offset
