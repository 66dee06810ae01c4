"""Records into files by date, with bounded memory."""

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odradek.pipeline.jobs.archive import dated_files
from odradek.pipeline.jobs.archive.dated_files import DatedFiles
from odradek.pipeline.jobs.archive.parquet_format import RECORD_SCHEMA
from tests.support.crashing_files import QuickFiles

DAY_MS = 86_400_000


def records(first: int, stamps_ms: list[int], value: bytes = b"v") -> pa.RecordBatch:
    count = len(stamps_ms)
    rows = {
        "key": [b"k"] * count,
        "value": [value] * count,
        "partition": [0] * count,
        "offset": range(first, first + count),
        "timestamp": pa.array([stamp * 1000 for stamp in stamps_ms]),
        "timestampType": [0] * count,
        "headers": [None] * count,
    }
    return pa.record_batch(rows, schema=RECORD_SCHEMA)


def test_each_record_is_in_the_file_of_its_date_by_rising_offsets(tmp_path: Path) -> None:
    rng = random.Random(1)
    files = DatedFiles(QuickFiles(), tmp_path, "p", row_group_bytes=2000)
    expected: dict[int, list[int]] = {}
    for first in range(0, 1000, 50):
        stamps = [rng.randrange(-3 * DAY_MS, 5 * DAY_MS) for _ in range(50)]
        for offset, stamp in enumerate(stamps, first):
            expected.setdefault(stamp // DAY_MS, []).append(offset)
        files.add(records(first, stamps))
    done = files.finish()
    assert [file.day for file in done] == list(range(-3, 5))
    for file in done:
        table = pq.ParquetFile(file.path).read()
        offsets = table["offset"].to_pylist()
        assert offsets == expected[file.day]
        assert (file.first_offset, file.last_offset) == (offsets[0], offsets[-1])
        assert file.records == len(offsets)
        assert file.size_bytes == file.path.stat().st_size
        stamps = [stamp // 1000 for stamp in table["timestamp"].cast(pa.int64()).to_pylist()]
        assert file.times_ms == (min(stamps), max(stamps))


def test_many_dates_keep_few_files_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dated_files, "_MAX_OPEN", 3)
    files = DatedFiles(QuickFiles(), tmp_path, "p", row_group_bytes=1)
    for first in range(12):
        files.add(records(first, [first % 6 * DAY_MS]))
        assert len(files._open) <= 3
    done = files.finish()
    assert sorted(file.first_offset for file in done) == list(range(12))
    assert [file.day for file in done] == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]


def test_buffered_bytes_are_bounded(tmp_path: Path) -> None:
    files = DatedFiles(QuickFiles(), tmp_path, "p", row_group_bytes=10_000)
    for first in range(0, 400, 4):
        files.add(records(first, [first % 7 * DAY_MS] * 4, b"x" * 500))
        assert files._buffered_bytes < 10_000
    groups = [pq.ParquetFile(file.path).metadata.num_row_groups for file in files.finish()]
    assert min(groups) > 1


def test_nothing_makes_no_file(tmp_path: Path) -> None:
    files = DatedFiles(QuickFiles(), tmp_path, "p")
    files.add(records(0, []))
    assert files.finish() == []
    assert list(tmp_path.iterdir()) == []
