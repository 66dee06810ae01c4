"""Reading: slices begin at the right batch, end at a batch's end, and not after the log's end."""

from pathlib import Path
from typing import Any

import pytest

from odradek.protocol.batch_header import read_header
from odradek.protocol.compression import CompressionType
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.storage import segment
from odradek.storage.batch_scan import scan_headers
from odradek.storage.files import Files, OpenFile
from odradek.storage.log import PartitionLog
from odradek.storage.slices import POSITIONS_KEPT
from tests.support.log_box import NOW_MS, LogBox, batch_of, put, read_slice, split, values_from

SIZE = len(batch_of(b"v"))


class CountingFiles(Files):
    """Counts the reads."""

    def __init__(self) -> None:
        self.reads = 0

    def pread(self, file: OpenFile, size: int, position: int) -> bytes:
        self.reads += 1
        return super().pread(file, size, position)


def refusal(log: PartitionLog, offset: int) -> ErrorCode:
    with pytest.raises(ApiError) as caught:
        log.read(offset, 100, at_least_one_batch=True)
    return caught.value.code


def test_the_end_of_the_log_is_empty_and_beyond_is_out_of_range(tmp_path: Path) -> None:
    log = LogBox(tmp_path).open()
    assert log.read(0, 100, at_least_one_batch=True).size_bytes == 0
    put(log, b"a")
    assert log.read(1, 100, at_least_one_batch=True).size_bytes == 0
    assert refusal(log, 2) is ErrorCode.OFFSET_OUT_OF_RANGE
    assert refusal(log, -1) is ErrorCode.OFFSET_OUT_OF_RANGE
    log.increment_log_start_offset(1)
    assert refusal(log, 0) is ErrorCode.OFFSET_OUT_OF_RANGE


@pytest.mark.parametrize("interval", [0, 200, 4096])
@pytest.mark.parametrize("max_bytes", range(0, 4 * SIZE + 2, 7))
def test_a_slice_holds_whole_batches_and_fits(
    tmp_path: Path, interval: int, max_bytes: int
) -> None:
    log = LogBox(tmp_path, index_interval_bytes=interval).open()
    for _ in range(6):
        put(log, b"v")
    piece = log.read(1, max_bytes, at_least_one_batch=False)
    assert piece.size_bytes <= max_bytes
    assert piece.size_bytes % SIZE == 0
    assert piece.size_bytes or max_bytes < SIZE
    at_least = log.read(1, max_bytes, at_least_one_batch=True)
    assert at_least.size_bytes == max(piece.size_bytes, SIZE)


def test_an_offset_inside_a_batch_gives_the_whole_batch(tmp_path: Path) -> None:
    log = LogBox(tmp_path).open()
    put(log, b"a", b"b", b"c", compression=CompressionType.LZ4)
    put(log, b"d")
    for offset in (0, 1, 2):
        assert read_header(read_slice(log, offset)).base_offset == 0
    assert read_header(read_slice(log, 3)).base_offset == 3


def test_a_slice_is_of_one_segment(tmp_path: Path) -> None:
    log = LogBox(tmp_path, segment_bytes=2 * SIZE).open()
    for _ in range(5):
        put(log, b"v")
    assert [len(split(read_slice(log, offset))) for offset in range(5)] == [2, 1, 2, 1, 1]


def test_a_slice_outlives_the_deletion_of_its_segment(tmp_path: Path) -> None:
    box = LogBox(tmp_path, segment_bytes=2 * SIZE)
    log = box.open()
    for value in (b"a", b"b", b"c"):
        put(log, value)
    piece = log.read(0, 1000, at_least_one_batch=True)
    log.delete_first_segments(1, NOW_MS)
    box.timer.ms = box.config.file_delete_delay_ms
    for path in box.deletions.take_due():
        path.unlink(missing_ok=True)
    assert box.names(".deleted") == []
    data = Files().pread_exact(piece.file, piece.size_bytes, piece.position)
    assert [read_header(each).base_offset for each in split(data)] == [0, 1]


def test_a_reader_in_sequence_does_not_search(tmp_path: Path) -> None:
    files = CountingFiles()
    box = LogBox(tmp_path, files=files, index_interval_bytes=0)
    log = box.open()
    for _ in range(100):
        put(log, b"v")
    piece = log.read(0, 1 << 20, at_least_one_batch=True)  # up to the end
    put(log, b"w")
    files.reads = 0
    assert log.read(100, 1 << 20, at_least_one_batch=True).position == piece.size_bytes
    assert files.reads == 0


def test_a_reader_of_pieces_looks_at_few_headers(tmp_path: Path) -> None:
    files = CountingFiles()
    log = LogBox(tmp_path, files=files, index_interval_bytes=0).open()
    for _ in range(100):
        put(log, b"v")
    offset = 0
    log.read(0, 10 * SIZE, at_least_one_batch=True)
    files.reads = 0
    for _ in range(9):
        offset += log.read(offset, 10 * SIZE, at_least_one_batch=True).size_bytes // SIZE
    assert offset == 90
    assert files.reads <= 3 * 9


def test_a_cached_position_does_not_survive_a_truncation(tmp_path: Path) -> None:
    log = LogBox(tmp_path).open()
    for value in (b"a", b"bb", b"c"):
        put(log, value)
    log.read(1, 1000, at_least_one_batch=True)
    log.truncate_to(1, NOW_MS)
    put(log, b"a much longer value")
    put(log, b"d")
    assert values_from(log, 1) == [b"a much longer value", b"d"]
    assert values_from(log, 2) == [b"d"]


def test_a_corrupt_length_is_a_corrupt_message(tmp_path: Path) -> None:
    box = LogBox(tmp_path, segment_bytes=2 * SIZE)
    log = box.open()
    for value in (b"a", b"b", b"c"):
        put(log, value)
    log.close(NOW_MS)
    path = box.path(0, ".log")
    data = bytearray(path.read_bytes())
    data[SIZE + 8 : SIZE + 12] = b"\x00\x00\x00\x01"
    path.write_bytes(data)
    log = box.open()
    assert refusal(log, 1) is ErrorCode.CORRUPT_MESSAGE
    assert values_from(log, 2) == [b"c"]


def test_an_offset_that_was_cut_out_is_skipped(tmp_path: Path) -> None:
    log = LogBox(tmp_path).open()
    put(log, b"a")
    put(log, b"b", b"c", b"d")
    log.truncate_to(3, NOW_MS)  # inside a batch: it goes whole, the offsets stay used
    assert log.log_end_offset == 3
    assert log.read(1, 1000, at_least_one_batch=True).size_bytes == 0
    put(log, b"e")
    assert values_from(log) == [b"a", b"e"]


def test_batches_gives_everything_whole_and_checked(tmp_path: Path) -> None:
    log = LogBox(tmp_path, segment_bytes=2 * SIZE).open()
    for value in (b"a", b"b", b"c", b"d", b"e"):
        put(log, value)
    assert [read_header(each).base_offset for each in log.batches(0)] == [0, 1, 2, 3, 4]
    assert [read_header(each).base_offset for each in log.batches(3)] == [3, 4]
    assert list(log.batches(5)) == []


def test_a_lookup_reads_few_headers_whatever_the_topic_s_index_interval_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = LogBox(tmp_path, index_interval_bytes=2**31 - 1).open()
    value = b"v" * 1000
    for _ in range(300):
        put(log, value)
    read = 0

    def counting(*arguments: Any) -> Any:
        nonlocal read
        for found in scan_headers(*arguments):
            read += 1
            yield found

    monkeypatch.setattr(segment, "scan_headers", counting)
    assert values_from(log, 290) == [value] * 10
    assert 0 < read < 150


# --- offsets by time and epoch


def test_timestamps_are_those_of_records_and_out_of_order_is_fine(tmp_path: Path) -> None:
    log = LogBox(tmp_path, index_interval_bytes=0, segment_bytes=300).open()
    stamps = [[5, 9], [7], [3], [20, 11], [12], [20]]
    for batch in stamps:
        put(log, *[b"v"] * len(batch), timestamps=batch)
    flat = [stamp for batch in stamps for stamp in batch]
    for wanted in range(25):
        first = next((i for i, stamp in enumerate(flat) if stamp >= wanted), None)
        found = log.offset_for_timestamp(wanted)
        assert (found and found.offset) == first
        assert found is None or found.timestamp_ms == flat[found.offset]
    newest = log.offset_of_max_timestamp()
    assert newest is not None
    assert (newest.timestamp_ms, newest.offset) == (20, 4)


def test_lookups_begin_at_the_log_start(tmp_path: Path) -> None:
    log = LogBox(tmp_path).open()
    put(log, b"a", b"b", b"c", timestamps=[1, 2, 3])
    log.increment_log_start_offset(1)
    found = log.offset_for_timestamp(0)
    assert found is not None
    assert found.offset == 1


def test_an_empty_log_has_no_newest_record(tmp_path: Path) -> None:
    log = LogBox(tmp_path).open()
    assert log.offset_of_max_timestamp() is None
    assert log.offset_for_timestamp(0) is None


def test_records_without_timestamps_are_older_than_any(tmp_path: Path) -> None:
    log = LogBox(tmp_path).open()
    put(log, b"a", timestamps=[-1])
    assert log.offset_for_timestamp(0) is None


def test_epochs_follow_the_leader(tmp_path: Path) -> None:
    box = LogBox(tmp_path)
    log = box.open()
    assert log.latest_offset() == (-1, 0, -1)
    log.become_leader(0)
    put(log, b"a")
    log.become_leader(4)
    put(log, b"b")
    put(log, b"c")
    assert log.end_offset_for_epoch(0) == (0, 1)
    assert log.end_offset_for_epoch(3) == (0, 1)
    assert log.end_offset_for_epoch(4) == (4, 3)
    assert log.end_offset_for_epoch(5) == (-1, -1)
    assert log.earliest_offset() == (-1, 0, 0)
    log.increment_log_start_offset(1)
    assert log.earliest_offset() == (-1, 1, 4)
    log.close(NOW_MS)
    log = box.open(log_start_offset=1)
    assert log.leader_epoch == 4
    assert log.latest_offset() == (-1, 3, 4)


def test_a_reader_that_waits_at_the_end_does_not_search_for_the_next_batch(tmp_path: Path) -> None:
    files = CountingFiles()
    log = LogBox(tmp_path, files=files, index_interval_bytes=0).open()
    put(log, b"v")
    assert not log.read(1, SIZE, at_least_one_batch=True).size_bytes
    put(log, b"v")
    put(log, b"v")
    before = files.reads
    assert log.read(1, 9 * SIZE, at_least_one_batch=True).size_bytes == 2 * SIZE
    assert files.reads == before


def test_a_reader_that_asks_again_does_not_search_again(tmp_path: Path) -> None:
    files = CountingFiles()
    log = LogBox(tmp_path, files=files, index_interval_bytes=0).open()
    for _ in range(3):
        put(log, b"v")
    reads = []
    for _ in range(2):
        before = files.reads
        assert log.read(1, 9 * SIZE, at_least_one_batch=True).size_bytes == 2 * SIZE
        reads.append(files.reads - before)
    assert reads[0] > reads[1] == 0


def test_appends_do_not_make_a_reader_search_for_its_position(tmp_path: Path) -> None:
    files = CountingFiles()
    log = LogBox(tmp_path, files=files, index_interval_bytes=0).open()
    for _ in range(100):
        put(log, b"v")
    reads = []
    for step in range(3):
        if step == 2:
            for _ in range(2 * POSITIONS_KEPT):
                put(log, b"v")
        before = files.reads
        assert log.read(5 * step, 5 * SIZE, at_least_one_batch=True).size_bytes == 5 * SIZE
        reads.append(files.reads - before)
    assert reads[1] == reads[2]
