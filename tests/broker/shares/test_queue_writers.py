"""What is written to a dead-letter queue, batch by batch, and how often that is tried."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from odradek.broker.disk.batch_reads import BatchReads
from odradek.broker.disk.cold_reads import ColdReads
from odradek.broker.disk.disk_executor import DiskExecutor
from odradek.broker.shares.dead_letter_queues import (
    DeadLetterQueues,
    QueueCounts,
    QueueWriter,
    Source,
)
from odradek.broker.shares.originals import WINDOW_BYTES, OriginalsReader
from odradek.broker.shares.queue_topics import QueueTopic
from odradek.coordinator.any_group.group_settings import ShareGroupSettings
from odradek.coordinator.runtime.steps import no_step
from odradek.coordinator.share_groups.group_configs import ShareGroupConfigs
from odradek.coordinator.share_partitions.dead_letters import Cause, DeadLetters
from odradek.protocol.batch_header import HEADER_BYTES
from odradek.protocol.compression import CompressionType
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.record import Record, read_records
from odradek.protocol.record_batch import build_batch
from odradek.storage.files import OpenFile
from tests.support import hostile_batches
from tests.support.partition_logs import UnsyncedFiles, open_log

NOW_MS = 1_000
HUGE = 1 << 20
Written = list[tuple[int, list[tuple[int, bytes | None]]]]


class CountingFiles(UnsyncedFiles):
    """Files that count how often batches are read."""

    def __init__(self) -> None:
        self.reads = 0

    def pread_exact(self, file: OpenFile, size: int, position: int) -> bytes:
        self.reads += size > HEADER_BYTES
        return super().pread_exact(file, size, position)


class Queue:
    """A queue whose topic has two partitions.

    `errors` are what the next appends raise, `missing` what the next searches of the topic raise.
    `on_pause` is called before another attempt.
    """

    def __init__(self, root: Path, *, max_bytes: int, copies: bool) -> None:
        self.files = CountingFiles()
        self.log = open_log(root, "t", 3, files=self.files)
        self.max_bytes = max_bytes
        self.overrides = {
            "errors.deadletterqueue.topic.name": "dlq.t",
            "errors.deadletterqueue.copy.record.enable": str(copies).lower(),
        }
        self.errors: list[ApiError] = []
        self.missing: list[ApiError] = []
        self.slept: list[float] = []
        self.on_pause: Callable[[], object] = lambda: None
        self.written: Written = []
        self.settings = ShareGroupSettings()
        self.is_enabled = True
        self.is_strict = False  # refuse larger batches, too

    def produce(self, *values: bytes | None, codec: CompressionType = CompressionType.NONE) -> None:
        records = [Record(None, value, NOW_MS) for value in values]
        self.log.append(build_batch(records, compression=codec), now_ms=NOW_MS)

    def write(self, *ranges: tuple[int, int]) -> DeadLetterQueues:
        """Give up these offsets, and write all of them."""
        return asyncio.run(self._write([letters(*each) for each in ranges]))

    def write_apart(self, *ranges: tuple[int, int]) -> DeadLetterQueues:
        """Write each range before the next one is given up."""
        return asyncio.run(self._write(*([letters(*each)] for each in ranges)))

    async def _write(self, *given_up: Sequence[DeadLetters]) -> DeadLetterQueues:
        disk = DiskExecutor(asyncio.get_running_loop())
        reads = ColdReads(self.files, disk, no_walk)
        queues = DeadLetterQueues(
            ShareGroupConfigs(self.settings, lambda _group_id: self.overrides),
            self,  # type: ignore[arg-type] # as much of QueueTopics as is needed
            OriginalsReader(BatchReads(self.files, disk, reads)),
            self,  # type: ignore[arg-type] # and of OwnAppends
            is_enabled=lambda: self.is_enabled,
        )
        writer = QueueWriter(queues, Source("g", 3, self.log), self._pause)
        try:
            for wanted in given_up:
                left = list(wanted)
                while left:
                    count = await writer.write(left, no_step)
                    while left and count:
                        taken = min(count, left[0].record_count)
                        count -= taken
                        first = left.pop(0)
                        if taken < first.record_count:
                            left.insert(0, first._replace(first_offset=first.first_offset + taken))
        finally:
            disk.close()
        return queues

    async def _pause(self, seconds: float) -> bool:
        self.slept.append(seconds)
        self.on_pause()
        return True

    async def find(self, group_id: str) -> QueueTopic:
        assert group_id == "g"
        if self.missing:
            raise self.missing.pop(0)
        return QueueTopic("dlq.t", 2, self.max_bytes)

    def now_ms(self) -> int:
        return NOW_MS

    async def append(self, topic: str, partition: int, batch: bytearray) -> None:
        if self.errors:
            raise self.errors.pop(0)
        if len(batch) > self.max_bytes and self.is_strict:
            raise ApiError(ErrorCode.MESSAGE_TOO_LARGE, f"{len(batch)} bytes are too many")
        assert (topic, partition) == ("dlq.t", 1)
        found = [(offset_of(record), record.value) for record in read_records(batch)]
        self.written.append((len(batch), found))

    @property
    def batches(self) -> list[list[int]]:
        """The offsets in each batch."""
        return [[offset for offset, _ in records] for _, records in self.written]

    @property
    def values(self) -> list[bytes | None]:
        return [value for _, records in self.written for _, value in records]


async def no_walk(*_: Any) -> object:
    raise AssertionError("nothing is walked")


def letters(first: int, last: int) -> DeadLetters:
    return DeadLetters(first, last, 1, Cause.REJECTED)


def offset_of(record: Record) -> int:
    return int(dict(record.headers)["__dlq.errors.offset"] or b"")


@pytest.fixture
def open_queue(tmp_path: Path) -> Callable[..., Queue]:
    def open_one(*, max_bytes: int = HUGE, copies: bool = True) -> Queue:
        return Queue(tmp_path, max_bytes=max_bytes, copies=copies)

    return open_one


def test_a_batch_is_as_large_as_the_queue_allows(open_queue: Callable[..., Queue]) -> None:
    queue = open_queue(max_bytes=1_000, copies=False)
    queue.write((0, 4), (7, 7), (9, 20))
    assert [offset for batch in queue.batches for offset in batch] == [*range(5), 7, *range(9, 21)]
    sizes = [size for size, _ in queue.written]
    assert all(800 < size <= 1_000 for size in sizes[:-1]), sizes


def test_a_record_that_is_too_large_is_alone(open_queue: Callable[..., Queue]) -> None:
    queue = open_queue(max_bytes=300)
    queue.produce(b"a", b"b" * 200, b"c")
    queue.write((0, 2))
    assert queue.batches == [[0], [1], [2]]
    assert queue.written[1][0] > 300


def test_values_that_the_queue_cannot_take_are_left_out(open_queue: Callable[..., Queue]) -> None:
    queue = open_queue(max_bytes=300)
    queue.produce(b"a", b"b" * 400, b"c")
    queue.produce(b"d" * 200, b"e" * 200, codec=CompressionType.GZIP)
    queue.produce(b"f" * 200, codec=CompressionType.GZIP)
    queue.write((0, 5))
    assert queue.values == [b"a", None, b"c", None, None, b"f" * 200]


def test_records_are_read_where_they_are_needed(open_queue: Callable[..., Queue]) -> None:
    queue = open_queue()
    for number in range(500):
        queue.produce(b"%d" % number)
    queue.write((400, 401), (3, 3), (5, 5), (450, 450), (2, 2), (499, 600))
    assert queue.values[:7] == [b"400", b"401", b"3", b"5", b"450", b"2", b"499"]
    assert set(queue.values[7:]) == {None}
    assert len(queue.values) == 108


def test_records_that_the_log_has_lost_are_described(open_queue: Callable[..., Queue]) -> None:
    queue = open_queue()
    queue.produce(b"a", b"b", b"c", b"d")
    queue.log.increment_log_start_offset(2)
    queue.write((0, 0), (1, 1), (2, 2), (3, 3))
    assert queue.values == [None, None, b"c", b"d"]


def test_the_rest_of_a_range_that_the_log_has_lost_in_part_is_copied(
    open_queue: Callable[..., Queue], caplog: pytest.LogCaptureFixture
) -> None:
    queue = open_queue()
    queue.produce(b"a", b"b", b"c", b"d")
    queue.log.increment_log_start_offset(2)
    queue.write((0, 3))
    assert queue.values == [None, None, b"c", b"d"]
    assert len(caplog.messages) == 1


def test_the_rest_of_a_range_after_a_full_window_is_copied(
    open_queue: Callable[..., Queue], caplog: pytest.LogCaptureFixture
) -> None:
    """The next batch is read, and there is no room for its record."""
    queue = open_queue(max_bytes=WINDOW_BYTES)
    for _ in range(4):
        queue.produce(b"v" * (WINDOW_BYTES // 2))
    queue.write((0, 3))
    assert [value and len(value) for value in queue.values] == [WINDOW_BYTES // 2] * 4
    assert caplog.messages == []


def test_a_log_that_loses_records_while_they_are_read_loses_no_others(
    open_queue: Callable[..., Queue],
) -> None:
    queue = open_queue(max_bytes=WINDOW_BYTES)
    for _ in range(4):
        queue.produce(b"v" * (WINDOW_BYTES // 2))
    queue.errors = [ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "full")]
    queue.on_pause = lambda: queue.log.increment_log_start_offset(3)
    queue.write((0, 3))
    assert [value and len(value) for value in queue.values] == [None] * 3 + [WINDOW_BYTES // 2]


def test_a_damaged_log_loses_values_only(
    open_queue: Callable[..., Queue], caplog: pytest.LogCaptureFixture
) -> None:
    queue = open_queue()
    queue.produce(b"a", codec=CompressionType.GZIP)
    queue.produce(b"b")
    segment = queue.log.directory / "00000000000000000000.log"
    content = bytearray(segment.read_bytes())
    content[70:80] = bytes(10)
    segment.write_bytes(content)
    queue.write((0, 0), (1, 1))
    assert queue.values == [None, b"b"]
    assert caplog.text.count("t-3 from offset 0 on are written to a dead-letter queue without") == 1


def test_records_that_claim_offsets_of_others_are_described(
    open_queue: Callable[..., Queue],
) -> None:
    queue = open_queue()
    batch = hostile_batches.records(7_000, CompressionType.NONE)
    queue.log.append(batch, now_ms=hostile_batches.NOW_MS)
    queue.produce(b"a")
    queue.write(*((offset, offset) for offset in range(0, 1001, 2)))
    assert queue.values == [*[None] * 500, b"a"]
    assert queue.files.reads == 1


def test_a_passing_error_is_tried_again(open_queue: Callable[..., Queue]) -> None:
    queue = open_queue()
    queue.produce(b"a")
    queue.errors = [ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "full")] * 4
    queues = queue.write((0, 0))
    assert queue.values == [b"a"]
    assert queue.slept == [1, 2, 4, 8]
    assert queues.counts == {"g": QueueCounts(records=1, writes=5, failed_writes=0)}


def test_a_queue_that_takes_less_by_then_gets_smaller_batches(
    open_queue: Callable[..., Queue],
) -> None:
    queue = open_queue(copies=False)
    queue.is_strict = True
    queue.errors = [ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "full")]
    queue.on_pause = lambda: setattr(queue, "max_bytes", 500)
    queues = queue.write((0, 5))
    assert [offset for batch in queue.batches for offset in batch] == [*range(6)]
    assert len(queue.batches) > 1
    assert queues.counts["g"].failed_writes == 0


def test_a_topic_that_is_deleted_meanwhile_is_looked_for_again(
    open_queue: Callable[..., Queue],
) -> None:
    queue = open_queue()
    queue.produce(b"a")
    gone = ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "it was deleted")
    queue.missing, queue.errors = [gone, gone], [gone]
    queue.write((0, 0))
    assert queue.values == [b"a"]
    assert queue.slept == [1, 2, 4]


def test_an_error_that_does_not_pass_gives_the_batch_up(
    open_queue: Callable[..., Queue], caplog: pytest.LogCaptureFixture
) -> None:
    queue = open_queue(max_bytes=300)
    queue.produce(*[b"%d" % number for number in range(4)])
    queue.errors = [ApiError(ErrorCode.MESSAGE_TOO_LARGE, "it is too large")]
    queues = queue.write((0, 3))
    assert queue.batches == [[1], [2], [3]]
    assert "1 record that group g has given up in t-3, from offset 0 on, cannot be written" in (
        caplog.text
    )
    queue.errors = [ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "full")] * 5
    queues = queue.write((0, 0))
    assert queues.counts == {"g": QueueCounts(records=0, writes=5, failed_writes=1)}


def test_a_cause_is_logged_once_until_it_changes(
    open_queue: Callable[..., Queue], caplog: pytest.LogCaptureFixture
) -> None:
    queue = open_queue(copies=False)

    def refusal(number: int) -> ApiError:
        return ApiError(ErrorCode.INVALID_CONFIG, f"setting {number} is wrong")

    queue.missing = [*[refusal(1)] * 3, *[refusal(2)] * 2]
    queue.write_apart((0, 0), (1, 5), (5, 5), (6, 6), (7, 7), (8, 8))
    assert [text.partition("has given up ")[2] or text for text in caplog.messages] == [
        "in t-3, from offset 0 on, cannot be written to the dead-letter queue: setting 1 is wrong",
        "6 records more of group g could not be written to the dead-letter queue",
        "in t-3, from offset 6 on, cannot be written to the dead-letter queue: setting 2 is wrong",
        "1 record more of group g could not be written to the dead-letter queue",
    ]


def test_records_that_are_too_large_are_one_cause(
    open_queue: Callable[..., Queue], caplog: pytest.LogCaptureFixture
) -> None:
    queue = open_queue(max_bytes=300)
    queue.is_strict = True
    queue.produce(*[b"v" * (180 + number) for number in range(8)])
    queue.write((0, 7))
    assert queue.batches == []
    assert [text for text in caplog.messages if "cannot be written" in text] == [
        "1 record that group g has given up in t-3, from offset 0 on, cannot be written to the "
        "dead-letter queue: 417 bytes are too many"
    ]


def test_what_is_known_of_a_group_is_forgotten_with_it(
    open_queue: Callable[..., Queue], caplog: pytest.LogCaptureFixture
) -> None:
    queue = open_queue()
    queue.errors = [ApiError(ErrorCode.INVALID_CONFIG, "it is compacted")]
    queues = queue.write((0, 0))
    queues.forget("g")
    assert queues.counts == {}
    caplog.clear()
    queues.refusals.written("g")
    assert caplog.messages == []


def test_without_a_class_that_writes_queues_nothing_is_written(
    open_queue: Callable[..., Queue], caplog: pytest.LogCaptureFixture
) -> None:
    queue = open_queue()
    queue.settings = ShareGroupSettings(writes_queues=False)
    queue.write((0, 3))
    assert queue.written == []
    assert "no class writes dead-letter queues" in caplog.text


def test_a_group_has_a_queue_if_it_names_one_and_the_metadata_allows_it(
    open_queue: Callable[..., Queue],
) -> None:
    queue = open_queue()
    queues = queue.write()
    assert queues.has("g")
    queue.is_enabled = False
    assert not queues.has("g")
    queue.is_enabled = True
    del queue.overrides["errors.deadletterqueue.topic.name"]
    assert not queues.has("g")
