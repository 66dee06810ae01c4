"""The rows of a task are there again, in memory or in a file."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa

from odradek.pipeline.sink.collected_rows import CollectedRows
from tests.support.open_files import open_files


def batch(*values: str | None) -> pa.RecordBatch:
    return pa.record_batch({"value": pa.array(values, pa.string()), "n": range(len(values))})


@pytest.mark.parametrize("in_memory_bytes", [100, 1 << 20])
def test_all_rows_can_be_iterated_many_times(in_memory_bytes: int) -> None:
    given = [batch("a", None), batch(), batch("c" * 10_000), batch("d", "e", "f")]
    with CollectedRows(given, in_memory_bytes=in_memory_bytes) as rows:
        rows.collect()
        assert rows.count == 6
        for _ in range(2):
            assert list(rows) == [given[0], given[2], given[3]]


@pytest.mark.parametrize("in_memory_bytes", [100, 1 << 20])
def test_rows_can_be_iterated_while_they_arrive(in_memory_bytes: int) -> None:
    given = [batch("a"), batch("b"), batch("c" * 10_000), batch("d"), batch("e")]
    with CollectedRows(given, in_memory_bytes=in_memory_bytes) as rows:
        rows.collect(up_to_bytes=1)
        assert (rows.count, rows.are_complete) == (1, False)
        for stop_after in (2, 4):
            assert list(islice(rows, stop_after)) == given[:stop_after]
            assert not rows.are_complete
        assert list(rows) == given
        assert rows.are_complete


@pytest.mark.parametrize("given", [[], [batch()]])
def test_there_may_be_none(given: list[pa.RecordBatch]) -> None:
    with CollectedRows(given) as rows:
        assert (list(rows), rows.count, rows.are_complete) == ([], 0, True)


def test_many_rows_are_kept_where_spark_keeps_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path},/elsewhere")
    with CollectedRows([batch("a" * 1000)], in_memory_bytes=100) as rows:
        rows.collect()
        assert len(open_files(tmp_path)) == 1
        assert list(rows) == [batch("a" * 1000)]
        assert list(tmp_path.iterdir()) == []
    assert open_files(tmp_path) == []


def test_nothing_is_left_of_rows_that_do_not_all_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))

    def failing() -> Iterator[pa.RecordBatch]:
        yield batch("a" * 1000)
        assert len(open_files(tmp_path)) == 1
        raise OSError("what makes the rows has failed")

    with (
        CollectedRows(failing(), in_memory_bytes=100) as rows,
        pytest.raises(OSError, match="has failed"),
    ):
        rows.collect()
    assert open_files(tmp_path) == []
