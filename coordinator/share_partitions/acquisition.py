"""One acquisition: which of the fetched records a member gets.

Records in flight that are available come first, then new ones after the last in flight. New records
are acquired by whole record batches, so a member may get more than it asked for, but no more than
2,000 or than may be in flight. In the mode `record limit` (KIP-1206) it gets no more than it asked
for. A record that was delivered often is delivered with fewer others, and at its last delivery
alone, so that a record that kills its consumers does not take others with it (KIP-1206).

Kafka: SharePartition.acquire, acquireNewBatchRecords, acquireSubsetBatchRecords.
"""

from collections.abc import Sequence
from typing import NamedTuple

from .in_flight import Batch, InFlight, RecordState
from .share_partition import Limits, SharePartition

# A record batch of this many records is acquired as a whole, also if fewer may be in flight.
WHOLE_BATCH_RECORDS = 2_000
# From this many deliveries on, a record is delivered with fewer others.
MIN_THROTTLE_COUNT = 2


class FetchedBatch(NamedTuple):
    """A record batch that has been read from the log, and what says whether it is aborted."""

    base_offset: int
    last_offset: int
    size_bytes: int = 0
    producer_id: int = -1
    is_transactional: bool = False
    is_abort_marker: bool = False


class Acquired(NamedTuple):
    """A range of records that a member has got, both ends included."""

    first_offset: int
    last_offset: int
    delivery_count: int

    @property
    def record_count(self) -> int:
        return self.last_offset - self.first_offset + 1


class AcquireCall(NamedTuple):
    """What a member asks for. `batch_size`: new records are divided into ranges of about this."""

    member_id: str
    max_records: int
    batch_size: int
    has_record_limit: bool
    locked_until_ms: int


def acquire(
    partition: SharePartition,
    call: AcquireCall,
    limits: Limits,
    fetch_offset: int,
    fetched: Sequence[FetchedBatch],
) -> list[Acquired]:
    """Acquire records of the batches that were read from `fetch_offset` on."""
    if call.max_records <= 0 or not fetched or fetched[-1].last_offset < partition.start_offset:
        return []
    partition.version += 1
    _pass_missing(partition, fetch_offset, fetched[0].base_offset)
    max_records, last_offset = _room(partition, call, limits, fetch_offset, fetched[-1].last_offset)
    if max_records <= 0 or last_offset < fetched[0].base_offset:
        return []
    acquisition = _Acquisition(partition, call, limits, fetched, max_records)
    return acquisition.run(last_offset)


def _room(
    partition: SharePartition, call: AcquireCall, limits: Limits, fetch_offset: int, last: int
) -> tuple[int, int]:
    """How many records may be acquired, and up to which offset.

    If no more may be in flight, only those that are in flight already can be acquired.
    """
    room = min(call.max_records, limits.max_in_flight - partition.in_flight_count)
    if room > 0 or fetch_offset > partition.end_offset:
        return room, last
    in_flight = partition.end_offset - fetch_offset + 1
    return min(call.max_records, in_flight), min(last, partition.end_offset)


def _pass_missing(partition: SharePartition, fetch_offset: int, base_offset: int) -> None:
    """Pass records that the log does not have any more, because it was compacted.

    Those in flight are archived. A gap of them is closed, and the start offset moves past them:
    else the group would fetch from there again and again, as in Kafka.
    """
    if not len(partition.batches) or fetch_offset >= base_offset:
        return
    first = fetch_offset
    floor = partition.batches.floor(fetch_offset)
    if floor is not None and floor.last_offset >= fetch_offset:
        first = floor.first_offset
    stale = partition.batches.between(first, base_offset - 1)
    count = partition.archive(stale, fetch_offset, base_offset - 1, RecordState.AVAILABLE)
    partition.complete_count += count
    partition.pass_gap(fetch_offset, base_offset)
    partition.move_start()


class _Acquisition:
    """An acquisition in progress."""

    def __init__(
        self,
        partition: SharePartition,
        call: AcquireCall,
        limits: Limits,
        fetched: Sequence[FetchedBatch],
        max_records: int,
    ) -> None:
        self._partition = partition
        self._call = call
        self._max_delivery_count = limits.max_delivery_count
        # A record batch with more records is acquired in parts. This bounds what the broker keeps
        # of a batch, whatever number of records its header announces, and the work for them.
        self._largest_range = max(limits.max_in_flight, WHOLE_BATCH_RECORDS)
        self._throttle_count = max(MIN_THROTTLE_COUNT, -(-limits.max_delivery_count // 2))
        self._fetched = fetched
        self._base_offset = fetched[0].base_offset
        self._left = max_records
        self._result: list[Acquired] = []

    def run(self, last_offset: int) -> list[Acquired]:
        partition, first = self._partition, self._base_offset
        floor = partition.batches.floor(first)
        if floor is None:
            first = max(first, partition.start_offset)
        elif floor.last_offset >= first:
            first = floor.first_offset
        in_flight = partition.batches.between(min(self._base_offset, first), last_offset)
        if not in_flight:
            self._add_new(first, last_offset)
            return self._result
        self._acquire_in_flight(in_flight, first, last_offset)
        end = in_flight[-1].last_offset
        if self._left > 0 and end < last_offset:
            self._add_new(end + 1, last_offset)
        if self._result:
            partition.close_gap_before(self._result[-1].last_offset + 1)
        return self._result

    # -- records in flight -------------------------------------------------------------------------

    def _acquire_in_flight(self, batches: Sequence[Batch], first: int, last_offset: int) -> None:
        """Acquire what is available. `first`: where a gap before the first batch would begin."""
        gap_start = first
        for batch in batches:
            if self._left <= 0:
                return
            if self._partition.has_gaps:
                if gap_start < batch.first_offset:
                    self._add_new(gap_start, batch.first_offset - 1)
                gap_start = batch.last_offset + 1
                if self._left <= 0:
                    return
            whole = batch.whole
            if whole is not None and whole.state is not RecordState.AVAILABLE:
                continue
            is_throttled = self._is_throttled(batch, last_offset)
            if is_throttled and self._result:
                self._left = 0
                return
            count = self._acquire_batch(batch, last_offset, is_throttled=is_throttled)
            self._left -= count
            if is_throttled and count:
                self._left = 0

    def _acquire_batch(self, batch: Batch, last_offset: int, *, is_throttled: bool) -> int:
        """Acquire a batch in flight, or some of its records. Returns how many."""
        whole = batch.whole
        exceeds_limit = self._call.has_record_limit and batch.record_count > self._left
        is_within = batch.is_within(self._base_offset, last_offset)
        if whole is None or not is_within or exceeds_limit or is_throttled:
            return self._acquire_some(batch, last_offset)
        whole.acquire(self._call.member_id, self._call.locked_until_ms)
        self._result.append(Acquired(batch.first_offset, batch.last_offset, whole.delivery_count))
        return batch.record_count

    def _acquire_some(self, batch: Batch, last_offset: int) -> int:
        """Acquire available records of a batch as far as the limits allow. Returns how many."""
        limit, last_delivery = self._left if self._call.has_record_limit else None, False
        throttled_limit: int | None = None
        most = self._max_delivery_count
        acquired: list[Acquired] = []
        count = 0
        for first, last, state in batch.states_in(self._base_offset, last_offset):
            # Equal, as in Kafka: a throttled limit may be set when the count has passed it already.
            if last_delivery or count in (limit, throttled_limit):
                break
            if state.state is not RecordState.AVAILABLE:
                continue
            last_delivery = most > MIN_THROTTLE_COUNT and state.delivery_count == most - 1
            if last_delivery and acquired:
                break  # its last delivery is for it alone
            if throttled_limit is None and state.delivery_count >= self._throttle_count:
                by = state.delivery_count - self._throttle_count + 1
                throttled_limit = max(1, batch.record_count >> by)
            end = first if last_delivery else last
            for record_limit in (limit, throttled_limit):
                if record_limit is not None and record_limit > count:
                    end = min(end, first + record_limit - count - 1)
            taken = batch.separate(first, end)
            taken.acquire(self._call.member_id, self._call.locked_until_ms)
            acquired.append(Acquired(first, end, taken.delivery_count))
            count += end - first + 1
        batch.unite()
        self._result += united(acquired)
        return count

    def _is_throttled(self, batch: Batch, last_offset: int) -> bool:
        """Whether an available record of the batch was delivered so often that few go with it."""
        return any(
            state.delivery_count >= self._throttle_count
            for _, _, state in batch.states_in(self._base_offset, last_offset)
            if state.state is RecordState.AVAILABLE
        )

    # -- new records -------------------------------------------------------------------------------

    def _add_new(self, first: int, last: int) -> None:
        """Acquire records that are not in flight, from `first` to `last` at most."""
        partition, max_records = self._partition, self._left
        if not len(partition.batches):
            first = max(first, partition.end_offset)
        end = last
        if max_records < last - first + 1:
            end = self._end_of_batch(first + max_records - 1)
            end = min(end, first + max(max_records, self._largest_range) - 1)
            if partition.has_gaps:
                end = min(end, last)
        added = self._add_batches(first, end)
        if partition.batches.first.first_offset == first:
            partition.start_offset = first
        partition.end_offset = max(partition.end_offset, end)
        if self._call.has_record_limit:
            end = added[0].last_offset
        partition.close_gap_before(end + 1)
        self._result += added
        self._left -= end - first + 1

    def _add_batches(self, first: int, last: int) -> list[Acquired]:
        """Put new batches in flight. Those after the record limit are available to others."""
        call, partition = self._call, self._partition
        if call.has_record_limit:
            batch = Batch(first, last, InFlight(RecordState.AVAILABLE, 0))
            partition.batches.put(batch)
            end = min(last, first + self._left - 1)
            batch.separate(first, end).acquire(call.member_id, call.locked_until_ms)
            if end < last:
                partition.made_available(end + 1)
            return [Acquired(first, end, 1)]
        ranges = self._divided(first, last)
        for begin, end in ranges:
            partition.batches.put(Batch(begin, end, self._new_state()))
        return [Acquired(begin, end, 1) for begin, end in ranges]

    def _new_state(self) -> InFlight:
        call = self._call
        return InFlight(RecordState.ACQUIRED, 1, call.member_id, call.locked_until_ms)

    def _divided(self, first: int, last: int) -> list[tuple[int, int]]:
        """Divide a range at record batches, into parts of the batch size or more."""
        ranges = []
        if last - first + 1 > self._call.batch_size:
            for batch in self._fetched:
                base = batch.base_offset
                if base > last:
                    break
                if base - first >= self._call.batch_size:
                    ranges.append((first, base - 1))
                    first = base
        return [*ranges, (first, last)]

    def _end_of_batch(self, offset: int) -> int:
        """The last offset of the record batch that has an offset; the offset if none has it."""
        found = None
        for batch in self._fetched:
            if batch.base_offset > offset:
                break
            found = batch
        return offset if found is None else max(offset, found.last_offset)


def united(acquired: Sequence[Acquired]) -> list[Acquired]:
    """Unite neighbours with equal delivery counts."""
    result: list[Acquired] = []
    for run in acquired:
        before = result[-1] if result else None
        if (
            before is not None
            and before.last_offset + 1 == run.first_offset
            and before.delivery_count == run.delivery_count
        ):
            result[-1] = before._replace(last_offset=run.last_offset)
        else:
            result.append(run)
    return result
