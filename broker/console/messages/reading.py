"""Reads a topic for one request: its partitions, their offsets, and batches, by Kafka's requests.

What holds up the event loop is done elsewhere: files are read and small batches are decompressed by
a thread of the disk; a batch that is large, or unpacks to much, is read by another process.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator
from functools import partial
from typing import NamedTuple

from odradek.broker.console.calls import Call
from odradek.protocol.any_batch import read_any_header
from odradek.protocol.batch_header import (
    LOG_OVERHEAD,
    MAGIC_V2,
    BatchHeader,
    CorruptRecordError,
    TooManyRecordsError,
)
from odradek.protocol.compression import CompressionType
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.fetch import (
    FetchAbortedTransaction,
    FetchPartition,
    FetchPartitionData,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from odradek.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from odradek.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from odradek.protocol.record import Record, read_payload, read_records, skim_payload
from odradek.protocol.records.control import ControlRecordType, control_type
from odradek.storage.log import RecordsSlice
from odradek.storage.record_walk import WalkLimits

from .filters import JsonPath
from .picking import Picks, Walked, is_packed_set, plain_records, unpacked, walk_batch

READ_COMMITTED = 1
LATEST = -1
EARLIEST = -2
FETCH_BYTES = 1 << 20
FIRST_FETCH_BYTES = 64 << 10
# A batch with more is read in another process. So is one that unpacks to more.
LARGE_BATCH_BYTES = 1 << 20
HERE = WalkLimits(4 << 20, 100_000)
# A batch with more headers is read in another process: one record may have them all.
MANY_HEADERS = 5000
_SMALLEST_HEADER = 2
_THROTTLED_TIMES = 3


class Topic(NamedTuple):
    """A topic that the client may read."""

    name: str
    topic_id: bytes
    partitions: list[int]


class Range(NamedTuple):
    """The offsets of a partition that a client may see: from `start` on, and before `end`."""

    start: int
    end: int


class StoredBatch(NamedTuple):
    """A batch as it is in the log."""

    header: BatchHeader
    data: memoryview
    is_aborted: bool


class Unreadable(NamedTuple):
    """A batch that cannot be read."""

    partition: int
    first_offset: int
    last_offset: int
    reason: str


class Budget:
    """How much a request may read, and how long."""

    def __init__(self, max_bytes: int, max_s: float) -> None:
        self._left_bytes = max_bytes
        self._until_s = time.monotonic() + max_s

    def spend(self, size_bytes: int) -> None:
        """Note what was read."""
        self._left_bytes -= size_bytes

    @property
    def is_over(self) -> bool:
        """Whether nothing more may be read."""
        return self._left_bytes <= 0 or time.monotonic() >= self._until_s


async def find_topic(call: Call, name: str) -> Topic:
    """Raises ApiError."""
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False
    )
    answer = await call.ask(request, MetadataResponse)
    (topic,) = answer.topics
    _check(topic.error_code, f"topic {name}")
    return Topic(name, topic.topic_id, sorted(each.partition_index for each in topic.partitions))


MatchesPath = Callable[[Record, JsonPath], Awaitable[bool]]


class Reader:
    """Reads one topic for one request.

    `matches_path` tells whether a record matches a JSON path. `unreadable` are the records that
    were left out.
    """

    def __init__(
        self, call: Call, topic: Topic, isolation: int, matches_path: MatchesPath, budget: Budget
    ) -> None:
        self.call = call
        self.topic = topic
        self.budget = budget
        self.unreadable: list[Unreadable] = []
        self._isolation = isolation
        self._matches_path = matches_path

    # -- offsets ----------------------------------------------------------------------------------

    async def ranges(self, partitions: Iterable[int]) -> dict[int, Range]:
        """The offsets of partitions. Raises ApiError."""
        named = list(partitions)
        starts = await self.offsets_at(named, EARLIEST)
        ends = await self.offsets_at(named, LATEST)
        # The log may have been shortened between the two.
        return {each: Range(min(starts[each], ends[each]), ends[each]) for each in named}

    async def offsets_at(self, partitions: Iterable[int], timestamp_ms: int) -> dict[int, int]:
        """The first offsets from a time on, or of LATEST or EARLIEST; -1: none. May raise."""
        wanted = [
            ListOffsetsPartition(partition_index=each, timestamp=timestamp_ms)
            for each in self.call.sliced(iter(partitions))
        ]
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=self._isolation,
            topics=[ListOffsetsTopic(name=self.topic.name, partitions=wanted)],
        )
        answer = await self.call.ask(request, ListOffsetsResponse)
        found = {}
        for topic in answer.topics:
            for each in self.call.sliced(iter(topic.partitions)):
                _check(each.error_code, f"{self.topic.name}-{each.partition_index}")
                found[each.partition_index] = each.offset
        return found

    # -- batches ----------------------------------------------------------------------------------

    async def batches(self, partition: int, offset: int, max_bytes: int) -> list[StoredBatch]:
        """Whole batches, from the one with an offset on; none at the end. Raises ApiError.

        They end before a batch whose header is damaged. If that is the first, CORRUPT_MESSAGE is
        raised.
        """
        answer = await self._fetch(partition, offset, max_bytes)
        records = answer.records
        if not isinstance(records, RecordsSlice) or not records.size_bytes:
            return []
        broker = self.call.observed.broker
        try:
            data = await broker.disk.run(
                broker.log_manager.files.pread_exact,
                records.file,
                records.size_bytes,
                records.position,
            )
        except (OSError, EOFError) as error:
            text = f"{self.topic.name}-{partition}: {error}"
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, text) from error
        self.budget.spend(len(data))
        found: list[StoredBatch] = []
        try:
            cut = self.call.sliced(_cut(data))
            for batch in _with_aborted(cut, answer.aborted_transactions or []):
                found.append(batch)  # noqa: PERF402 # those before an error are kept
        except CorruptRecordError as error:
            if not found:
                text = f"{self.topic.name}-{partition} after offset {offset}: {error}"
                raise ApiError(ErrorCode.CORRUPT_MESSAGE, text) from None
        return found

    async def _fetch(self, partition: int, offset: int, max_bytes: int) -> FetchPartitionData:
        wanted = FetchPartition(
            partition=partition, fetch_offset=offset, partition_max_bytes=max_bytes
        )
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=max_bytes,
            isolation_level=self._isolation,
            topics=[FetchTopic(topic_id=self.topic.topic_id, partitions=[wanted])],
        )
        for _ in range(_THROTTLED_TIMES):  # the answer to a throttled Fetch is empty
            answer = await self.call.ask(request, FetchResponse)
            _check(answer.error_code, self.topic.name)
            if answer.responses:
                (found,) = answer.responses[0].partitions
                _check(found.error_code, f"{self.topic.name}-{partition}, offset {offset}")
                return found
        raise ApiError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, "your quota for reading is used up")

    # -- records ----------------------------------------------------------------------------------

    def is_hidden(self, batch: StoredBatch) -> bool:
        """Whether the client does not see its records: aborted ones and markers, as consumers."""
        is_committed = self._isolation == READ_COMMITTED
        return batch.is_aborted or (is_committed and batch.header.is_control)

    async def pick(self, batch: StoredBatch, picks: Picks) -> None:
        """Pick the wanted records of a batch. One that cannot be read is noted."""
        if self.is_hidden(batch):
            return
        if batch.header.is_control and not picks.want.filter.is_empty:
            return  # markers have no content
        try:
            if not await self._pick_here(batch, picks):
                await self._pick_elsewhere(batch, picks)
        except (CorruptRecordError, ApiError) as error:
            if isinstance(error, ApiError) and error.code not in _OF_A_BATCH:
                raise
            header = batch.header
            last_offset = max(header.base_offset, header.last_offset)
            self.leave_out(picks.want.partition, header.base_offset, last_offset, error)

    def leave_out(self, partition: int, first: int, last: int, error: Exception) -> None:
        """Note records that cannot be read."""
        reason = str(error) or "it is damaged"
        self.unreadable.append(Unreadable(partition, first, last, reason))

    async def _pick_here(self, batch: StoredBatch, picks: Picks) -> bool:
        """Pick on the event loop. Returns whether that was possible; else nothing was picked."""
        header, data = batch.header, batch.data
        if is_packed_set(header) or len(data) > LARGE_BATCH_BYTES:
            return False
        records: Iterable[Record]
        if header.magic != MAGIC_V2:
            records = plain_records(data, header)
        else:
            try:
                if header.compression is CompressionType.NONE:
                    content = unpacked(data, header, HERE)
                else:
                    disk = self.call.observed.broker.disk
                    content = await disk.run(unpacked, data, header, HERE)
                if len(content) > MANY_HEADERS * _SMALLEST_HEADER:
                    skims = skim_payload(content, header, MANY_HEADERS)
                    deque(self.call.sliced(skims), maxlen=0)
            except TooManyRecordsError:
                return False
            records = read_payload(content, header)
        await self._pick_each(iter(records), header, picks)
        return True

    async def _pick_each(
        self, records: Iterator[Record], header: BatchHeader, picks: Picks
    ) -> None:
        want = picks.want
        wanted, first, end = want.filter, want.first, want.end
        takes_all = wanted.is_empty
        last = deque[Record](
            maxlen=want.max_records
        )  # of those that match, if the newest are wanted
        for record in self.call.sliced(records):
            if record.offset < first:
                continue
            if record.offset >= end or picks.is_complete:
                break
            picks.pass_by(record)
            if not takes_all:
                if not wanted.matches_text(record.key, record.value, record.headers):
                    continue
                if wanted.path is not None and not await self._matches_path(record, wanted.path):
                    continue
            if want.newest:
                picks.is_full = picks.is_full or len(last) == want.max_records
                last.append(record)
            else:
                picks.add(record, header)
        for record in self.call.sliced(iter(last)):
            picks.add(record, header)

    async def _pick_elsewhere(self, batch: StoredBatch, picks: Picks) -> None:
        walks = self.call.observed.broker.fetching.walks
        walk = partial(walk_batch, want=picks.want)
        walked: Walked = await walks.run(walk, bytes(batch.data), self.call.session.client)
        for picked in walked.records:
            picks.put(picked)
        if walked.undecided is not None:
            reason = "a JSON path does not lead into values with a schema in so large a batch"
            self.leave_out(picks.want.partition, *walked.undecided, ValueError(reason))
        picks.is_full = picks.is_full or walked.is_full
        if picks.oldest_ms is None:
            picks.oldest_ms = walked.oldest_ms
        if walked.newest_ms is not None:
            picks.newest_ms = walked.newest_ms


# Errors of another process that are about the batch. Others are about the broker.
_OF_A_BATCH = (ErrorCode.CORRUPT_MESSAGE, ErrorCode.MESSAGE_TOO_LARGE)


def _check(error_code: int, what: str) -> None:
    """Raise ApiError if a part of a response has an error."""
    if error_code:
        code = ErrorCode(error_code)
        raise ApiError(code, f"{what}: {code.name}")


def _cut(data: bytes) -> Iterator[tuple[BatchHeader, memoryview]]:
    """The batches in what Fetch returns. Raises CorruptRecordError."""
    view = memoryview(data)
    position = 0
    while position < len(data):
        header = read_any_header(data, position)
        if header.size_bytes <= LOG_OVERHEAD:
            raise CorruptRecordError(f"the batch at offset {header.base_offset} has no content")
        yield header, view[position : position + header.size_bytes]
        position += header.size_bytes


def _with_aborted(
    batches: Iterable[tuple[BatchHeader, memoryview]], aborted: list[FetchAbortedTransaction]
) -> Iterator[StoredBatch]:
    """Mark the batches of aborted transactions, as consumers find them. Raises CorruptRecordError.

    Kafka: CompletedFetch.nextFetchedRecord.
    """
    waiting = sorted(aborted, key=lambda each: each.first_offset, reverse=True)
    current: set[int] = set()
    for header, data in batches:
        while waiting and waiting[-1].first_offset <= header.last_offset:
            current.add(waiting.pop().producer_id)
        is_of_aborted = header.is_transactional and header.producer_id in current
        if header.is_control and header.producer_id in current and _is_abort(header, data):
            current.discard(header.producer_id)
        yield StoredBatch(header, data, is_of_aborted and not header.is_control)


def _is_abort(header: BatchHeader, data: memoryview) -> bool:
    record = next(iter(read_records(data, header=header)), None)
    return record is not None and control_type(record.key) is ControlRecordType.ABORT
