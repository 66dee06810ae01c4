"""Logs that begin with messages of magic 0 and 1 are read, recovered, retained and appended to."""

import os
import struct
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest

from odradek.protocol.batch_header import NO_TIMESTAMP, CorruptRecordError
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.storage.batch_scan import CorruptBatchError, scan_headers
from odradek.storage.files import Files
from odradek.storage.log import PartitionLog
from odradek.storage.log_reader import LogReader
from odradek.storage.retention import delete_old_segments
from tests.support.crashing_files import QuickFiles
from tests.support.kafka_legacy import golden_names, golden_set
from tests.support.log_box import NOW_MS, LogBox, batch_of, put, read_slice
from tests.support.message_sets import GZIP, message, wrapper
from tests.support.old_logs import (
    OldEntry,
    aged_entries,
    all_records,
    entries_in,
    lay_down,
    modern,
    records_of,
    single,
    wrapped,
)

ENTRIES = aged_entries()
RECORDS = records_of(ENTRIES)
END = ENTRIES[-1].next_offset
CUT_POINTS = (7, 14)  # entries of magic 0; of both; of both and v2


def quick_box(root: Path, **settings: Any) -> LogBox:
    """Nothing is synced: some tests open a log hundreds of times."""
    return LogBox(root, files=QuickFiles(), **settings)


def aged_box(root: Path, entries: list[OldEntry] | None = None) -> LogBox:
    """Three segments; the second begins with magic 0, the third ends with v2."""
    box = quick_box(root, index_interval_bytes=100)
    entries = entries or ENTRIES
    first, second = CUT_POINTS
    lay_down(box.directory, entries[:first], entries[first:second], entries[second:])
    return box


def indexed_offsets(log: PartitionLog) -> list[int]:
    return [segment.offset_index.last_offset for segment in log.segments]


# --- reading


@pytest.mark.parametrize("clean", [True, False])
def test_every_record_is_read_from_every_offset(tmp_path: Path, clean: bool) -> None:
    log = aged_box(tmp_path).open(clean=clean)
    assert (log.log_start_offset, log.log_end_offset) == (0, END)
    for offset in range(END + 1):
        expected = [record for record in RECORDS if record.offset >= offset]
        assert all_records(log, offset) == expected
    assert all(offset > 0 for offset in indexed_offsets(log)[:2])


def test_slices_end_between_two_entries_however_small_they_are(tmp_path: Path) -> None:
    log = aged_box(tmp_path).open()
    for max_bytes in range(1, 700, 23):
        assert all_records(log, 0, max_bytes) == RECORDS
    for entry in ENTRIES:
        for offset in (entry.base_offset, entry.next_offset - 1):
            assert entries_in(read_slice(log, offset, 1)) == [entry.records]


@pytest.mark.parametrize("name", golden_names())
def test_what_kafka_wrote_is_served_as_it_is(tmp_path: Path, name: str) -> None:
    box = quick_box(tmp_path)
    box.directory.mkdir()
    box.path(1000, ".log").write_bytes(golden_set(name))
    log = box.open(clean=False, log_start_offset=1000)
    assert (log.log_start_offset, log.log_end_offset) == (1000, 1023)
    assert read_slice(log, 1000) == golden_set(name)


def test_read_committed_sees_it_all(tmp_path: Path) -> None:
    log = aged_box(tmp_path).open()
    for entry in ENTRIES:
        found = log.read_committed(entry.base_offset, 1, at_least_one_batch=True)
        assert (found.records.size_bytes, found.aborted) == (len(entry.data), [])


def test_the_offline_reader_opens_wrappers(tmp_path: Path) -> None:
    box = aged_box(tmp_path)
    reader = LogReader(box.directory)
    assert reader.end_offset() == END
    for start in range(0, END, 3):
        for end in range(start, END + 1, 4):
            expected = [record for record in RECORDS if start <= record.offset < end]
            assert list(reader.records(start, end)) == expected


# --- offsets by time


def test_timestamps_are_found_within_wrappers(tmp_path: Path) -> None:
    dated = [record for record in RECORDS if record.timestamp_ms >= 0]
    box = quick_box(tmp_path, index_interval_bytes=100)
    newer = [entry for entry in ENTRIES if entry.records[0].timestamp_ms >= 0]
    lay_down(box.directory, newer[:5], newer[5:])
    log = box.open()
    for wanted_ms in {record.timestamp_ms + delta for record in dated for delta in (0, 1)}:
        expected = next((r for r in dated if r.timestamp_ms >= wanted_ms), None)
        found = log.offset_for_timestamp(wanted_ms)
        assert (found and found.offset) == (expected and expected.offset)
        assert found is None or expected is None or found.timestamp_ms == expected.timestamp_ms
    newest = max(dated, key=lambda record: record.timestamp_ms)
    assert log.offset_of_max_timestamp() == (newest.timestamp_ms, newest.offset, -1)


def test_a_wrapper_with_log_append_time_dates_what_is_in_it(tmp_path: Path) -> None:
    box = quick_box(tmp_path)
    lay_down(box.directory, [wrapped(range(4), 1, GZIP, NOW_MS, append_time=True)])
    log = box.open()
    assert log.offset_for_timestamp(NOW_MS) == (NOW_MS + 3, 0, -1)
    assert log.offset_of_max_timestamp() == (NOW_MS + 3, 0, -1)


def test_messages_without_times_are_never_found(tmp_path: Path) -> None:
    box = quick_box(tmp_path)
    lay_down(box.directory, [single(0, 0, NOW_MS), wrapped([1, 2], 0, GZIP, NOW_MS)])
    log = box.open()
    assert log.offset_for_timestamp(0) is None
    assert log.offset_of_max_timestamp() is None


def test_a_segment_without_times_that_was_written_since_ends_the_search(tmp_path: Path) -> None:
    box = quick_box(tmp_path)
    lay_down(box.directory, [single(0, 0, NOW_MS)], [single(1, 1, NOW_MS)])
    log = box.open()
    os.utime(box.path(0, ".log"), (NOW_MS // 1000, NOW_MS // 1000))
    assert log.offset_for_timestamp(NOW_MS) is None
    os.utime(box.path(0, ".log"), (NOW_MS // 1000 - 1, NOW_MS // 1000 - 1))
    assert log.offset_for_timestamp(NOW_MS) == (NOW_MS, 1, -1)


def test_times_after_messages_without_times_are_not_lost_with_the_time_index(
    tmp_path: Path,
) -> None:
    box = quick_box(tmp_path, index_interval_bytes=100)
    lay_down(box.directory, [single(0, 0, NOW_MS), modern(1, 3, NOW_MS)])
    box.open().close(NOW_MS)
    box.path(0, ".timeindex").write_bytes(b"")
    log = box.open()
    assert log.segments[0].largest_timestamp_ms() == NOW_MS + 2
    found = log.offset_of_max_timestamp()
    assert found is not None
    assert (found.timestamp_ms, found.offset) == (NOW_MS + 2, 2)


# --- recovery and damage


def test_a_torn_tail_is_cut_wherever_it_is_torn(tmp_path: Path) -> None:
    entries = [
        single(0, 0, NOW_MS),
        wrapped([1, 2, 4], 0, GZIP, NOW_MS),
        single(5, 1, NOW_MS),
        wrapped([6, 7, 8], 1, GZIP, NOW_MS),
        modern(9, 1, NOW_MS),
    ]
    whole = b"".join(entry.data for entry in entries)
    box = quick_box(tmp_path)
    box.directory.mkdir()
    ends = list(accumulate(len(entry.data) for entry in entries))
    near_ends = {end + delta for end in ends for delta in (-1, 0, 1, 17, 25, 26, 27)}
    for length in sorted({*range(0, len(whole), 7), *near_ends}):
        for path in box.directory.iterdir():
            path.unlink()
        box.path(0, ".log").write_bytes(whole[:length])
        log = box.open(clean=length % 2 == 0)
        kept, size = 0, 0
        while kept < len(entries) and size + len(entries[kept].data) <= length:
            size += len(entries[kept].data)
            kept += 1
        assert log.log_end_offset == (entries[kept - 1].next_offset if kept else 0)
        assert all_records(log, 0) == records_of(entries[:kept])
        assert log.size_bytes == size


def test_a_flipped_bit_after_offset_and_size_ends_the_log_there(tmp_path: Path) -> None:
    entries = [single(0, 1, NOW_MS), wrapped([1, 2], 1, GZIP, NOW_MS), single(3, 0, NOW_MS)]
    first, second = entries[0].data, b"".join(entry.data for entry in entries[1:])
    box = quick_box(tmp_path)
    box.directory.mkdir()
    for at in range(12, len(entries[1].data)):
        flipped = bytearray(second)
        flipped[at] ^= 1 << at % 8
        for path in box.directory.iterdir():
            path.unlink()
        box.path(0, ".log").write_bytes(first + flipped)
        log = box.open(clean=False)
        assert log.log_end_offset == 1
        assert box.path(0, ".log").read_bytes() == first


def test_a_v2_batch_with_a_damaged_magic_is_no_message(tmp_path: Path) -> None:
    for magic in (0, 1):
        batch = bytearray(batch_of(b"v", b"w"))
        batch[16] = magic
        path = tmp_path / "00000000000000000000.log"
        path.write_bytes(batch)
        files = Files()
        with pytest.raises(CorruptBatchError):
            list(scan_headers(files, files.open(path), 0, len(batch)))


def test_a_wrapper_that_cannot_be_opened_is_an_error_where_it_must_be(tmp_path: Path) -> None:
    box = quick_box(tmp_path)
    broken = message(b"no gzip", magic=1, offset=3, timestamp_ms=NOW_MS, attributes=GZIP)
    lay_down(box.directory, [OldEntry(broken, single(0, 1, 0).records), single(4, 1, NOW_MS + 1)])
    log = box.open(clean=False)
    assert log.log_end_offset == 5
    assert len(read_slice(log, 0)) == log.size_bytes
    with pytest.raises(ApiError) as refused:
        log.offset_for_timestamp(NOW_MS)
    assert refused.value.code is ErrorCode.CORRUPT_MESSAGE
    with pytest.raises(CorruptRecordError):
        list(LogReader(box.directory).records())


@pytest.mark.parametrize("suffix", [".index", ".timeindex", ".snapshot"])
def test_lost_indexes_are_rebuilt(tmp_path: Path, suffix: str) -> None:
    box = aged_box(tmp_path)
    box.open().close(NOW_MS)
    before = {name: (box.directory / name).read_bytes() for name in box.names("index")}
    for name in box.names(suffix):
        (box.directory / name).unlink()
    log = box.open()
    assert all_records(log, 0) == RECORDS
    log.close(NOW_MS)
    assert {name: (box.directory / name).read_bytes() for name in box.names("index")} == before


def test_index_entries_of_first_offsets_are_not_believed(tmp_path: Path) -> None:
    """Before Kafka 0.11 an entry had the first offset of what was appended there."""
    box = quick_box(tmp_path, index_interval_bytes=1)
    entries = [wrapped(range(n, n + 5), 1, GZIP, NOW_MS) for n in range(0, 50, 5)]
    lay_down(box.directory, entries)
    box.open().close(NOW_MS)
    written, position = b"", 0
    for entry in entries:
        written += struct.pack(">ii", entry.base_offset, position) if position else b""
        position += len(entry.data)
    box.path(0, ".index").write_bytes(written)
    for offset in range(50):
        log = box.open()
        assert entries_in(read_slice(log, offset, 1)) == [entries[offset // 5].records]


# --- writing on


def test_what_is_appended_is_v2_and_follows(tmp_path: Path) -> None:
    old = ENTRIES[:-2]  # the last is a wrapper
    box = quick_box(tmp_path, index_interval_bytes=100)
    lay_down(box.directory, old)
    log = box.open()
    log.become_leader(4)
    assert log.end_offset_for_epoch(4) == (4, old[-1].next_offset)
    end = old[-1].next_offset
    assert put(log, b"a", b"b", producer=(9, 0, 0)) == end
    log.roll(NOW_MS)
    assert put(log, b"c", producer=(9, 0, 2)) == end + 2
    log.close(NOW_MS)
    for clean in (True, False):
        again = box.open(clean=clean)
        assert [record.value for record in all_records(again, end)] == [b"a", b"b", b"c"]
        assert all_records(again, 0)[: len(records_of(old))] == records_of(old)
        assert again.end_offset_for_epoch(3) == (3, end)
        duplicate = again.append(batch_of(b"c", producer=(9, 0, 2)), now_ms=NOW_MS)
        assert duplicate.is_duplicate


def test_a_log_is_cut_before_the_wrapper_that_holds_the_offset(tmp_path: Path) -> None:
    for offset in range(1, END, 4):
        box = aged_box(tmp_path / str(offset))
        log = box.open()
        log.truncate_to(offset, NOW_MS)
        kept = [entry for entry in ENTRIES if entry.next_offset <= offset]
        assert log.log_end_offset == offset
        assert log.size_bytes == sum(len(entry.data) for entry in kept)
        put(log, b"new")
        assert [r.offset for r in all_records(log, 0)][-1] == offset


def test_the_log_start_may_lie_inside_a_wrapper(tmp_path: Path) -> None:
    log = aged_box(tmp_path).open()
    for offset in (3, 12, 20):
        assert log.increment_log_start_offset(offset)
        delete_old_segments(log, NOW_MS - 50_000)
        holder = next(entry for entry in ENTRIES if entry.next_offset > offset)
        assert entries_in(read_slice(log, offset, 1)) == [holder.records]


# --- retention


def test_messages_without_times_count_by_when_the_file_was_written(tmp_path: Path) -> None:
    box = quick_box(tmp_path, retention_ms=60_000)
    lay_down(box.directory, [single(0, 0, 5)], [single(1, 1, NOW_MS - 60_000)], [single(2, 1, 5)])
    log = box.open()
    written_s = NOW_MS // 1000 - 30
    os.utime(box.path(0, ".log"), (written_s, written_s))
    assert log.segments[0].newest.timestamp_ms == NO_TIMESTAMP
    assert delete_old_segments(log, NOW_MS) == 0
    os.utime(box.path(0, ".log"), (written_s - 31, written_s - 31))
    assert delete_old_segments(log, NOW_MS) == 1
    assert delete_old_segments(log, NOW_MS + 1) == 2
    assert log.log_start_offset == log.log_end_offset == 3


def test_wrappers_are_opened_for_nothing_but_times(tmp_path: Path) -> None:
    """A log of wrappers that hold no messages at all is opened, read and written to."""
    box = quick_box(tmp_path)
    inside = OldEntry(wrapper(b"", GZIP, offset=7), single(7, 1, NOW_MS).records)
    box.directory.mkdir()
    box.path(0, ".log").write_bytes(inside.data)
    for clean in (True, False):
        log = box.open(clean=clean)
        assert log.log_end_offset == 8
        assert read_slice(log, 0) == inside.data
