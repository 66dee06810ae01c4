"""One ShareFetch: finds what can be acquired, reads it, and acquires it for the member.

    open the share-partitions -> read from the next offset of each -> enough? -> read the batch
    headers of each -> acquire

`led` is a share-partition that this broker leads, with its log (LedPartition). Reading may have to
be tried again, because a page is not in memory or there is not enough yet. Until everything is
read, the headers too, nothing is acquired: records that an attempt acquired and could not send
would stay locked.

An attempt runs in one turn of the event loop. With many share-partitions it runs in slices. Between
slices, other requests may acquire or acknowledge records. A share-partition that has changed since
it was read is skipped. `step` is called again and again, and may end a slice (turns/slices.py).

A share-partition that cannot be read has an error; the others are answered. Records before a
damaged batch are delivered first.

Kafka: DelayedShareFetch, ShareFetchUtils.processFetchResponse.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from odradek.coordinator.runtime.steps import Step, no_step, stepping
from odradek.coordinator.runtime.timers import Now
from odradek.coordinator.share_partitions.aborted import AbortedFrom, without_aborted
from odradek.coordinator.share_partitions.acquisition import (
    AcquireCall,
    Acquired,
    FetchedBatch,
    acquire,
)
from odradek.coordinator.share_state.share_partition_key import SharePartitionKey
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.share_fetch import (
    ShareFetchAcquiredRecords,
    ShareFetchLeaderIdAndEpoch,
    ShareFetchPartitionData,
)
from odradek.storage.files import Files, WouldWaitError, combine
from odradek.storage.log import RecordsSlice

from .led_partition import Fetched, LedPartition, cut_to, fetched_batches
from .sessions import Place
from .shares import Shares

logger = logging.getLogger("odradek.shares")

Answers = dict[Place, ShareFetchPartitionData]

# An attempt reads at most this many batch headers. That takes a few milliseconds, and holds more
# records than clients ask for.
MAX_HEADERS = 1_000


class ShareFetchCall(NamedTuple):
    """What a member asks for.

    `batch_size` is about how many records an acquired range has. `has_record_limit`: `max_records`
    is a strict limit; otherwise whole batches are acquired.
    """

    group_id: str
    member_id: str
    places: Sequence[Place]
    min_bytes: int
    max_bytes: int
    max_records: int
    batch_size: int
    has_record_limit: bool


class _Read(NamedTuple):
    """What was read of a share-partition, from `offset` on.

    `aborted`: the aborted transactions in `records`. `error`: why nothing was read, or why there is
    no batch after `fetched`. `readable_bytes`: what counts for `min_bytes`. `fetched`: the headers
    of the batches.
    """

    place: Place
    led: LedPartition
    offset: int
    records: RecordsSlice | None
    aborted: Sequence[AbortedFrom]
    error: ApiError | None
    readable_bytes: int = 0
    fetched: Sequence[FetchedBatch] = ()


class ShareRead:
    """A ShareFetch in progress.

    `on_open` is called with each share-partition that an attempt uses, whether it was open already
    or not.
    """

    def __init__(
        self, shares: Shares, files: Files, call: ShareFetchCall, step: Step = no_step
    ) -> None:
        self.call = call
        self.step = step
        self.on_open: Callable[[LedPartition], object] | None = None
        self._shares = shares
        self._files = files
        self._refused: Answers = {}  # of share-partitions that could not be opened
        self._opened: set[LedPartition] = set()  # in this attempt

    def attempt(self, now: Now, *, is_last: bool) -> Answers | None:
        """Return the answers by partition; None if there is not enough yet.

        With `is_last`, what there is counts as enough. Raises WouldWaitError if a page is not in
        memory, or records take long to unpack: the caller gets them and tries again
        (cold_reads.py). Then nothing was acquired.
        """
        if not self.call.places or not self.call.max_records or not self.call.max_bytes:
            return {}
        self._opened.clear()
        share_partitions = self.open_all()
        if len(self._refused) == len(self.call.places):
            return dict(self._refused)
        reads: list[_Read] = []
        for some in self._in_order(share_partitions):
            reads = self._read_all(some)
            if self._is_enough(reads):
                break
        else:  # no group was enough
            if not is_last:
                return None
        answers = self._acquire_all(self._with_headers(reads), now)
        answers.update(self._refused)
        return answers

    def may_find(self, led: LedPartition) -> bool:
        """Whether an attempt might find records of a share-partition, or an error.

        It only compares offsets, which is quick.
        """
        try:
            if self._shares.find(led.key) is not led:
                return True
        except ApiError:
            return True
        offset, log = led.partition.offset_to_fetch(led.limits()), led.log
        if offset is None:
            return False
        committed = self._shares.configs.reads_committed(self.call.group_id)
        end = log.last_stable_offset if committed else log.high_watermark
        # Between these offsets there is nothing to read yet. Beyond the watermark is an error.
        return not (log.is_online and end <= offset <= log.high_watermark)

    def _is_enough(self, reads: Sequence[_Read]) -> bool:
        size = 0
        for read in stepping(reads, self.step):
            if read.error is not None:
                return True  # an error is answered at once
            size += read.readable_bytes
        return bool(reads) and size >= self.call.min_bytes

    def _in_order(
        self, share_partitions: Sequence[LedPartition]
    ) -> Iterator[Sequence[LedPartition]]:
        """Yield groups of share-partitions to try in turn. The last group is all of them.

        Those that this attempt has opened come after the others, and one at a time: Kafka answers
        with what has been opened, while the states of others are still being read.
        """
        new = [led for led in share_partitions if led in self._opened]
        if new and len(share_partitions) > 1:
            yield [led for led in share_partitions if led not in self._opened]
            for led in new:
                yield [led]
        yield share_partitions

    def open_all(self) -> list[LedPartition]:
        """Open the share-partitions, and return those that are open.

        One with an error gets it as its answer, and is not tried again. One whose stored state
        cannot be read now has no answer, and the next attempt tries it again: consumers take
        COORDINATOR_NOT_AVAILABLE of a ShareFetch for a fault.
        """
        share_partitions: list[LedPartition] = []
        for place in stepping(self.call.places, self.step):
            if place in self._refused:
                continue
            key = SharePartitionKey(self.call.group_id, *place)
            try:
                led = self._open(key)
            except WouldWaitError:
                raise
            except ApiError as error:
                if error.code is not ErrorCode.COORDINATOR_NOT_AVAILABLE:
                    self._refused[place] = partition_with_error(place[1], error)
                continue
            except Exception:  # a fault in odradek: the other partitions are answered
                logger.exception("%s is not opened", key.text)
                fault = ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "it is in the log of the broker")
                self._refused[place] = partition_with_error(place[1], fault)
                continue
            share_partitions.append(led)
            if self.on_open is not None:
                self.on_open(led)
        return share_partitions

    def _open(self, key: SharePartitionKey) -> LedPartition:
        led = self._shares.find(key)
        if led is None:
            led = self._shares.open(key, self.step)
            self._opened.add(led)
        return led

    # -- read --------------------------------------------------------------------------------------

    def _read_all(self, share_partitions: Sequence[LedPartition]) -> list[_Read]:
        """Read every share-partition of which something can be acquired."""
        offsets = (
            (led, led.partition.offset_to_fetch(led.limits()))
            for led in stepping(share_partitions, self.step)
        )
        ready = [(led, offset) for led, offset in offsets if offset is not None]
        if not ready:
            return []
        reads = []
        missing: list[WouldWaitError] = []
        left, is_first = self.call.max_bytes, True
        byte_limits = _divide(self.call.max_bytes, len(ready))
        for (led, offset), byte_limit in zip(stepping(ready, self.step), byte_limits, strict=True):
            try:
                read = self._read(led, offset, min(byte_limit, left), is_first=is_first)
            except WouldWaitError as error:
                missing.append(error.with_traceback(None))
                continue
            reads.append(read)
            if read.records is not None and read.records.size_bytes:
                is_first = False
                left = max(left - read.records.size_bytes, 0)
        if missing:
            raise combine(missing)
        return reads

    def _read(self, led: LedPartition, offset: int, max_bytes: int, *, is_first: bool) -> _Read:
        place = led.key.topic_id, led.key.partition
        committed = self._shares.configs.reads_committed(self.call.group_id)
        aborted: Sequence[AbortedFrom] = ()
        try:
            if committed:
                read = led.log.read_committed(offset, max_bytes, at_least_one_batch=is_first)
                records = read.records
                aborted = [
                    AbortedFrom(each.producer_id, each.first_offset) for each in read.aborted
                ]
            else:
                records = led.log.read(offset, max_bytes, at_least_one_batch=is_first)
            size = records.size_bytes
            if self.call.min_bytes > 1 and size < self.call.min_bytes:
                size = led.log.readable_bytes(records, offset, max_bytes, committed=committed)
        except ApiError as error:
            return _Read(place, led, offset, None, (), error.with_traceback(None))
        return _Read(place, led, offset, records, aborted, None, size)

    def _with_headers(self, reads: Sequence[_Read]) -> list[_Read]:
        """Read the headers of the batches that can be acquired.

        MAX_HEADERS is the limit for all share-partitions together. Those beyond it get nothing now.
        Each request starts with a different share-partition, so their turn comes.
        """
        complete = []
        missing: list[WouldWaitError] = []
        left = MAX_HEADERS
        for read in stepping(reads, self.step):
            if read.records is None or not read.records.size_bytes:
                complete.append(read)
                continue
            try:
                fetched, error = self._headers(read, read.records, left)
            except WouldWaitError as cold:
                missing.append(cold.with_traceback(None))
            except ApiError as failure:
                complete.append(read._replace(records=None, error=failure.with_traceback(None)))
            else:
                left -= len(fetched)
                complete.append(read._replace(fetched=fetched, error=error))
        if missing:
            raise combine(missing)
        return complete

    def _headers(self, read: _Read, records: RecordsSlice, limit: int) -> Fetched:
        partition = read.led.partition
        record_limit = min(self.call.max_records, read.led.limits().max_in_flight)
        return fetched_batches(
            self._files,
            read.led.log,
            records,
            last_needed_offset=max(partition.end_offset, read.offset) + record_limit,
            limit=limit,
            finds_aborted=bool(read.aborted),
            step=self.step,
        )

    # -- acquire -----------------------------------------------------------------------------------

    def _acquire_all(self, reads: Sequence[_Read], now: Now) -> Answers:
        answers: Answers = {}
        left = self.call.max_records
        for read in stepping(reads, self.step):
            acquired, records = self._acquire(read, left, now)
            if read.error is not None and not acquired:
                answers[read.place] = self._with_error(read, read.error)
                continue
            left -= sum(run.record_count for run in acquired)
            answers[read.place] = answered_partition(read.place[1], records, acquired)
        return answers

    def _with_error(self, read: _Read, error: ApiError) -> ShareFetchPartitionData:
        """Answer a failed read.

        OFFSET_OUT_OF_RANGE: the log start has moved past the offset. The start of the
        share-partition is moved there, and the answer has no records. The next fetch goes on from
        the new start.
        """
        if error.code is not ErrorCode.OFFSET_OUT_OF_RANGE:
            return partition_with_error(read.place[1], error)
        read.led.partition.log_start_moved(read.led.log.log_start_offset)
        return answered_partition(read.place[1], b"", [])

    def _acquire(
        self, read: _Read, max_records: int, now: Now
    ) -> tuple[list[Acquired], RecordsSlice | bytes]:
        records, led, call = read.records, read.led, self.call
        if records is None or not read.fetched or max_records <= 0:
            return [], b""
        partition, fetched = led.partition, read.fetched
        if self.step is not no_step and self._has_changed(read):
            return [], b""
        until_ms = now.timer_ms + self._shares.lock_duration_ms(call.group_id)
        wanted = AcquireCall(
            call.member_id, max_records, call.batch_size, call.has_record_limit, until_ms
        )
        start_offset = partition.start_offset
        acquired = acquire(partition, wanted, led.limits(), read.offset, fetched)
        if acquired:
            self._shares.locked(led.key, until_ms)
            acquired = without_aborted(partition, acquired, fetched, read.aborted)
        if partition.start_offset > start_offset:
            led.notify()  # its limit of records in flight allows others now
        if not acquired:
            return [], b""
        first, last = acquired[0].first_offset, acquired[-1].last_offset
        return acquired, cut_to(records, fetched, first, last)

    def _has_changed(self, read: _Read) -> bool:
        """Whether a share-partition was closed, or was changed by others, since it was read."""
        led = read.led
        is_next = led.partition.offset_to_fetch(led.limits()) == read.offset
        return not (is_next and self._shares.is_open(led))


def _divide(max_bytes: int, count: int) -> list[int]:
    """Divide bytes evenly. One of the parts, chosen at random, also gets the remainder."""
    size, rest = divmod(max_bytes, count)
    sizes = [size] * count
    sizes[random.randrange(count)] += rest
    return sizes


def _unset_leader() -> ShareFetchLeaderIdAndEpoch:
    """A leader that is not named: as in Kafka, both fields are 0."""
    return ShareFetchLeaderIdAndEpoch(leader_id=0, leader_epoch=0)


def answered_partition(
    partition: int, records: RecordsSlice | bytes, acquired: Sequence[Acquired]
) -> ShareFetchPartitionData:
    """Make the entry of a partition without an error."""
    return ShareFetchPartitionData(
        partition_index=partition,
        acknowledge_error_code=ErrorCode.NONE,
        current_leader=_unset_leader(),
        records=records,
        acquired_records=[
            ShareFetchAcquiredRecords(
                first_offset=run.first_offset,
                last_offset=run.last_offset,
                delivery_count=run.delivery_count,
            )
            for run in acquired
        ],
    )


def partition_with_error(partition: int, error: ApiError) -> ShareFetchPartitionData:
    """Make the entry of a partition with an error. As in Kafka, it has no message."""
    return ShareFetchPartitionData(
        partition_index=partition,
        error_code=error.code,
        acknowledge_error_code=ErrorCode.NONE,
        current_leader=_unset_leader(),
        records=b"",
        acquired_records=[],
    )
