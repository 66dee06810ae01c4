"""Files of one partition, read by rising offsets."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.pipeline.jobs.archive.merged_records import OffsetFile, read_by_offset


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.integers(0, 5), max_size=80),
    st.integers(0, 90),
    st.integers(1, 20),
    st.integers(1, 30),
)
def test_offsets_of_overlapping_files_rise(
    tmp_path_factory: pytest.TempPathFactory,
    files: list[int],
    start: int,
    batch_rows: int,
    group_rows: int,
) -> None:
    """`files` tells of each offset which file it is in."""
    directory = tmp_path_factory.mktemp("files")
    sources = []
    for number in set(files):
        offsets = [offset for offset, file in enumerate(files) if file == number]
        path = directory / f"{number}.parquet"
        table = pa.table({"offset": offsets, "file": [number] * len(offsets)})
        pq.write_table(table, path, row_group_size=group_rows)
        sources.append(OffsetFile(path, offsets[0]))
    read = read_by_offset(sources, start, batch_rows=batch_rows)
    found = [row for table in read for row in table.to_pylist()]
    expected = [{"offset": each, "file": file} for each, file in enumerate(files) if each >= start]
    assert found == expected


def test_only_the_columns_that_are_asked_for_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"offset": [1, 2], "value": [b"a", b"b"], "other": [1, 2]}), path)
    (table,) = read_by_offset([OffsetFile(path, 1)], columns=["value", "offset"])
    assert set(table.column_names) == {"value", "offset"}
