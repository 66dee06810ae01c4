"""Which small files are merged, and what a merged file contains."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from odradek.pipeline.jobs.archive.parquet.dated_files import FileWriter
from odradek.pipeline.jobs.archive.parquet.parquet_format import RECORD_SCHEMA
from odradek.pipeline.jobs.archive.parquet.storage import ArchiveFiles
from odradek.pipeline.jobs.archive.table.data_files import DataFile
from odradek.pipeline.jobs.archive.table.merging import MergingWork, files_to_merge
from tests.support.archives import at
from tests.support.crashing_files import QuickFiles

TARGET_BYTES = 100
FILES = st.lists(
    st.builds(
        DataFile,
        path=st.uuids().map(str),
        topic=st.sampled_from(["orders", "payments"]),
        date=st.sampled_from([None, "2026-11-26", "2026-11-27"]),
        records=st.just(1),
        size_bytes=st.integers(1, 2 * TARGET_BYTES),
        offsets=st.tuples(st.none() | st.integers(0, 99), st.none()),
        partitions=st.just((0, 0)),
        times=st.just((None, None)),
    ),
    max_size=20,
)


@given(FILES)
def test_files_of_one_topic_and_date_are_merged_up_to_the_target(files: list[DataFile]) -> None:
    groups = list(files_to_merge(files, TARGET_BYTES))
    merged = [file for group in groups for file in group]
    assert len({file.path for file in merged}) == len(merged)
    assert all(file in files and 2 * file.size_bytes < TARGET_BYTES for file in merged)
    for group in groups:
        assert len({(file.topic, file.date) for file in group}) == 1
        assert len(group) > 1
        assert sum(file.size_bytes for file in group) <= TARGET_BYTES


@given(FILES)
def test_after_merges_no_two_neighbours_would_fit_into_one_file(files: list[DataFile]) -> None:
    """So a second merge does little, and a third one nothing."""
    for _ in range(len(files)):
        groups = list(files_to_merge(files, TARGET_BYTES))
        if not groups:
            break
        gone = {file.path for group in groups for file in group}
        files = [file for file in files if file.path not in gone] + [
            group[0]._replace(size_bytes=sum(file.size_bytes for file in group)) for group in groups
        ]
    assert list(files_to_merge(files, TARGET_BYTES)) == []


def file_of(archive: ArchiveFiles, first: int, count: int, **more: str) -> DataFile:
    """A file of a partition with its own columns besides those of records."""
    rows = {
        "key": [b"k"] * count,
        "value": [b"%d" % number for number in range(count)],
        "partition": [first // 100] * count,
        "offset": range(first, first + count),
        "timestamp": pa.array([number * 1000 for number in range(first, first + count)]),
        "timestampType": [0] * count,
        "headers": [None] * count,
    }
    table = pa.table(rows, schema=RECORD_SCHEMA)
    for name, value in more.items():
        table = table.append_column(name, pa.repeat(value, count))
    writer = FileWriter(archive, "orders", "2026-11-27", f"{first}.parquet", table.schema)
    writer.write(table)
    file = writer.close()
    bounds = file.offsets, file.partitions, (None, None)
    return DataFile(file.path, file.topic, file.date, file.records, file.size_bytes, *bounds)


def test_a_merged_file_has_the_rows_and_columns_of_all(tmp_path: Path) -> None:
    archive = ArchiveFiles(at(tmp_path), QuickFiles())
    group = [
        file_of(archive, 0, 30),
        file_of(archive, 100, 20, customer="ann"),
        file_of(archive, 200, 10, error="not JSON", customer="bob"),
    ]
    work = MergingWork(location=at(tmp_path), files=QuickFiles(), row_group_bytes=1000)
    [merged] = work(group)
    assert merged.replaced == group
    written = merged.written
    assert (written.records, written.partitions, written.offsets) == (60, (0, 2), (0, 209))
    assert written.times_us == (0, 209_000)
    assert written.size_bytes == (tmp_path / written.path).stat().st_size
    source = pq.ParquetFile(tmp_path / written.path)
    assert source.num_row_groups > 1
    rows = source.read()
    assert rows["offset"].to_pylist() == [*range(30), *range(100, 120), *range(200, 210)]
    assert rows["customer"].to_pylist() == [None] * 30 + ["ann"] * 20 + ["bob"] * 10
    assert rows["error"].to_pylist() == [None] * 50 + ["not JSON"] * 10
    assert rows["value"].to_pylist()[:2] == [b"0", b"1"]
