"""Reading a partition's directory without a broker, while one may be writing to it."""

from pathlib import Path

import pytest

from odradek.protocol.compression import CompressionType
from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from odradek.storage.batch_scan import CorruptBatchError
from odradek.storage.files import Files, OpenFile
from odradek.storage.log import AppendOrigin
from odradek.storage.log_reader import LogReader
from tests.support.log_box import NOW_MS, LogBox, batch_of, put

SIZE = len(batch_of(b"v"))


def filled(box: LogBox) -> LogReader:
    log = box.open()
    put(log, b"0", b"1", b"2", compression=CompressionType.ZSTD)
    for n in range(3, 8):
        put(log, b"%d" % n)
    return LogReader(box.directory)


def test_it_reads_what_the_broker_wrote_without_its_help(tmp_path: Path) -> None:
    reader = filled(LogBox(tmp_path, segment_bytes=3 * SIZE))
    assert [segment.base_offset for segment in reader.segments()] == [0, 4, 7]
    assert reader.end_offset() == 8
    assert [record.value for record in reader.records()] == [b"%d" % n for n in range(8)]


@pytest.mark.parametrize("start", range(10))
@pytest.mark.parametrize("end", [*range(10), None])
def test_a_range_of_offsets_is_exact(tmp_path: Path, start: int, end: int | None) -> None:
    reader = filled(LogBox(tmp_path, segment_bytes=3 * SIZE))
    wanted = list(range(8))[start:end]
    assert [record.offset for record in reader.records(start, end)] == wanted


def test_a_segment_that_goes_while_the_directory_is_listed_is_left_out(tmp_path: Path) -> None:
    box = LogBox(tmp_path, segment_bytes=3 * SIZE)
    filled(box)

    class Retention(Files):
        def size(self, path: Path) -> int:
            box.path(0, ".log").unlink(missing_ok=True)
            return super().size(path)

    reader = LogReader(box.directory, Retention())
    assert [segment.base_offset for segment in reader.segments()] == [4, 7]
    box.path(4, ".log").unlink()
    box.path(4, ".log").symlink_to("nowhere")
    with pytest.raises(FileNotFoundError):
        reader.segments()


def test_a_torn_tail_ends_the_walk(tmp_path: Path) -> None:
    box = LogBox(tmp_path)
    reader = filled(box)
    box.tear(batch_of(b"half")[:50])
    assert reader.end_offset() == 8
    assert len(list(reader.records())) == 8


def test_the_unused_end_of_a_preallocated_segment_ends_the_walk(tmp_path: Path) -> None:
    box = LogBox(tmp_path, segment_bytes=3 << 20, preallocate=True)
    reader = filled(box)
    path = box.path(0, ".log")
    assert path.stat().st_size == 3 << 20
    assert reader.end_offset() == 8
    assert [record.offset for record in reader.records()] == list(range(8))
    with path.open("r+b") as file:
        file.seek(2 << 20)
        file.write(b"x")
    with pytest.raises(CorruptBatchError, match="0 bytes"):  # such zeros are damage
        list(reader.records())


def test_a_batch_that_is_written_where_zeros_were_read_is_no_damage(tmp_path: Path) -> None:
    box = LogBox(tmp_path, segment_bytes=1 << 20, preallocate=True)
    log = box.open()
    put(log, b"0")

    class Busy(Files):
        def is_zero_from(self, file: OpenFile, position: int) -> bool:
            put(log, b"1")
            return super().is_zero_from(file, position)

    assert [record.value for record in LogReader(box.directory, Busy()).records()] == [b"0"]


def test_a_corrupt_batch_is_raised_or_passed_to_on_corrupt(tmp_path: Path) -> None:
    box = LogBox(tmp_path, segment_bytes=3 * SIZE)
    reader = filled(box)
    path = box.path(0, ".log")
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(CorruptBatchError):
        list(reader.records())
    errors: list[CorruptBatchError] = []
    offsets = [record.offset for record in reader.records(on_corrupt=errors.append)]
    assert offsets == [0, 1, 2, 4, 5, 6, 7]
    assert str(path) in str(errors[0])


def test_control_batches_are_batches_and_not_records(tmp_path: Path) -> None:
    box = LogBox(tmp_path)
    log = box.open()
    put(log, b"a")
    marker = build_batch([Record(b"\x00\x00\x00\x02", b"", NOW_MS)], is_control=True)
    log.append(marker, now_ms=NOW_MS, origin=AppendOrigin.COORDINATOR)
    put(log, b"b")
    reader = LogReader(box.directory)
    assert len(list(reader.batches())) == 3
    assert [record.offset for record in reader.records()] == [0, 2]


def test_a_directory_without_segments_is_an_empty_log(tmp_path: Path) -> None:
    reader = LogReader(tmp_path)
    assert (reader.end_offset(), list(reader.records())) == (0, [])
