"""Positions of batches from an index that a broker is writing."""

import struct
from pathlib import Path

from odradek.pipeline.reading.index_lookup import (
    position_before,
    position_range,
    read_offset_index,
)
from odradek.storage.files import Files, OpenFile
from odradek.storage.log_reader import LogReader, OpenSegment
from tests.support.log_box import NOW_MS, LogBox, put

INDEX_BYTES = 10 << 20  # as a broker preallocates it


class CountingFiles(Files):
    """Knows how much has been read."""

    def __init__(self) -> None:
        self.read_bytes = 0

    def read(self, path: Path) -> bytes:
        data = super().read(path)
        self.read_bytes += len(data)
        return data

    def pread(self, file: OpenFile, size: int, position: int) -> bytes:
        data = super().pread(file, size, position)
        self.read_bytes += len(data)
        return data


def written(root: Path) -> Path:
    """A log whose only segment is active, and whose index has many entries and room for more."""
    log = LogBox(root, index_interval_bytes=100, segment_index_bytes=INDEX_BYTES).open()
    for number in range(100):
        put(log, b"%d" % number * 50)
    log.flush(NOW_MS)
    return log.directory


def only_segment(directory: Path, files: Files | None = None) -> OpenSegment:
    reader = LogReader(directory, files)
    (segment,) = reader.segments()
    return reader.open(segment)


def test_the_room_in_an_active_index_is_not_read(tmp_path: Path) -> None:
    directory, files = written(tmp_path), CountingFiles()
    (path,) = directory.glob("*.index")
    assert path.stat().st_size > INDEX_BYTES - 8
    opened = only_segment(directory, files)
    entries = read_offset_index(opened)
    assert 20 < entries.count < 100
    for number in (0, 7, -1):
        entry = entries.at(number)
        assert position_before(opened, entry.last_offset) == entry.position
    assert files.read_bytes < 20_000


def test_an_index_of_zeros_or_an_empty_index_has_no_entries(tmp_path: Path) -> None:
    directory = written(tmp_path)
    (path,) = directory.glob("*.index")
    opened = only_segment(directory)
    for content in (b"\0" * 80, b"", b"\0" * 7):
        path.write_bytes(content)
        assert read_offset_index(opened).count == 0
    path.unlink()
    assert read_offset_index(opened).count == 0


def test_positions_enclose_a_range_closely(tmp_path: Path) -> None:
    directory = written(tmp_path)
    opened = only_segment(directory)
    batches = [(header.last_offset, at) for at, header in opened.headers()]
    positions = [at for _, at in batches] + [opened.size_bytes]
    for start, end in ((0, 1), (0, 100), (10, 20), (47, 48), (99, 100), (98, 200)):
        begin, stop = position_range(opened, start, end)
        assert {begin, stop} <= set(positions)
        assert begin <= positions[start]
        assert stop >= positions[min(end, 100)]
        # There is an entry every 100 bytes or so, and no batch is longer than 400.
        assert stop - begin < positions[min(end, 100)] - positions[start] + 1500


def test_a_wrong_index_entry_after_the_range_is_ignored(tmp_path: Path) -> None:
    directory = written(tmp_path)
    (path,) = directory.glob("*.index")
    opened = only_segment(directory)
    at_60 = next(at for at, header in opened.headers() if header.last_offset == 60)
    for entries in (((10, 7), (80, at_60)), ((90, 100), (95, at_60 + 3))):
        path.write_bytes(b"".join(struct.pack(">ii", *entry) for entry in entries))
        assert position_range(opened, 0, 80)[1] == opened.size_bytes
