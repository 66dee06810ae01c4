"""Reading with `isolation.level=read_committed`: the markers in the log decide."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from odradek.pipeline.decoding.decoder import RecordDecoder
from odradek.pipeline.reading.committed_batches import CommittedBatches
from odradek.pipeline.reading.partitions import LogDirectories
from odradek.pipeline.reading.pieces import read_pieces
from odradek.pipeline.reading.range_reader import DataLostError, OffsetRange, RangeReader
from odradek.pipeline.source.files_origin import FilesOrigin
from odradek.storage.filenames import FileKind
from odradek.storage.files import Files, OpenFile
from odradek.storage.log import PartitionLog
from odradek.storage.log_reader import LogReader
from tests.pipeline.source.origins import tp
from tests.pipeline.source.test_files_origin import in_transaction
from tests.support.crashing_files import QuickFiles
from tests.support.dirty_logs import Writer, clean, end_transaction
from tests.support.log_box import NOW_MS, LogBox, put

ORDERS = tp("orders-0")
SEGMENT_BYTES = 2000


def box_at(root: Path) -> LogBox:
    return LogBox(root, files=QuickFiles(), segment_bytes=SEGMENT_BYTES, index_interval_bytes=200)


def committed(
    root: Path, column: str = "value", *, max_split_bytes: int | None = None
) -> list[object]:
    """A column in the order of the log, as read in one part or in several."""
    origin = FilesOrigin([root], committed_only=True, max_split_bytes=max_split_bytes)
    start, end = origin.bounds([ORDERS])[ORDERS]
    return [
        value
        for part in origin.parts(ORDERS, start, end)
        for value in column_of(root, replace(part, committed_only=True), column)
    ]


def column_of(
    root: Path,
    wanted: OffsetRange,
    column: str = "value",
    *,
    files: Files | None = None,
    **more: bool,
) -> list[object]:
    decoder = RecordDecoder("orders", 0, (column,))
    reader = RangeReader(
        LogDirectories([root], files), wanted, decoder, wait=lambda _: None, **more
    )
    return [value for batch in reader.read() for value in batch[column].to_pylist()]


def long_aborted_transaction(root: Path) -> PartitionLog:
    """A record of it is in the first segment, and its marker at the end of the last of several."""
    log = box_at(root).open()
    put(log, b"before")
    in_transaction(log, 1, 0, b"aborted")
    while len(log.segments) < 6:
        put(log, b"other" * 20)
    end_transaction(log, 1, 0, commit=False)
    return log


def remove(path: Path) -> None:
    path.unlink()


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-34])


def spoil(path: Path) -> None:
    path.write_bytes(b"\xff" * path.stat().st_size)


@pytest.mark.parametrize("max_split_bytes", [None, 700])
@pytest.mark.parametrize("suffix", [".txnindex", ".snapshot"])
@pytest.mark.parametrize("damage", [remove, cut, spoil])
def test_aborted_records_are_left_out_whatever_happened_to_the_files_beside_the_log(
    tmp_path: Path, damage: Callable[[Path], None], suffix: str, max_split_bytes: int | None
) -> None:
    box = box_at(tmp_path)
    log = box.open()
    Writer(3, null_keys=False).write(log, 200)
    log.close(NOW_MS)
    expected = committed(tmp_path)
    names = box.names(suffix)
    assert names
    for name in names:
        damage(box.directory / name)
    assert committed(tmp_path, max_split_bytes=max_split_bytes) == expected


def test_a_record_of_a_cleaned_log_is_committed_if_it_was_before(tmp_path: Path) -> None:
    """The cleaner removes markers, and leaves empty batches."""
    for seed in range(3):
        root = tmp_path / str(seed)
        box = LogBox(
            root, files=QuickFiles(), segment_bytes=SEGMENT_BYTES, cleanup_policy=("compact",)
        )
        log = box.open()
        Writer(seed, null_keys=False).write(log, 200)
        before = committed(root, "offset")
        for now_ms in (NOW_MS + 10**9, NOW_MS + 10**10):
            put(log, b"last", key=b"last")
            log.roll(now_ms)
            clean(log, now_ms)
        everything = OffsetRange(ORDERS, log.log_start_offset, log.log_end_offset)
        after = column_of(root, everything, "offset")
        assert len(after) < len(before)
        assert committed(root, "offset") == after
        assert set(after[:-2]) < set(before)


def test_the_rest_of_an_aborted_transaction_is_left_out(tmp_path: Path) -> None:
    """Retention has deleted the segment in which it began."""
    log = box_at(tmp_path).open()
    in_transaction(log, 1, 0, b"deleted" * 265)
    in_transaction(log, 1, 1, b"aborted")
    put(log, b"after")
    log.delete_first_segments(1, NOW_MS)
    end_transaction(log, 1, 0, commit=False)
    assert committed(tmp_path) == [b"after"]


def test_the_beginning_of_an_open_transaction_may_be_deleted(tmp_path: Path) -> None:
    log = box_at(tmp_path).open()
    in_transaction(log, 1, 0, b"deleted" * 270)
    in_transaction(log, 1, 1, b"open")
    log.delete_first_segments(1, NOW_MS)
    origin = FilesOrigin([tmp_path], committed_only=True, max_split_bytes=None)
    assert origin.bounds([ORDERS]) == {ORDERS: (1, 1)}
    assert log.last_stable_offset == 1
    end_transaction(log, 1, 0, commit=True)
    assert committed(tmp_path) == [b"open"]


def test_segments_without_the_marker_of_a_long_transaction_are_not_read(tmp_path: Path) -> None:
    log = long_aborted_transaction(tmp_path)

    read_from: set[str] = set()

    class Recorded(Files):
        def pread(self, file: OpenFile, size: int, position: int) -> bytes:
            read_from.add(file.path.name)
            return super().pread(file, size, position)

    wanted = OffsetRange(ORDERS, 0, 2, committed_only=True)
    assert column_of(tmp_path, wanted, files=Recorded()) == [b"before"]
    names = [segment.path(FileKind.LOG).name for segment in log.segments]
    assert {each for each in read_from if each.endswith(".log")} == {names[0], names[-1]}


def test_the_marker_is_found_after_the_segment_with_the_record_was_deleted(tmp_path: Path) -> None:
    log = long_aborted_transaction(tmp_path)
    reader = LogReader(log.directory)
    segment = reader.open(reader.segments()[0])
    (piece,) = read_pieces(segment, 0, segment.size_bytes, verify_crc=True)
    assert piece.table is not None
    log.delete_first_segments(1, NOW_MS)
    committed = CommittedBatches(
        LogDirectories([tmp_path]), ORDERS, lambda offset: pytest.fail(str(offset)), verify_crc=True
    )
    committed.begin_segment(segment, 0)
    assert 1 not in committed.select(piece, piece.table).base_offset.tolist()


def test_a_record_whose_marker_was_deleted_since_is_lost(tmp_path: Path) -> None:
    log = long_aborted_transaction(tmp_path)
    wanted = OffsetRange(ORDERS, 0, 2, committed_only=True)
    log.segments[5].path(FileKind.LOG).unlink()
    with pytest.raises(DataLostError, match="orders-0: offset 1 is lost: the marker"):
        column_of(tmp_path, wanted)
    assert column_of(tmp_path, wanted, fail_on_data_loss=False) == [b"before"]
