"""The records of a partition in a table, read by rising offsets."""

from pathlib import Path

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.pipeline.jobs.archive.table.data_files import PartitionRows, read_by_offset
from odradek.pipeline.jobs.archive.table.state import PartitionKey
from tests.support.lengths import by_length

KEY = PartitionKey(topic="orders", topic_id="aa", partition=1)


@settings(deadline=None, max_examples=by_length(20, 100))
@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(1, 2)), max_size=80),
    st.integers(0, 90),
    st.integers(1, 30),
    st.randoms(),
)
def test_offsets_of_overlapping_files_rise_whatever_the_order_of_their_rows(
    tmp_path_factory: pytest.TempPathFactory,
    places: list[tuple[int, int]],
    start: int,
    group_rows: int,
    rng: object,
) -> None:
    """`places` has the file and the partition of each offset."""
    directory = tmp_path_factory.mktemp("files")
    for number in {file for file, _ in places}:
        rows = [(offset, of) for offset, (file, of) in enumerate(places) if file == number]
        rng.shuffle(rows)  # type: ignore[attr-defined] # a Random, which hypothesis does not say
        columns = {
            "offset": [offset for offset, _ in rows],
            "partition": pa.array([of for _, of in rows], pa.int32()),
            "topicId": ["aa"] * len(rows),
        }
        pq.write_table(pa.table(columns), directory / str(number), row_group_size=group_rows)
    filesystem = pafs.SubTreeFileSystem(str(directory), pafs.LocalFileSystem())
    paths = [path.name for path in directory.iterdir()]
    wanted = PartitionRows(KEY, start)
    tables = list(read_by_offset(filesystem, paths, wanted, ["offset"]))
    found = [offset for table in tables for offset in table["offset"].to_pylist()]
    assert found == [at for at, (_, of) in enumerate(places) if of == 1 and at >= start]
    assert all(table.num_rows for table in tables)


@pytest.mark.parametrize(
    ("topic_id", "expected"),
    [("aa", [0, 1]), ("bb", [2]), ("", [3, 4])],
)
def test_rows_of_another_topic_of_the_name_are_left_out(
    tmp_path: Path, topic_id: str, expected: list[int]
) -> None:
    columns = {"offset": [0, 1, 2, 3], "partition": pa.array([1] * 4, pa.int32())}
    ids = pa.array(["aa", "aa", "bb", None])
    pq.write_table(pa.table({**columns, "topicId": ids}), tmp_path / "with")
    without = pa.table({"offset": [4], "partition": pa.array([1], pa.int32())})
    pq.write_table(without, tmp_path / "without")
    key = PartitionKey(topic="orders", topic_id=topic_id, partition=1)
    wanted = PartitionRows(key)
    filesystem = pafs.SubTreeFileSystem(str(tmp_path), pafs.LocalFileSystem())
    tables = read_by_offset(filesystem, ["with", "without"], wanted, ["offset"])
    assert [offset for table in tables for offset in table["offset"].to_pylist()] == expected
