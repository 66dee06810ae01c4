"""Offset and time index: entries, lookups, states; files that Kafka wrote or a crash left."""

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.protocol.compression import Buffer
from odradek.storage.files import Files, OpenFile
from odradek.storage.index_file import BLOCK_BYTES, CorruptIndexError
from odradek.storage.offset_index import OffsetIndex, OffsetPosition
from odradek.storage.time_index import TimeIndex, TimestampOffset
from tests.support.golden import BASE_TIME, GOLDEN

BASE = 5000
MAX_BYTES = 4096


@pytest.fixture
def offsets(tmp_path: Path) -> OffsetIndex:
    return OffsetIndex.create(Files(), tmp_path / "offsets", BASE, MAX_BYTES)


@pytest.fixture
def times(tmp_path: Path) -> TimeIndex:
    return TimeIndex.create(Files(), tmp_path / "times", BASE, MAX_BYTES)


def fill_as_kafka_did(offsets: OffsetIndex, times: TimeIndex) -> None:
    """Add the entries that GoldenFiles.java writes to its two indexes."""
    for i in range(1, 51):
        offsets.append(BASE + 10 * i, 4100 * i)
        times.maybe_append(BASE_TIME + 500 * (i // 2), BASE + 10 * i)


# --- bytes


def test_the_entries_have_kafkas_bytes(offsets: OffsetIndex, times: TimeIndex) -> None:
    fill_as_kafka_did(offsets, times)
    offsets.trim()
    times.trim()
    assert offsets.path.read_bytes() == (GOLDEN / "00000000000000005000.index").read_bytes()
    assert times.path.read_bytes() == (GOLDEN / "00000000000000005000.timeindex").read_bytes()


def test_indexes_that_kafka_wrote_are_read() -> None:
    offsets = OffsetIndex(Files(), GOLDEN / "00000000000000005000.index", BASE, MAX_BYTES)
    offsets.sanity_check()
    assert offsets.entries == 50
    assert offsets.last_offset == 5500
    assert offsets.lookup(5499) == OffsetPosition(5490, 4100 * 49)
    times = TimeIndex(Files(), GOLDEN / "00000000000000005000.timeindex", BASE, MAX_BYTES)
    times.sanity_check()
    assert times.entries == 26
    assert times.last_entry == TimestampOffset(BASE_TIME + 12_500, 5500)
    assert times.lookup(BASE_TIME + 999) == TimestampOffset(BASE_TIME + 500, 5020)


# --- lookups


@pytest.mark.parametrize("trimmed", [False, True])
def test_an_offset_is_found_at_or_before_it(offsets: OffsetIndex, trimmed: bool) -> None:
    for i in range(1, 2 + MAX_BYTES // 16):
        offsets.append(BASE + 10 * i, 100 * i)
    if trimmed:
        offsets.trim()
    assert offsets.lookup(BASE) == OffsetPosition(BASE, 0)
    assert offsets.lookup(BASE - 1) == OffsetPosition(BASE, 0)
    assert offsets.lookup(BASE + 9) == OffsetPosition(BASE, 0)
    assert offsets.lookup(BASE + 10) == OffsetPosition(BASE + 10, 100)
    assert offsets.lookup(BASE + 29) == OffsetPosition(BASE + 20, 200)
    assert offsets.lookup(2**62) == OffsetPosition(BASE + 2570, 25_700)


def test_an_empty_index_sends_to_the_start_of_the_segment(
    offsets: OffsetIndex, times: TimeIndex
) -> None:
    assert offsets.lookup(BASE + 7) == OffsetPosition(BASE, 0)
    assert offsets.last_offset == BASE
    assert times.lookup(BASE_TIME) == TimestampOffset(-1, BASE)
    assert times.last_entry == TimestampOffset(-1, BASE)
    offsets.trim()
    times.trim()
    assert offsets.path.read_bytes() == times.path.read_bytes() == b""
    assert offsets.lookup(BASE + 7) == OffsetPosition(BASE, 0)
    assert times.lookup(BASE_TIME) == TimestampOffset(-1, BASE)


@settings(deadline=None)
@given(
    st.sets(st.integers(1, 100_000), max_size=1500).map(sorted),
    st.lists(st.integers(0, 100_001), min_size=1, max_size=20),
)
def test_a_closed_index_answers_as_the_active_one_did(
    tmp_path_factory: pytest.TempPathFactory, steps: list[int], targets: list[int]
) -> None:
    path = tmp_path_factory.mktemp("index") / "offsets"
    index = OffsetIndex.create(Files(), path, BASE, 16_384)
    for position, step in enumerate(steps):
        index.append(BASE + step, position)
    active = [index.lookup(BASE + target) for target in targets]
    index.trim()
    assert [index.lookup(BASE + target) for target in targets] == active
    expected = [max((step for step in steps if step <= target), default=0) for target in targets]
    assert [found.offset - BASE for found in active] == expected


def test_entries_are_read_by_slot(offsets: OffsetIndex, times: TimeIndex) -> None:
    fill_as_kafka_did(offsets, times)
    for _ in ("active", "closed"):
        assert times.entry_at(1) == TimestampOffset(BASE_TIME + 500, 5020)
        with pytest.raises(IndexError, match="entries, none at 50"):
            times.entry_at(50)
        times.trim()


# --- appending


def test_an_active_index_is_preallocated_in_whole_entries(tmp_path: Path) -> None:
    index = OffsetIndex.create(Files(), tmp_path / "offsets", BASE, 100)
    assert index.path.stat().st_size == index.file_bytes == 96
    assert (index.max_entries, index.entries, index.size_bytes) == (12, 0, 0)
    times = TimeIndex.create(Files(), tmp_path / "times", BASE, 100)
    assert (times.file_bytes, times.max_entries) == (96, 8)


def test_a_preallocated_index_takes_no_blocks(tmp_path: Path) -> None:
    index = OffsetIndex.create(Files(), tmp_path / "offsets", BASE, 10 << 20)
    assert index.path.stat().st_size == 10 << 20
    assert index.path.stat().st_blocks * 512 < 64 << 10


def test_a_full_offset_index_takes_no_more(tmp_path: Path) -> None:
    index = OffsetIndex.create(Files(), tmp_path / "offsets", BASE, 16)
    index.append(BASE + 1, 10)
    index.append(BASE + 2, 20)
    with pytest.raises(ValueError, match="is full with 2 entries"):
        index.append(BASE + 3, 30)


def test_offsets_must_ascend(offsets: OffsetIndex) -> None:
    offsets.append(BASE + 5, 10)
    for offset in (BASE + 5, BASE + 4):
        with pytest.raises(ValueError, match="is not after 5005"):
            offsets.append(offset, 20)


def test_an_offset_too_far_from_the_segments_first_is_refused(offsets: OffsetIndex) -> None:
    farthest = BASE + 2**31 - 1
    with pytest.raises(ValueError, match="too far"):
        offsets.append(farthest + 1, 0)
    offsets.append(farthest, 2**31 - 1)
    assert offsets.lookup(farthest) == OffsetPosition(farthest, 2**31 - 1)


def test_a_position_beyond_31_bits_is_refused(offsets: OffsetIndex) -> None:
    with pytest.raises(ValueError, match="no entry can hold"):
        offsets.append(BASE + 1, 2**31)
    assert offsets.entries == 0


def test_a_time_index_keeps_one_slot_for_its_closing(tmp_path: Path) -> None:
    index = TimeIndex.create(Files(), tmp_path / "times", BASE, 24)
    index.maybe_append(100, BASE + 1)
    with pytest.raises(ValueError, match="is full"):
        index.maybe_append(200, BASE + 2)
    index.maybe_append(200, BASE + 2, closing=True)
    assert index.last_entry == TimestampOffset(200, BASE + 2)


def test_a_time_that_is_not_newer_adds_no_entry(times: TimeIndex) -> None:
    times.maybe_append(100, BASE + 1)
    times.maybe_append(100, BASE + 1)
    times.maybe_append(100, BASE + 9)
    assert times.entries == 1
    assert times.last_entry == TimestampOffset(100, BASE + 1)


def test_times_and_their_offsets_must_not_descend(times: TimeIndex) -> None:
    times.maybe_append(100, BASE + 5)
    with pytest.raises(ValueError, match="is not after"):
        times.maybe_append(99, BASE + 6)
    with pytest.raises(ValueError, match="is not after"):
        times.maybe_append(101, BASE + 4)


def test_records_without_a_time_add_no_entry(times: TimeIndex) -> None:
    times.maybe_append(-1, BASE + 5)
    assert times.entries == 0


def test_entries_that_could_not_be_written_are_written_by_the_next_flush(tmp_path: Path) -> None:
    class FullDisk(Files):
        is_full = True

        def pwrite(self, file: OpenFile, data: Buffer, position: int) -> None:
            if self.is_full:
                raise OSError(28, "No space left on device")
            super().pwrite(file, data, position)

    files = FullDisk()
    index = OffsetIndex.create(files, tmp_path / "offsets", BASE, MAX_BYTES)
    index.append(BASE + 1, 1)
    index.append(BASE + 2, 2)
    with pytest.raises(OSError, match="No space"):
        index.write_out()
    assert index.lookup(BASE + 2) == OffsetPosition(BASE + 2, 2)
    files.is_full = False
    index.write_out()
    assert index.path.read_bytes()[:16] == bytes.fromhex("00000001 00000001 00000002 00000002")
    index.append(BASE + 3, 3)
    index.trim()
    assert index.path.read_bytes()[16:] == bytes.fromhex("00000003 00000003")


# --- life


def test_a_trimmed_index_becomes_active_again(offsets: OffsetIndex) -> None:
    offsets.append(BASE + 1, 10)
    offsets.trim()
    assert offsets.file_bytes == 8
    again = OffsetIndex(Files(), offsets.path, BASE, MAX_BYTES)
    again.become_active()
    assert again.path.stat().st_size == MAX_BYTES
    again.append(BASE + 2, 20)
    again.trim()
    assert again.path.read_bytes() == bytes.fromhex("00000001 0000000a 00000002 00000014")


def test_a_closing_entry_is_added_to_a_trimmed_time_index(times: TimeIndex) -> None:
    times.maybe_append(100, BASE + 1)
    times.trim()
    times.maybe_append(200, BASE + 2, closing=True)
    times.trim()
    assert times.file_bytes == 24
    assert times.last_entry == TimestampOffset(200, BASE + 2)


def test_a_closed_index_is_opened_by_its_first_use_and_kept_open(offsets: OffsetIndex) -> None:
    opened: list[Path] = []

    class Counting(Files):
        def open(self, path: Path, *, create: bool = False, read_only: bool = False) -> OpenFile:
            opened.append(path)
            return super().open(path, create=create, read_only=read_only)

    offsets.append(BASE + 1, 10)
    offsets.trim()
    closed = OffsetIndex(Counting(), offsets.path, BASE, MAX_BYTES)
    assert opened == []
    assert closed.entries == 1
    closed.lookup(BASE + 1)
    assert len(opened) == 1
    closed.release()
    closed.lookup(BASE + 1)
    assert len(opened) == 2


def test_a_lookup_in_a_large_closed_index_reads_little(tmp_path: Path) -> None:
    read: list[int] = []

    class Counting(Files):
        def pread(self, file: OpenFile, size: int, position: int) -> bytes:
            read.append(size)
            return super().pread(file, size, position)

    path = tmp_path / "offsets"
    entries = 200_000
    path.write_bytes(b"".join(OffsetIndex.entry.pack(i, 7 * i) for i in range(entries)))
    index = OffsetIndex(Counting(), path, BASE, 10 << 20)
    for slot in (0, 1, 12_345, entries - 1):
        read.clear()
        assert index.lookup(BASE + slot) == OffsetPosition(BASE + slot, 7 * slot)
        assert len(read) <= 12
        assert sum(read) <= 2 * BLOCK_BYTES + 100
    index.lookup(BASE)
    for slot in range(0, 20_000, 100):
        read.clear()
        assert index.before_position(7 * slot + 6) == OffsetPosition(BASE + slot, 7 * slot)
        assert len(read) <= 1, "a reader that goes on needs at most the next block"
    chance = random.Random(1)
    for slot in (chance.randrange(entries) for _ in range(2000)):
        expected = OffsetPosition(BASE + slot, 7 * slot)
        assert index.before_position(7 * slot + chance.randrange(7)) == expected
        assert index.lookup(BASE + slot) == expected


def test_a_missing_index_is_reported_at_its_first_use(tmp_path: Path) -> None:
    index = OffsetIndex(Files(), tmp_path / "none", BASE, MAX_BYTES)
    with pytest.raises(FileNotFoundError):
        index.lookup(BASE)
    with pytest.raises(FileNotFoundError):
        index.sanity_check()
    with pytest.raises(FileNotFoundError):
        index.become_active()


def test_resetting_drops_all_entries_also_on_disk(offsets: OffsetIndex) -> None:
    offsets.append(BASE + 1, 10)
    offsets.trim()
    offsets.reset()
    assert offsets.entries == 0
    assert offsets.path.read_bytes() == bytes(MAX_BYTES)


# --- after a crash


def test_the_unused_part_of_an_active_index_looks_like_entries_after_a_crash(
    offsets: OffsetIndex,
) -> None:
    # As for Kafka: the length says how many entries there are, so such an index of a
    # segment that was not flushed is rebuilt.
    offsets.append(BASE + 1, 10)
    found = OffsetIndex(Files(), offsets.path, BASE, MAX_BYTES)
    assert found.entries == MAX_BYTES // 8
    assert found.last_offset == BASE
    with pytest.raises(CorruptIndexError, match="ends with position 0"):
        found.sanity_check()


def test_an_index_of_half_an_entry_is_corrupt(offsets: OffsetIndex, times: TimeIndex) -> None:
    offsets.path.write_bytes(bytes(12))
    with pytest.raises(CorruptIndexError, match="12 bytes, no multiple of 8"):
        OffsetIndex(Files(), offsets.path, BASE, MAX_BYTES).sanity_check()
    times.path.write_bytes(bytes(13))
    with pytest.raises(CorruptIndexError, match="13 bytes, no multiple of 12"):
        TimeIndex(Files(), times.path, BASE, MAX_BYTES).sanity_check()


def test_an_index_that_ends_before_its_segment_is_corrupt(
    offsets: OffsetIndex, times: TimeIndex
) -> None:
    offsets.path.write_bytes(OffsetIndex.entry.pack(-3, 0))
    with pytest.raises(CorruptIndexError, match="ends with offset 4997, before 5000"):
        OffsetIndex(Files(), offsets.path, BASE, MAX_BYTES).sanity_check()
    times.path.write_bytes(TimeIndex.entry.pack(100, -3))
    with pytest.raises(CorruptIndexError, match="ends with offset 4997, before 5000"):
        TimeIndex(Files(), times.path, BASE, MAX_BYTES).sanity_check()


def test_a_time_index_whose_last_time_is_before_its_first_is_corrupt(times: TimeIndex) -> None:
    entries = TimeIndex.entry.pack(100, 1) + TimeIndex.entry.pack(0, 0)
    times.path.write_bytes(entries)
    with pytest.raises(CorruptIndexError, match="begins at 100 ms, ends at 0 ms"):
        TimeIndex(Files(), times.path, BASE, MAX_BYTES).sanity_check()
