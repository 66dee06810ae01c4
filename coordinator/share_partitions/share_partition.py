"""A share-partition: the records in flight, from the start offset to the end offset.

All records before the start offset are done. The end offset is that of the last record that was
ever acquired; while nothing is in flight it is the next offset to fetch. Stored state that has gaps
(records that were acquired but not settled when it was stored) is read with a gap window: the
records in the gaps are fetched again.

Kafka: SharePartition. Its write lock and its transitions in progress are not needed here: what
changes is stored, and then applied, without an await in between.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable

from msgspec import Struct

from odradek.coordinator.runtime.steps import Step, no_step, stepping
from odradek.coordinator.share_state.batches import NO_OFFSET
from odradek.coordinator.share_state.state import ShareState

from .batches import Batches
from .in_flight import Batch, InFlight, RecordState


class Limits(Struct, frozen=True):
    """The settings of the group that limit deliveries."""

    max_delivery_count: int
    max_in_flight: int


class InvalidShareStateError(Exception):
    """Stored state contradicts itself. The message says how."""


class SharePartition:
    """One partition of one share group, as its leader sees it."""

    def __init__(self, state: ShareState, start_offset: int, step: Step = no_step) -> None:
        """`start_offset` is that of the state, or where the group begins if the state has none.

        Raises InvalidShareStateError.
        """
        self.state_epoch = state.state_epoch
        self.start_offset = start_offset
        self.end_offset = start_offset
        self.batches = Batches()
        self.complete_count = 0
        """How many records from the start offset on are done."""
        self.version = 0
        """Grows when a decision begins, and with each change that is made without one."""
        self._available: list[int] = []
        self._gap_start = NO_OFFSET
        self._gap_end = NO_OFFSET
        self._restore(state, step)

    def _restore(self, state: ShareState, step: Step) -> None:
        before = self.start_offset - 1
        gap_start = NO_OFFSET
        for stored in stepping(state.batches, step):
            first, last = stored.first_offset, stored.last_offset
            if first <= before or last < first:
                raise InvalidShareStateError(f"batch {first} to {last} follows offset {before}")
            if gap_start == NO_OFFSET and first > before + 1:
                gap_start = before + 1
            before = last
            try:
                record_state = RecordState(stored.delivery_state)
            except ValueError:
                text = f"{stored.delivery_state} of {first} to {last} is not a delivery state"
                raise InvalidShareStateError(text) from None
            self.batches.put(Batch(first, last, InFlight(record_state, stored.delivery_count)))
            if record_state.is_terminal:
                self.complete_count += last - first + 1
            elif record_state is RecordState.AVAILABLE:
                self.made_available(first)
        if len(self.batches):
            self.end_offset = self.batches.last.last_offset
            if gap_start != NO_OFFSET:
                self._gap_start, self._gap_end = gap_start, self.end_offset
            self.move_start()

    # -- what can be fetched -----------------------------------------------------------------------

    @property
    def in_flight_count(self) -> int:
        """The number of records between the start and the end offset."""
        return self.end_offset - self.start_offset + 1 if len(self.batches) else 0

    @property
    def is_caught_up(self) -> bool:
        """Whether everything in flight is before the start offset."""
        return not len(self.batches) or self.start_offset > self.batches.last.last_offset

    def offset_to_fetch(self, limits: Limits) -> int | None:
        """Return `next_fetch_offset`; None: none is available, and no more may be in flight."""
        offset = self.next_fetch_offset()
        is_new = offset == self.end_offset + 1
        return None if is_new and self.in_flight_count >= limits.max_in_flight else offset

    def next_fetch_offset(self) -> int:
        """The offset of the first record that can be acquired."""
        if self.is_caught_up:
            self._available.clear()
            return self.end_offset
        found = self._first_available(), self._first_in_gap()
        return min((each for each in found if each is not None), default=self.end_offset + 1)

    # Thousands of batches may be in flight, so they are not searched for those that are available.
    # `_available` has, for each available record, an offset of its batch that is not after it. Such
    # an offset is added when records become available. It is moved up, or removed, by the search
    # that no longer finds them there.

    def made_available(self, offset: int) -> None:
        """A record in flight has become available, and maybe others of its batch after it."""
        index = bisect_left(self._available, offset)
        if self._available[index : index + 1] != [offset]:
            self._available.insert(index, offset)

    def _first_available(self) -> int | None:
        """The first record in flight that is available."""
        offsets = self._available
        while offsets:
            offset = max(offsets[0], self.start_offset)
            batch = self.batches.floor(offset)
            found = None if batch is None else batch.first_available(offset)
            if found is not None:
                offsets[: bisect_right(offsets, found)] = [found]
                return found
            searched = offset if batch is None else max(offset, batch.last_offset)
            del offsets[: bisect_right(offsets, searched)]
        return None

    def _first_in_gap(self) -> int | None:
        """The first record of a gap. The gap window is moved up to it."""
        if not self.has_gaps:
            return None
        offset = max(self._gap_start, self.start_offset)
        while (batch := self.batches.floor(offset)) and batch.last_offset >= offset:
            offset = batch.last_offset + 1
        self._gap_start = offset
        return offset if offset <= self.end_offset else None

    # -- gaps --------------------------------------------------------------------------------------

    @property
    def has_gaps(self) -> bool:
        """Whether stored state had gaps, and nothing was acquired after it yet."""
        return self._gap_end != NO_OFFSET and self._gap_end == self.end_offset

    def close_gap_before(self, offset: int) -> None:
        """Records before `offset` have been acquired."""
        if self.has_gaps and offset <= self._gap_end:
            self._gap_start = max(self._gap_start, offset)
        else:
            self._gap_start = self._gap_end = NO_OFFSET

    def pass_gap(self, first_offset: int, end_offset: int) -> None:
        """The log has no records from `first_offset` on before `end_offset`."""
        if self.has_gaps:
            self.close_gap_before(max(self._gap_start, end_offset))
        if first_offset <= self.start_offset:
            end_offset = min(end_offset, self.batches.first.first_offset)
            self.start_offset = max(self.start_offset, end_offset)

    # -- the start offset --------------------------------------------------------------------------

    def move_start(self) -> bool:
        """Move the start offset past records that are done. Returns whether something changed.

        A batch is dropped when all its records are done.
        """
        if not self._can_move_start():
            return False
        last_done, count = self._done_from_start()
        if last_done == NO_OFFSET:
            return False
        if last_done == self.batches.last.last_offset:
            self.start_offset = self.end_offset = max(self.start_offset, last_done + 1)
            self.batches.clear()
            self.complete_count = 0
            return True
        batch = self.batches.floor(last_done)
        assert batch is not None, "the record is in flight"
        if last_done == batch.last_offset:
            following = self.batches.after(last_done)
            assert following is not None, "the last batch is not done"
            self.start_offset = max(self.start_offset, following.first_offset)
            if self.has_gaps:
                self.start_offset = min(max(self._gap_start, last_done + 1), self.start_offset)
            self.batches.remove_before(batch.first_offset + 1)
        else:
            self.start_offset = max(self.start_offset, last_done + 1)
            self.batches.remove_before(batch.first_offset)
        self.complete_count -= count
        return True

    def _can_move_start(self) -> bool:
        batch = self.batches.floor(self.start_offset)
        if batch is None:
            return False
        state = batch.whole or batch.state_at(self.start_offset)
        return state is not None and state.state.is_terminal

    def _done_from_start(self) -> tuple[int, int]:
        """The last of the records that are done without a break, and how many of them count."""
        last_done, count = NO_OFFSET, 0
        gap_start = self._gap_start
        for batch in self.batches:
            if self.has_gaps:
                if batch.first_offset > gap_start:
                    break
                gap_start = max(batch.last_offset + 1, gap_start)
            for first, last, state in batch.states():
                if not state.state.is_terminal:
                    return last_done, count
                last_done = last
                count += max(last - max(first, self.start_offset) + 1, 0)
        return last_done, count

    def log_start_moved(self, log_start_offset: int) -> None:
        """The log has lost the records before an offset: those that are available are archived."""
        if log_start_offset <= self.start_offset:
            return
        self.version += 1
        if self.has_gaps:
            self.close_gap_before(max(self._gap_start, log_start_offset))
        if not len(self.batches):
            self.start_offset = self.end_offset = log_start_offset
            self.complete_count = 0
            return
        gone = sum(
            max(min(last, log_start_offset - 1) - max(first, self.start_offset) + 1, 0)
            for batch in self.batches
            for first, last, state in batch.states()
            if state.state.is_terminal
        )
        first, last = self.start_offset, log_start_offset - 1
        self.archive(self.batches, first, last, RecordState.AVAILABLE)
        self.start_offset = log_start_offset
        self.complete_count -= gone
        self.end_offset = max(self.end_offset, self.start_offset)

    def archive(
        self, batches: Iterable[Batch], first_offset: int, last_offset: int, state: RecordState
    ) -> int:
        """Archive the records of a range that are in `state`. Returns how many there were."""
        count = 0
        for batch in batches:
            if batch.first_offset > last_offset:
                break
            for first, last, in_flight in batch.states_in(first_offset, last_offset):
                if in_flight.state is state:
                    batch.separate(first, last).archive()
                    count += last - first + 1
            batch.unite_in(first_offset, last_offset)
        return count
