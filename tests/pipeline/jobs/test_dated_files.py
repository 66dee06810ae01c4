"""Records into files by date, with bounded memory."""

import datetime
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odradek.pipeline.jobs.archive.parquet import dated_files
from odradek.pipeline.jobs.archive.parquet.dated_files import DatedFiles
from odradek.pipeline.jobs.archive.parquet.parquet_format import RECORD_SCHEMA
from odradek.pipeline.jobs.archive.parquet.storage import ArchiveFiles, ArchiveLocation
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


def dated_files_in(directory: Path, **more: int) -> DatedFiles:
    archive = ArchiveFiles(ArchiveLocation(str(directory)), QuickFiles())
    return DatedFiles(archive, "orders", "p", **more)


def date_of_day(day: int) -> str:
    return (datetime.date(1970, 1, 1) + datetime.timedelta(days=day)).isoformat()


def test_each_record_is_in_the_file_of_its_date_by_rising_offsets(tmp_path: Path) -> None:
    rng = random.Random(1)
    files = dated_files_in(tmp_path, row_group_bytes=2000)
    expected: dict[int, list[int]] = {}
    for first in range(0, 1000, 50):
        stamps = [rng.randrange(-3 * DAY_MS, 5 * DAY_MS) for _ in range(50)]
        for offset, stamp in enumerate(stamps, first):
            expected.setdefault(stamp // DAY_MS, []).append(offset)
        files.add(records(first, stamps))
    done = {file.date: file for file in files.finish()}
    assert done.keys() == {date_of_day(day) for day in range(-3, 5)}
    for day, offsets in expected.items():
        file = done[date_of_day(day)]
        assert file.path.startswith(f"topic=orders/date={file.date}/p-")
        table = pq.ParquetFile(tmp_path / file.path).read()
        assert table["offset"].to_pylist() == offsets
        assert file.offsets == (offsets[0], offsets[-1])
        assert file.records == len(offsets)
        assert file.size_bytes == (tmp_path / file.path).stat().st_size
        stamps = table["timestamp"].cast(pa.int64()).to_pylist()
        assert file.times_us == (min(stamps), max(stamps))


def test_records_outside_of_the_calendar_share_a_file(tmp_path: Path) -> None:
    """A producer that gives nanoseconds makes as many days as there are records."""
    files = dated_files_in(tmp_path)
    last_ms = 253_402_300_799_999  # of the year 9999
    first_ms = -62_135_596_800_000  # of the year 1
    stamps = [last_ms, last_ms + 1, first_ms, first_ms - 1, 9 * 10**15, last_ms + DAY_MS]
    files.add(records(0, stamps))
    done = {file.date: file for file in files.finish()}
    assert done.keys() == {"9999-12-31", "0001-01-01", None}
    table = pq.ParquetFile(tmp_path / done[None].path).read()
    assert table["offset"].to_pylist() == [1, 3, 4, 5]


def test_many_dates_keep_few_files_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dated_files, "_MAX_OPEN", 3)
    files = dated_files_in(tmp_path, row_group_bytes=1)
    for first in range(12):
        files.add(records(first, [first % 6 * DAY_MS]))
        assert len(files._open) <= 3
    done = files.finish()
    assert sorted(file.offsets for file in done) == [(at, at) for at in range(12)]
    assert len({file.path for file in done}) == 12


def test_buffered_bytes_are_bounded(tmp_path: Path) -> None:
    files = dated_files_in(tmp_path, row_group_bytes=10_000)
    for first in range(0, 400, 4):
        files.add(records(first, [first % 7 * DAY_MS] * 4, b"x" * 500))
        assert files._buffered_bytes < 10_000
    groups = [
        pq.ParquetFile(tmp_path / file.path).metadata.num_row_groups for file in files.finish()
    ]
    assert min(groups) > 1


def test_nothing_makes_no_file(tmp_path: Path) -> None:
    files = dated_files_in(tmp_path)
    files.add(records(0, []))
    assert files.finish() == []
    assert list(tmp_path.iterdir()) == []
