"""Ranges of offsets, read from a directory while its log changes."""

import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.pipeline.decoding.columns import ALL_COLUMNS, schema_of
from odradek.pipeline.decoding.decoder import RecordDecoder
from odradek.pipeline.reading.bounds import offset_at, offset_bounds
from odradek.pipeline.reading.isolation import last_stable_offset
from odradek.pipeline.reading.partitions import LogDirectories
from odradek.pipeline.reading.range_reader import DataLostError, OffsetRange, RangeReader
from odradek.pipeline.reading.splits import split_range
from odradek.protocol.batch_header import CorruptRecordError
from odradek.protocol.compression import CompressionType
from odradek.protocol.record import Record
from odradek.protocol.records.control import ControlRecordType, control_type
from odradek.storage.checkpoints import write_offsets
from odradek.storage.filenames import LOG_START_OFFSET_CHECKPOINT
from odradek.storage.files import Files, OpenFile
from odradek.storage.log import PartitionLog
from odradek.storage.log_reader import LogReader, OpenSegment, SegmentFile
from odradek.storage.topic_partition import TopicPartition
from tests.support.crashing_files import QuickFiles
from tests.support.dirty_logs import Writer, clean
from tests.support.lengths import by_length
from tests.support.log_box import NOW_MS, TOPIC, LogBox, batch_of, put
from tests.support.old_logs import aged_entries, lay_down, records_of

PARTITION = TopicPartition(TOPIC, 0)
ALL_CODECS = tuple(CompressionType)


def box_at(root: Path, **more: Any) -> LogBox:
    more = {"segment_bytes": 2000, "segment_index_bytes": 1024, "index_interval_bytes": 200, **more}
    return LogBox(root, files=QuickFiles(), cleanup_policy=("compact",), **more)


def written(root: Path, seed: int = 1, batches: int = 120) -> tuple[LogBox, PartitionLog]:
    """A log of several segments with all codecs, transactions and null keys."""
    box = box_at(root)
    log = box.open()
    Writer(seed, codecs=ALL_CODECS, null_keys=False).write(log, batches)
    return box, log


def directories(box: LogBox) -> LogDirectories:
    return LogDirectories([box.directory.parent])


def reader(box: LogBox, start: int, end: int, **more: Any) -> RangeReader:
    wanted = OffsetRange(PARTITION, start, end, **more.pop("planned", {}))
    decoder = RecordDecoder(TOPIC, 0, ALL_COLUMNS)
    more = {"wait": lambda _: None, **more}
    return RangeReader(directories(box), wanted, decoder, **more)


def rows(batches: Iterator[pa.RecordBatch]) -> list[tuple[Any, ...]]:
    table = pa.Table.from_batches(batches, schema_of(ALL_COLUMNS))
    stamps = table["timestamp"].cast(pa.int64()).to_pylist()
    headers = [
        tuple((each["key"], each["value"]) for each in pairs or ())
        for pairs in table["headers"].to_pylist()
    ]
    return list(
        zip(
            table["offset"].to_pylist(),
            table["key"].to_pylist(),
            table["value"].to_pylist(),
            [stamp // 1000 for stamp in stamps],
            headers,
            strict=True,
        )
    )


def row_of(record: Record) -> tuple[Any, ...]:
    return record.offset, record.key, record.value, record.timestamp_ms, record.headers


def stored(box: LogBox, *, committed: bool = False) -> list[tuple[Any, ...]]:
    """What a consumer of the whole log sees, batch by batch; no transaction is left open."""
    seen: list[list[tuple[Any, ...]]] = []
    undecided: dict[int, list[list[tuple[Any, ...]]]] = {}
    for batch in LogReader(box.directory).batches():
        header, records = batch.header, list(batch.records())
        if header.is_control:
            is_abort = control_type(records[0].key) is ControlRecordType.ABORT
            for each in undecided.pop(header.producer_id, []):
                if is_abort and committed:
                    each.clear()
            continue
        seen.append([row_of(record) for record in records])
        if header.is_transactional:
            undecided.setdefault(header.producer_id, []).append(seen[-1])
    return [row for each in seen for row in each]


# -- a log at rest ---------------------------------------------------------------------------------


@pytest.mark.parametrize("closed", [False, True])
def test_a_log_is_read_whole(tmp_path: Path, closed: bool) -> None:
    box, log = written(tmp_path)
    if closed:
        log.close(NOW_MS)
    bounds = offset_bounds(directories(box), PARTITION)
    assert bounds == (0, log.log_end_offset)
    assert rows(reader(box, *bounds).read()) == stored(box)


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_aborted_transactions_are_left_out(tmp_path: Path, seed: int, closed: bool) -> None:
    """Also those of which the live log has not written its indexes yet."""
    box, log = written(tmp_path, seed)
    if closed:
        log.close(NOW_MS)
    end = log.log_end_offset
    assert last_stable_offset(directories(box), PARTITION, end) == end
    planned = {"committed_only": True}
    expected = stored(box, committed=True)
    assert len(expected) < len(stored(box))
    assert rows(reader(box, 0, end, planned=planned).read()) == expected


def test_the_last_stable_offset_is_before_an_open_transaction(tmp_path: Path) -> None:
    box, log = written(tmp_path, batches=30)
    undecided = batch_of(b"open", producer=(77, 0, 0), is_transactional=True)
    first = log.append(undecided, now_ms=NOW_MS, transaction_verified=True).base_offset
    put(log, b"after")
    assert last_stable_offset(directories(box), PARTITION, log.log_end_offset) == first
    log.close(NOW_MS)  # and with a snapshot of the producers at the end
    assert last_stable_offset(directories(box), PARTITION, log.log_end_offset) == first


def test_formats_before_2017_are_read(tmp_path: Path) -> None:
    entries = aged_entries()
    box = box_at(tmp_path)
    lay_down(box.directory, entries[:7], entries[7:14], entries[14:])
    bounds = offset_bounds(directories(box), PARTITION)
    assert rows(reader(box, *bounds).read()) == [row_of(each) for each in records_of(entries)]
    middle = entries[9].base_offset + 1
    assert rows(reader(box, middle, bounds.end).read()) == [
        row_of(each) for each in records_of(entries) if each.offset >= middle
    ]


@settings(deadline=None, max_examples=by_length(15, 100))
@given(st.data())
def test_parts_make_up_the_whole(tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
    box, log = written(tmp_path_factory.mktemp("log"), seed=data.draw(st.integers(0, 99)))
    if data.draw(st.booleans()):
        log.close(NOW_MS)
    end = log.log_end_offset
    start = data.draw(st.integers(0, end - 1))
    stop = data.draw(st.integers(start, end))
    max_bytes = data.draw(st.integers(1, 6000))
    whole = OffsetRange(PARTITION, start, stop)
    parts = split_range(directories(box), whole, max_bytes)
    found = [row for part in parts for row in rows(reader(box, part.start, part.end).read())]
    assert found == [row for row in stored(box) if start <= row[0] < stop]
    if stop == end and start == 0 and max_bytes < 1000:
        assert len(parts) > 5


def test_times_are_found_where_the_broker_finds_them(tmp_path: Path) -> None:
    box, log = written(tmp_path)
    log.close(NOW_MS)
    log = box.open()
    bounds = offset_bounds(directories(box), PARTITION)
    stamps = sorted({row[3] for row in stored(box)})
    for stamp in [0, *stamps[::7], stamps[-1] + 1]:
        found = log.offset_for_timestamp(stamp)
        expected = None if found is None else found.offset
        assert offset_at(directories(box), PARTITION, stamp, bounds) == expected


class ReadOnly(Files):
    """Of a file system that is mounted so, for example."""

    def open(self, path: Path, *, create: bool = False, read_only: bool = False) -> OpenFile:
        assert read_only, f"{path} is opened for writing"
        return super().open(path, create=create, read_only=read_only)


def test_nothing_is_opened_for_writing(tmp_path: Path) -> None:
    box, log = written(tmp_path)
    log.close(NOW_MS)
    there = LogDirectories([tmp_path], ReadOnly())
    bounds = offset_bounds(there, PARTITION)
    assert offset_at(there, PARTITION, stored(box)[-1][3], bounds) is not None
    assert rows(replace(reader(box, *bounds), directories=there).read()) == stored(box)


def test_a_damaged_batch_is_named(tmp_path: Path) -> None:
    box = box_at(tmp_path)
    log = box.open()
    put(log, b"sound")
    put(log, b"damaged")
    log.close(NOW_MS)
    path = box.path(0, ".log")
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.write_bytes(data)
    with pytest.raises(CorruptRecordError, match="the batch at offset 1: stored CRC"):
        rows(reader(box, 0, 2).read())
    assert len(rows(reader(box, 0, 2, verify_crc=False).read())) == 2


def test_a_torn_tail_is_not_there(tmp_path: Path) -> None:
    box, log = written(tmp_path)
    end = log.log_end_offset
    box.tear(batch_of(b"half")[:-1])
    assert offset_bounds(directories(box), PARTITION).end == end
    assert rows(reader(box, 0, end).read()) == stored(box)


def test_a_preallocated_segment_is_read_while_it_is_written(tmp_path: Path) -> None:
    box = box_at(tmp_path, segment_bytes=100_000, preallocate=True)
    Writer(1, codecs=ALL_CODECS, null_keys=False).write(log := box.open(), 20)
    bounds = offset_bounds(directories(box), PARTITION)
    assert bounds == (0, log.log_end_offset)
    planned = {"committed_only": True}
    assert rows(reader(box, *bounds, planned=planned).read()) == stored(box, committed=True)
    end = log.log_end_offset
    assert last_stable_offset(directories(box), PARTITION, end) == log.last_stable_offset


def test_an_index_of_another_file_is_ignored(tmp_path: Path) -> None:
    box, log = written(tmp_path)
    log.close(NOW_MS)
    expected = stored(box)
    names = box.names(".index")
    other = (box.directory / names[1]).read_bytes()
    for name in names[2:]:
        (box.directory / name).write_bytes(other)
    for start in range(0, expected[-1][0], 17):
        found = rows(reader(box, start, log.log_end_offset).read())
        assert found == [row for row in expected if row[0] >= start]


# -- a log that changes ----------------------------------------------------------------------------


def test_segments_may_be_cleaned_between_and_under_the_reads(tmp_path: Path) -> None:
    """Each record comes at most once and in order, and none is missing that is still there."""
    for pause_after in range(0, 60, 6):
        box, log = written(tmp_path / str(pause_after), seed=pause_after)
        end = log.log_end_offset
        before = stored(box)
        parts = split_range(directories(box), OffsetRange(PARTITION, 0, end), 1500)
        found: list[tuple[Any, ...]] = []
        taken = 0
        for part in parts:
            for batch in reader(box, part.start, part.end).read():
                found += rows(iter([batch]))
                taken += 1
                if taken == pause_after:
                    clean(log, NOW_MS + 10**9)
                    put(log, b"after the end")
        offsets = [row[0] for row in found]
        assert offsets == sorted(set(offsets))
        assert set(found) <= set(before)
        assert set(found) >= {row for row in stored(box) if row[0] < end}


def test_a_segment_that_is_being_swapped_is_read_under_its_other_name(tmp_path: Path) -> None:
    box, log = written(tmp_path)
    log.close(NOW_MS)
    expected = stored(box)
    for name in box.names(".log")[1:4]:
        path = box.directory / name
        path.rename(path.with_name(f"{name}.swap"))
    assert rows(reader(box, 0, log.log_end_offset).read()) == expected


def test_records_deleted_by_retention_are_an_error_or_skipped(tmp_path: Path) -> None:
    box, log = written(tmp_path)
    end = log.log_end_offset
    planned = OffsetRange(PARTITION, 0, end)
    log.delete_first_segments(3, NOW_MS)
    begin = offset_bounds(directories(box), PARTITION).start
    assert begin > 0
    with pytest.raises(DataLostError, match=f"offsets 0 to {begin - 1} are lost: the log begins"):
        rows(reader(box, planned.start, end).read())
    found = rows(reader(box, planned.start, end, fail_on_data_loss=False).read())
    assert found == stored(box)


def test_retention_after_records_were_found_lost_loses_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    box, log = written(tmp_path)
    end = log.log_end_offset
    log.delete_first_segments(1, NOW_MS)
    open_segment = LogReader.open

    def open_late(self: LogReader, segment: SegmentFile) -> OpenSegment:
        if log.log_start_offset == segment.base_offset == first:
            log.delete_first_segments(1, NOW_MS)
        return open_segment(self, segment)

    first = log.log_start_offset
    monkeypatch.setattr(LogReader, "open", open_late)
    found = rows(reader(box, 0, end, fail_on_data_loss=False).read())
    assert log.log_start_offset > first
    assert found == stored(box)


def test_retention_during_a_read_does_not_affect_an_open_segment(tmp_path: Path) -> None:
    box, log = written(tmp_path)
    end = log.log_end_offset
    batches = reader(box, 0, end).read()
    found = rows(iter([next(batches)]))
    log.delete_first_segments(1, NOW_MS)
    assert rows(batches)[-1] == stored(box)[-1]
    assert found


def test_a_log_that_ends_before_the_range_has_lost_records(tmp_path: Path) -> None:
    box, log = written(tmp_path)
    end = log.log_end_offset
    with pytest.raises(
        DataLostError, match=f"offsets {end} to {end + 4} are lost: they are after the end"
    ):
        rows(reader(box, 0, end + 5).read())
    assert rows(reader(box, 0, end + 5, fail_on_data_loss=False).read()) == stored(box)


class Shrinking(Files):
    """A broker that cuts a log in place when it has been opened, to so many bytes."""

    def __init__(self, size: int) -> None:
        self._size = size

    def pread(self, file: OpenFile, size: int, position: int) -> bytes:
        if file.path.suffix == ".log":
            os.truncate(file.path, self._size)
        return super().pread(file, size, position)


@pytest.mark.parametrize("size", [10, 20, 100])
def test_a_log_that_is_cut_while_it_is_open_has_lost_records(tmp_path: Path, size: int) -> None:
    box = box_at(tmp_path)
    put(box.open(), b"v" * 100)
    cut = LogDirectories([tmp_path], Shrinking(size))
    with pytest.raises(DataLostError, match="offsets 0 to 0 are lost: they are after the end"):
        list(replace(reader(box, 0, 1), directories=cut).read())


def test_a_recreated_topic_is_another_topic(tmp_path: Path) -> None:
    box, log = written(tmp_path)
    log.assign_topic_id(b"a" * 16)
    planned = {"topic_id": b"b" * 16}
    with pytest.raises(DataLostError, match="another topic of that name"):
        rows(reader(box, 0, 10, planned=planned).read())
    assert rows(reader(box, 0, 10, planned={"topic_id": b"a" * 16}).read())


def test_a_deleted_partition_is_lost(tmp_path: Path) -> None:
    box, log = written(tmp_path)
    log.close(NOW_MS)
    shutil.rmtree(box.directory)
    with pytest.raises(FileNotFoundError, match="partition orders-0 not found"):
        offset_bounds(directories(box), PARTITION)
    with pytest.raises(DataLostError, match="partition orders-0 not found"):
        rows(reader(box, 0, 10).read())
    assert rows(reader(box, 0, 10, fail_on_data_loss=False).read()) == []


def test_a_partition_may_move_to_another_directory(tmp_path: Path) -> None:
    box, log = written(tmp_path / "a")
    log.close(NOW_MS)
    expected = stored(box)
    both = LogDirectories([tmp_path / "a", tmp_path / "b"])
    ranged = OffsetRange(PARTITION, 0, log.log_end_offset)
    batches = RangeReader(both, ranged, RecordDecoder(TOPIC, 0, ALL_COLUMNS)).read()
    found = rows(iter([next(batches)]))
    (tmp_path / "b").mkdir()
    shutil.move(box.directory, tmp_path / "b" / box.directory.name)
    assert found + rows(batches) == expected


def test_a_checkpoint_is_read_once_as_long_as_it_is_the_same(tmp_path: Path) -> None:
    class Counted(Files):
        reads = 0

        def read(self, path: Path) -> bytes:
            Counted.reads += 1
            return super().read(path)

    for number in range(3):
        (tmp_path / f"orders-{number}").mkdir()
    checkpoint = tmp_path / LOG_START_OFFSET_CHECKPOINT
    found = LogDirectories([tmp_path], Counted())
    assert [found.checkpointed_start(each) for each in found.partitions()] == [0, 0, 0]
    for start in (5, 6):
        write_offsets(Files(), checkpoint, {("orders", 1): start})
        assert [found.checkpointed_start(each) for each in found.partitions()] == [0, start, 0]
    assert Counted.reads == 2


def test_only_live_directories_are_partitions(tmp_path: Path) -> None:
    for name in ("a-0", "a.b-12", "a-0.123-delete", "b-1.123-future", "c-1.9-stray", "notes"):
        (tmp_path / name).mkdir()
    (tmp_path / "meta.properties").write_text("")
    found = LogDirectories([tmp_path]).partitions()
    assert found == [("a", 0), ("a.b", 12)]
