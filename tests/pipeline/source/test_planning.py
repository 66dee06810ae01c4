"""Options into ranges of offsets for tasks."""

from collections.abc import Collection

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.pipeline.option_values import OptionError
from odradek.pipeline.reading.bounds import OffsetBounds
from odradek.pipeline.reading.range_reader import DataLostError
from odradek.pipeline.source import resolving
from odradek.pipeline.source.options import read_options
from odradek.pipeline.source.planning import plan_batch
from odradek.storage.topic_partition import TopicPartition
from tests.pipeline.source.origins import Numbers

THERE = {"a-0": (10, 30), "a-1": (0, 0), "a-2": (5, 105), "b-0": (0, 7)}


def planned(origin: Numbers | None = None, /, **given: str) -> list[tuple[str, int, int]]:
    where = {} if "assign" in given or "subscribePattern" in given else {"subscribe": "a"}
    options = read_options({"path": "/logs", **where, **given}, streaming=False)
    parts = plan_batch(origin or Numbers(THERE), options)
    return [(str(part.partition), part.start, part.end) for part in parts]


def test_everything_that_is_there_but_nothing_of_empty_partitions() -> None:
    assert planned() == [("a-0", 10, 30), ("a-2", 5, 105)]
    assert planned(assign='{"a":[1]}') == []
    assert planned(subscribePattern="nothing.*") == []


def test_offsets_of_each_partition() -> None:
    assert planned(
        startingOffsets='{"a":{"0":15,"1":-2,"2":-2}}', endingOffsets='{"a":{"0":-1,"1":-1,"2":6}}'
    ) == [("a-0", 15, 30), ("a-2", 5, 6)]


def test_every_partition_must_have_its_offset() -> None:
    with pytest.raises(OptionError, match="you must specify all TopicPartitions"):
        planned(startingOffsets='{"a":{"0":15}}')


@pytest.mark.parametrize(
    "given",
    [{"startingOffsets": '{"a":{"0":9}}'}, {"endingOffsets": '{"a":{"0":31}}'}],
)
def test_offsets_outside_the_log_are_lost_data(given: dict[str, str]) -> None:
    with pytest.raises(DataLostError, match=r"of a-0 is not in \[10, 30\]"):
        planned(assign='{"a":[0]}', **given)
    assert planned(assign='{"a":[0]}', failOnDataLoss="false", **given) == [("a-0", 10, 30)]


def test_a_missing_topic_is_lost_data() -> None:
    with pytest.raises(DataLostError, match="not found: c"):
        planned(subscribe="b,c")
    assert planned(subscribe="b,c", failOnDataLoss="false") == [("b-0", 0, 7)]


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"startingTimestamp": "1000", "startingOffsetsByTimestampStrategy": "latest"},
        {"endingTimestamp": "9999"},
    ],
)
def test_a_partition_that_is_missing_for_a_moment_is_read(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, str]
) -> None:
    """It is being moved to another log directory, or has a new leader."""
    monkeypatch.setattr(resolving, "_WAIT_S", 0.0)
    origin = Numbers(THERE, hidden={"a-2": 4})
    assert planned(origin, **given) == [("a-0", 10, 30), ("a-2", 5, 105)]


def test_a_partition_that_stays_missing_is_lost_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolving, "_WAIT_S", 0.0)
    always = {"a-2": 1000}
    with pytest.raises(DataLostError, match="a-2 no longer exist"):
        planned(Numbers(THERE, hidden=always))
    tolerant = Numbers(THERE, hidden=always)
    assert planned(tolerant, failOnDataLoss="false") == [("a-0", 10, 30)]


class CreatedAgain(Numbers):
    """The topic is created again when its offsets are known."""

    def bounds(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, OffsetBounds]:
        self.ids = {"a": b"2"}
        return super().bounds(partitions)


def test_the_ranges_are_of_the_topic_whose_offsets_were_found() -> None:
    options = read_options({"path": "/logs", "subscribe": "a"}, streaming=False)
    parts = plan_batch(CreatedAgain(THERE, {"a": b"1"}), options)
    assert {part.topic_id for part in parts} == {b"1"}


def test_times_become_offsets() -> None:
    given = {"startingTimestamp": "1012", "endingTimestamp": "1040"}
    assert planned(assign='{"a":[0,2]}', **given) == [("a-0", 12, 30), ("a-2", 12, 40)]


def test_a_start_after_all_records_is_an_error_or_the_end() -> None:
    given = {"assign": '{"a":[0]}', "startingTimestamp": "5000"}
    with pytest.raises(OptionError, match="No offset matched"):
        planned(**given)
    assert planned(**given, startingOffsetsByTimestampStrategy="latest") == []


@given(st.integers(1, 200))
def test_min_partitions_cuts_large_ranges_most(count: int) -> None:
    parts = planned(minPartitions=str(count))
    assert min(count, 120) <= len(parts) <= count + 1
    offsets = [(name, offset) for name, start, end in parts for offset in range(start, end)]
    whole = [(name, offset) for name, start, end in planned() for offset in range(start, end)]
    assert offsets == whole


def test_max_records_per_partition_bounds_each_range() -> None:
    parts = planned(maxRecordsPerPartition="30")
    assert max(end - start for _, start, end in parts) <= 30
    assert sum(end - start for _, start, end in parts) == 120


def test_batches_are_not_cut() -> None:
    assert planned(view="batches", minPartitions="50") == planned()
