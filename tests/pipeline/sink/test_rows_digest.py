"""Which rows are the same, and which mark a task's batch leaves."""

import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa

from odradek.pipeline.sink.marks import Mark
from odradek.pipeline.sink.rows import WriteError, outgoing_batch
from odradek.pipeline.sink.rows_digest import RowsDigest
from odradek.pipeline.sink.written_batches import WrittenBatch, last_batch, places_of
from tests.support.task_attempts import rows

TIMES = pa.timestamp("us", tz="UTC")
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def digest_of(*batches: pa.RecordBatch) -> str:
    digest = RowsDigest()
    for batch in batches:
        named = "topic" in batch.schema.names
        digest.add(
            outgoing_batch(
                batch, None if named else "t", with_timestamp="timestamp" in batch.schema.names
            )
        )
    return digest.text()


def test_neither_order_nor_division_into_batches_matters() -> None:
    assert digest_of(rows("a", "b", "c")) == digest_of(rows("c"), rows("b", "a"))


def test_rows_that_occur_twice_count_twice() -> None:
    assert len({digest_of(rows(*"a" * count)) for count in range(4)}) == 4


ROW = {
    "value": pa.array([b"v"]),
    "key": pa.array([b"k"]),
    "topic": pa.array(["t"]),
    "partition": pa.array([1], pa.int32()),
    "timestamp": pa.array([5_000], TIMES),
    "headers": pa.array([[("h", b"1")]], HEADERS),
}


@pytest.mark.parametrize(
    "other",
    [
        {"value": pa.array([b"w"])},
        {"value": pa.array([None], pa.binary())},
        {"value": pa.array([b""])},
        {"key": pa.array([b"l"])},
        {"key": pa.array([None], pa.binary())},
        {"key": pa.array([b"v"]), "value": pa.array([b"k"])},
        {"topic": pa.array(["u"])},
        {"partition": pa.array([2], pa.int32())},
        {"timestamp": pa.array([6_000], TIMES)},
        {"headers": pa.array([[("h", b"2")]], HEADERS)},
        {"headers": pa.array([[("i", b"1")]], HEADERS)},
        {"headers": pa.array([None], HEADERS)},
    ],
)
def test_each_part_of_a_record_matters(other: dict[str, pa.Array]) -> None:
    assert digest_of(pa.record_batch(ROW)) != digest_of(pa.record_batch({**ROW, **other}))


def test_keys_belong_to_their_values() -> None:
    values = pa.array([b"1", b"2"])
    straight = pa.record_batch({"value": values, "key": pa.array([b"a", b"b"])})
    crossed = pa.record_batch({"value": values, "key": pa.array([b"b", b"a"])})
    assert digest_of(straight) != digest_of(crossed)


def test_the_hash_of_a_release_is_that_of_the_next() -> None:
    """It is stored in running checkpoints' groups."""
    assert digest_of(pa.record_batch(ROW)) == "b0b86720eb088fb6"


def test_a_batch_is_read_from_the_newest_of_its_marks() -> None:
    batch = WrittenBatch(7, 3, "00ff", "run")
    marks = batch.as_marks(places_of(["b", "a"]))
    assert [(mark.topic, mark.partition, mark.offset) for mark in marks] == [
        ("a", 0, 8),
        ("b", 0, 8),
    ]
    older = WrittenBatch(6, 1, "11", "run").as_marks(places_of(["c"]))
    assert last_batch([*older, *marks]) == batch
    assert last_batch([]) is None


@pytest.mark.parametrize("metadata", ["", "[]", "{}", '{"rows": 2}', "no JSON"])
def test_an_offset_that_the_sink_has_not_committed_is_an_error(metadata: str) -> None:
    with pytest.raises(WriteError, match=r"offset 5 of t-0 was not committed by the sink"):
        last_batch([Mark("t", 0, 5, metadata)])
