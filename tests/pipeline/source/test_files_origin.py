"""Planning and reading by files, as a task does it, without Spark."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from odradek.pipeline.reading.partitions import LogDirectories
from odradek.pipeline.reading.range_reader import OffsetRange
from odradek.pipeline.source.broker_origin import BrokerOrigin
from odradek.pipeline.source.files_origin import FilesOrigin
from odradek.pipeline.source.options import ReadOptions, read_options
from odradek.pipeline.source.task import read_range, reads_files
from odradek.protocol.compression import CompressionType
from odradek.storage.files import Files, OpenFile
from odradek.storage.log import PartitionLog
from odradek.storage.topic_partition import TopicPartition
from tests.pipeline.source.origins import tp
from tests.support.crashing_files import QuickFiles
from tests.support.dirty_logs import end_transaction
from tests.support.log_box import NOW_MS, LogBox, batch_of, put

ORDERS = tp("orders-0")


def box_at(root: Path, **settings: Any) -> LogBox:
    return LogBox(root, files=QuickFiles(), **settings)


def options(root: Path, **given: str) -> ReadOptions:
    texts = {"path": str(root), "subscribe": "orders", "mode": "files", **given}
    return read_options(texts, streaming=None)


def origin(root: Path, **given: str) -> FilesOrigin:
    chosen = options(root, **given)
    return FilesOrigin(
        chosen.directories,
        committed_only=chosen.read_committed,
        max_split_bytes=chosen.max_split_bytes,
    )


def rows(
    root: Path, parts: list[OffsetRange], columns: tuple[str, ...], **given: str
) -> list[dict[str, Any]]:
    chosen = options(root, **given)
    return [
        row
        for part in parts
        for batch in read_range(chosen, part, columns)
        for row in batch.to_pylist()
    ]


def in_transaction(log: PartitionLog, producer_id: int, sequence: int, value: bytes) -> None:
    batch = batch_of(value, producer=(producer_id, 0, sequence), is_transactional=True)
    log.append(batch, now_ms=NOW_MS, transaction_verified=True)


def test_a_marker_after_the_range_decides_its_transaction(tmp_path: Path) -> None:
    log = box_at(tmp_path).open()
    in_transaction(log, 1, 0, b"0 aborted")
    in_transaction(log, 2, 0, b"1 committed")
    put(log, b"2")
    end_transaction(log, 1, 0, commit=False)
    end_transaction(log, 2, 0, commit=True)
    in_transaction(log, 1, 1, b"5 open")
    put(log, b"6")
    level = {"kafka.isolation.level": "read_committed"}
    source = origin(tmp_path, **level)
    assert source.bounds([ORDERS]) == {ORDERS: (0, 5)}
    assert origin(tmp_path).bounds([ORDERS]) == {ORDERS: (0, 7)}
    assert source.log_ends([ORDERS]) == {ORDERS: 7}
    found = rows(tmp_path, source.parts(ORDERS, 0, 3), ("value",), **level)
    assert [row["value"] for row in found] == [b"1 committed", b"2"]


def test_a_range_that_was_planned_without_the_files_has_no_aborted_records(tmp_path: Path) -> None:
    """The driver asks a broker, and the executors have the files."""
    log = box_at(tmp_path).open()
    in_transaction(log, 1, 0, b"aborted")
    put(log, b"after")
    end_transaction(log, 1, 0, commit=False)
    planned = BrokerOrigin({"bootstrap.servers": "h:1"}, committed_only=True).parts(ORDERS, 0, 3)
    found = rows(tmp_path, planned, ("value",), isolationLevel="read_committed")
    assert [row["value"] for row in found] == [b"after"]


def test_a_partition_without_segments_has_nothing(tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    source = origin(tmp_path)
    assert source.partitions() == [ORDERS]
    assert source.bounds([ORDERS]) == {ORDERS: (0, 0)}
    assert source.offsets_at({ORDERS: 5}, source.bounds([ORDERS])) == {ORDERS: None}


def test_deleted_partitions_are_left_out(tmp_path: Path) -> None:
    put(box_at(tmp_path).open(), b"x")
    source = origin(tmp_path)
    shutil.rmtree(tmp_path / "orders-0")
    assert source.partitions() == []
    assert source.bounds([ORDERS]) == source.log_ends([ORDERS]) == {}
    assert source.topic_ids([ORDERS]) == {}
    assert source.parts(ORDERS, 0, 1) == [OffsetRange(ORDERS, 0, 1)]


class ChangingFiles(Files):
    """Something happens before the first file is opened."""

    def __init__(self, change: Callable[[], object]) -> None:
        self._changes = [change]

    def open(self, path: Path, *, create: bool = False, read_only: bool = False) -> OpenFile:
        while self._changes:
            self._changes.pop()()
        return super().open(path, create=create, read_only=read_only)


def test_a_time_is_found_while_segments_or_partitions_are_deleted(tmp_path: Path) -> None:
    log = box_at(tmp_path, segment_bytes=200).open()
    for number in range(5):
        put(log, b"x" * 100, timestamps=(NOW_MS + number,))
    source = origin(tmp_path)
    bounds = source.bounds([ORDERS])

    def found_while(change: Callable[[], object]) -> dict[TopicPartition, int | None]:
        source.directories = LogDirectories([tmp_path], ChangingFiles(change))
        return source.offsets_at({ORDERS: NOW_MS + 3}, bounds)

    assert found_while(lambda: log.delete_first_segments(2, NOW_MS)) == {ORDERS: 3}
    assert found_while(lambda: shutil.rmtree(tmp_path / "orders-0")) == {}


class MovingFiles(Files):
    """A broker moves the partition to the first directory when that has just been looked at."""

    def __init__(self, first: Path, second: Path) -> None:
        self._first, self._second = first, second

    def list_directory(self, path: Path) -> list[str]:
        names = super().list_directory(path)
        self._move()
        return names

    def is_directory(self, path: Path) -> bool:
        is_directory = super().is_directory(path)
        self._move()
        return is_directory

    def _move(self) -> None:
        if self._second.exists():
            self._second.rename(self._first)


@pytest.mark.parametrize("is_listed", [True, False])
def test_a_partition_that_is_moved_meanwhile_is_found(tmp_path: Path, *, is_listed: bool) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    put(box_at(second).open(), b"x")
    files = MovingFiles(first / "orders-0", second / "orders-0")
    directories = LogDirectories([first, second], files)
    if is_listed:
        assert directories.partitions() == [ORDERS]
    assert directories.find(ORDERS) == first / "orders-0"


def test_splits_make_up_the_range(tmp_path: Path) -> None:
    log = box_at(tmp_path, segment_bytes=4000, index_interval_bytes=200).open()
    for number in range(100):
        put(log, b"%03d" % number * 30, b"x")
    parts = origin(tmp_path, maxSplitBytes="2k").parts(ORDERS, 5, 190)
    assert len(parts) > 5
    found = rows(tmp_path, parts, ("offset",))
    assert [row["offset"] for row in found] == list(range(5, 190))


def test_batches_are_rows_of_their_headers(tmp_path: Path) -> None:
    log = box_at(tmp_path).open()
    put(log, b"a", b"b", timestamps=(NOW_MS, NOW_MS + 7))
    in_transaction(log, 3, 0, b"c")
    end_transaction(log, 3, 0, commit=False)
    columns = ("baseOffset", "lastOffset", "recordCount", "producerId", "isControl", "maxTimestamp")
    found = rows(tmp_path, origin(tmp_path).parts(ORDERS, 0, 4), columns, view="batches")
    assert [tuple(row.values())[:5] for row in found] == [
        (0, 1, 2, -1, False),
        (2, 2, 1, 3, False),
        (3, 3, 1, 3, True),
    ]
    assert found[0]["maxTimestamp"].timestamp() * 1000 == NOW_MS + 7


def test_auto_reads_files_where_they_can_be_read(tmp_path: Path) -> None:
    servers = {"mode": "auto", "kafka.bootstrap.servers": "h:1"}
    assert reads_files(options(tmp_path, **servers))
    assert not reads_files(options(tmp_path / "elsewhere", **servers))
    assert not reads_files(options(tmp_path, **{**servers, "mode": "broker"}))


def test_nothing_is_asked_of_a_broker_for_an_empty_range(tmp_path: Path) -> None:
    """Such a task is one whose topic was created again after its batch had been planned."""
    nowhere = {"mode": "broker", "kafka.bootstrap.servers": "127.0.0.1:1"}
    chosen = options(tmp_path, **nowhere)
    assert list(read_range(chosen, OffsetRange(ORDERS, 5, 5), ("value",))) == []


def test_a_damaged_batch_is_an_error_if_checksums_are_verified(tmp_path: Path) -> None:
    box = box_at(tmp_path)
    put(box.open(), b"value")
    path = box.path(0, ".log")
    data = bytearray(path.read_bytes())
    data[data.index(b"value")] ^= 1
    path.write_bytes(data)
    parts = origin(tmp_path).parts(ORDERS, 0, 1)
    with pytest.raises(ValueError, match=r"^orders-0: .*offset 0: stored CRC"):
        rows(tmp_path, parts, ("value",))
    assert rows(tmp_path, parts, ("value",), verifyCrc="false") == [{"value": b"walue"}]


@pytest.mark.slow
def test_a_batch_that_decompresses_to_300_mb_is_found_by_time_and_read(tmp_path: Path) -> None:
    log = box_at(tmp_path).open()
    values = [bytes(30_000_000)] * 10
    put(log, *values, timestamps=range(NOW_MS, NOW_MS + 10), compression=CompressionType.ZSTD)
    source = origin(tmp_path)
    bounds = source.bounds([ORDERS])
    assert source.offsets_at({ORDERS: NOW_MS + 7}, bounds) == {ORDERS: 7}
    found = rows(tmp_path, source.parts(ORDERS, 7, 10), ("offset", "value"))
    assert [(row["offset"], len(row["value"])) for row in found] == [
        (offset, 30_000_000) for offset in (7, 8, 9)
    ]


def test_a_directory_that_is_not_there_is_no_lost_data(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    part = OffsetRange(ORDERS, 0, 4)
    with pytest.raises(FileNotFoundError, match="elsewhere"):
        rows(elsewhere, [part], ("value",), failOnDataLoss="false")
    with pytest.raises(FileNotFoundError, match="elsewhere"):
        origin(elsewhere).partitions()


@pytest.mark.parametrize("level", ["read_committed", "read_uncommitted"])
def test_a_partition_that_has_a_directory_and_no_segment_yet_is_empty(
    tmp_path: Path, level: str
) -> None:
    (tmp_path / "orders-0").mkdir()
    found = origin(tmp_path, isolationLevel=level)
    assert found.bounds([ORDERS]) == {ORDERS: (0, 0)}
    assert found.log_ends([ORDERS]) == {ORDERS: 0}
    assert [(part.start, part.end) for part in found.parts(ORDERS, 0, 7)] == [(0, 7)]
