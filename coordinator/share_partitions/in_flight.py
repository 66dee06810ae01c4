"""Records in flight: their state, how often they were delivered, and who has them.

    AVAILABLE      can be acquired            -> ACQUIRED
    ACQUIRED       locked for one member      -> ACKNOWLEDGED, AVAILABLE (released, or the lock
                                                 ended), ARCHIVED (rejected, or delivered too often)
    ACKNOWLEDGED   done                       -> nothing
    ARCHIVED       done, not processed        -> nothing

A log that loses its first records archives those that are available, whatever comes later.

A batch has one state while all its records share one. When they differ, it has a state for each
offset. That is a question of memory only, with one exception: a batch is delivered as one range.

Kafka: RecordState, InFlightState, InFlightBatch.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

NO_MEMBER = ""


class RecordState(IntEnum):
    """On disk and on the wire: never renumber. Kafka reserves 3."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVED = 4

    @property
    def is_terminal(self) -> bool:
        """Whether the record is done."""
        return self in _TERMINAL


_TERMINAL = frozenset({RecordState.ACKNOWLEDGED, RecordState.ARCHIVED})

LEGAL: dict[RecordState, frozenset[RecordState]] = {
    RecordState.AVAILABLE: frozenset({RecordState.ACQUIRED}),
    RecordState.ACQUIRED: frozenset(
        {RecordState.AVAILABLE, RecordState.ACKNOWLEDGED, RecordState.ARCHIVED}
    ),
    RecordState.ACKNOWLEDGED: frozenset(),
    RecordState.ARCHIVED: frozenset(),
}


@dataclass(slots=True)
class InFlight:
    """The state of one record, or of all records of a batch.

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
        """Acknowledge, release or archive it: the member loses it."""
        self._become(state)
        self.member_id = NO_MEMBER
        self.locked_until_ms = None

    def archive(self) -> None:
        """Archive it whatever its state is: its record has gone."""
        self.state = RecordState.ARCHIVED
        self.member_id = NO_MEMBER
        self.locked_until_ms = None

    def _become(self, state: RecordState) -> None:
        assert state in LEGAL[self.state], f"{self.state.name} cannot become {state.name}"
        self.state = state


def released_state(delivery_count: int, max_delivery_count: int) -> RecordState:
    """The state of a released record: it is archived if it was delivered too often."""
    return RecordState.ARCHIVED if delivery_count >= max_delivery_count else RecordState.AVAILABLE


class Batch:
    """A range of offsets in flight, both ends included."""

    __slots__ = ("first_offset", "last_offset", "offsets", "whole")

    def __init__(self, first_offset: int, last_offset: int, whole: InFlight) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.whole: InFlight | None = whole
        """The state of all records; None if each has its own in `offsets`."""
        self.offsets: dict[int, InFlight] = {}

    @property
    def record_count(self) -> int:
        return self.last_offset - self.first_offset + 1

    def split(self) -> dict[int, InFlight]:
        """Give each offset a state of its own."""
        whole = self.whole
        if whole is not None:
            self.offsets = {
                offset: InFlight(
                    whole.state, whole.delivery_count, whole.member_id, whole.locked_until_ms
                )
                for offset in range(self.first_offset, self.last_offset + 1)
            }
            self.whole = None
        return self.offsets

    def states_within(self, first_offset: int, last_offset: int) -> Iterator[tuple[int, InFlight]]:
        """Iterate over the offsets of a range that are in the batch, and the state of each.

        The batch is split, because they may change. Offsets outside of the range cost nothing.
        """
        states = self.split()
        first, last = max(first_offset, self.first_offset), min(last_offset, self.last_offset)
        return ((offset, states[offset]) for offset in range(first, last + 1))

    def states(self) -> Iterator[tuple[int, int, InFlight]]:
        """Iterate over the states: the first and the last offset of each, and the state."""
        if self.whole is not None:
            yield self.first_offset, self.last_offset, self.whole
        else:
            for offset, state in self.offsets.items():
                yield offset, offset, state

    def is_within(self, first_offset: int, last_offset: int) -> bool:
        """Whether the whole batch is in a range."""
        return self.first_offset >= first_offset and self.last_offset <= last_offset

    def is_cut_by(self, start_offset: int) -> bool:
        """Whether the start offset is after the first record of the batch, and in it."""
        return self.first_offset < start_offset <= self.last_offset

    def count_from(self, start_offset: int) -> int:
        """The number of its records from `start_offset` on."""
        return max(self.last_offset - max(self.first_offset, start_offset) + 1, 0)
