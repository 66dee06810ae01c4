"""From batch to batch of a stream."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

pytest.importorskip("pyspark")

from hypothesis import given
from hypothesis import strategies as st

from odradek.pipeline.reading.range_reader import DataLostError, OffsetRange
from odradek.pipeline.source import resolving
from odradek.pipeline.source.options import read_options
from odradek.pipeline.source.stream_offsets import StreamOffsets, from_json_object
from odradek.pipeline.source.stream_planner import StreamPlanner
from tests.pipeline.source.origins import Numbers, tp

# {"a-0": 7, "a": b"1"}: offsets of partitions, and ids of topics.
Named = Mapping[str, int | bytes]


@pytest.fixture(autouse=True)
def _looks_again_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolving, "_WAIT_S", 0.0)


def as_offsets(named: Named) -> StreamOffsets:
    return StreamOffsets(
        {tp(name): offset for name, offset in named.items() if isinstance(offset, int)},
        {topic: an_id for topic, an_id in named.items() if isinstance(an_id, bytes)},
    )


def as_named(offsets: StreamOffsets) -> dict[str, int | bytes]:
    named = {str(each): offset for each, offset in offsets.offsets.items()}
    return {**named, **offsets.topic_ids}


class Stream:
    """A stream over numbers, with a clock that is set."""

    def __init__(
        self,
        there: dict[str, tuple[int, int]],
        ids: Mapping[str, bytes] | None = None,
        **given: str,
    ) -> None:
        self.log = Numbers(there, dict(ids or {}))
        self.now_ms = 1e9
        texts = {"path": "/logs", "subscribePattern": ".*", "startingOffsets": "earliest", **given}
        self.options = read_options(texts, streaming=True)
        self.restart()

    def restart(self) -> None:
        self.planner = StreamPlanner(self.log, self.options, lambda: self.now_ms)

    def initial(self) -> dict[str, int | bytes]:
        return as_named(self.planner.initial())

    def next_end(
        self, start: Named, at_most: int | None = None, *, may_wait: bool = False
    ) -> dict[str, int | bytes]:
        return as_named(self.planner.next_end(as_offsets(start), at_most, may_wait=may_wait))

    def parts(self, start: Named, end: Named) -> list[tuple[str, int, int]]:
        return [
            (str(part.partition), part.start, part.end)
            for part in self.planner.parts(as_offsets(start), as_offsets(end))
        ]


def test_a_batch_goes_to_the_end() -> None:
    stream = Stream({"a-0": (3, 10), "a-1": (0, 0)})
    assert stream.initial() == {"a-0": 3, "a-1": 0}
    assert stream.next_end({"a-0": 3, "a-1": 0}) == {"a-0": 10, "a-1": 0}
    assert stream.parts({"a-0": 3, "a-1": 0}, {"a-0": 10, "a-1": 0}) == [("a-0", 3, 10)]


def test_a_stream_from_the_latest_offsets_first_notes_where_it_began() -> None:
    stream = Stream({"a-0": (0, 10)}, startingOffsets="latest")
    start = stream.initial()
    stream.log.there["a-0"] = (0, 15)
    assert stream.next_end(start) == start == {"a-0": 10}
    assert stream.next_end(start) == {"a-0": 15}


def test_a_stream_from_the_latest_offsets_does_not_read_what_was_missing_for_a_moment() -> None:
    stream = Stream({"a-0": (0, 10), "a-1": (0, 5)}, startingOffsets="latest")
    stream.log.hidden = {"a-1": 2}
    start = stream.initial()
    assert start == {"a-0": 10, "a-1": 5}
    stream.log.hidden = {"a-1": 1000}
    with pytest.raises(DataLostError, match="a-1 no longer exist"):
        stream.initial()


def test_a_stream_goes_on_with_a_partition_that_was_missing_for_a_moment() -> None:
    stream = Stream({"a-0": (0, 10), "a-1": (0, 5)})
    stream.log.hidden = {"a-1": 2}
    assert stream.next_end({"a-0": 3, "a-1": 4}) == {"a-0": 10, "a-1": 5}


def test_a_first_batch_that_was_planned_before_a_crash_is_read_as_it_was_planned() -> None:
    """Spark stores where it ends, and asks again where it begins."""
    planned = {"a-0": 10, "a-1": 20}
    now = {"a-0": (0, 15), "a-1": (0, 20), "a-2": (0, 7)}
    stream = Stream(now)
    start = stream.initial()
    assert stream.parts(start, planned) == [("a-0", 0, 10), ("a-1", 0, 20)]
    end = stream.next_end(planned)
    assert end == {"a-0": 15, "a-1": 20, "a-2": 7}
    assert stream.parts(planned, end) == [("a-0", 10, 15), ("a-2", 0, 7)]
    at_latest = Stream(now, startingOffsets="latest")
    start = at_latest.initial()
    assert start == {"a-0": 15, "a-1": 20, "a-2": 7}
    assert at_latest.parts(start, planned) == []
    assert at_latest.parts(planned, at_latest.next_end(planned)) == [("a-0", 10, 15), ("a-2", 0, 7)]


def test_a_limit_is_shared_in_proportion_and_no_partition_starves() -> None:
    stream = Stream({"a-0": (0, 1000), "a-1": (0, 100), "a-2": (0, 1)})
    start = {"a-0": 0, "a-1": 0, "a-2": 0}
    assert stream.next_end(start, 110) == {"a-0": 99, "a-1": 9, "a-2": 1}


@given(
    st.dictionaries(st.sampled_from(["a-0", "a-1", "b-0"]), st.integers(0, 50), min_size=1),
    st.integers(1, 30),
)
def test_a_limited_stream_comes_to_the_end(sizes: dict[str, int], at_most: int) -> None:
    stream = Stream({name: (0, size) for name, size in sizes.items()})
    at: Named = dict.fromkeys(sizes, 0)
    seen = 0
    for _ in range(sum(sizes.values()) + 1):
        end = stream.next_end(at, at_most)
        parts = stream.parts(at, end)
        count = sum(end - first for _, first, end in parts)
        assert count <= at_most + len(sizes)
        seen, at = seen + count, end
    assert at == sizes
    assert seen == sum(sizes.values())


def test_available_now_excludes_later_records() -> None:
    stream = Stream({"a-0": (0, 10)})
    stream.planner.stop_at_current_ends()
    stream.log.there |= {"a-0": (0, 50), "a-1": (0, 5)}
    assert stream.next_end({"a-0": 0}, 6) == {"a-0": 6}
    assert stream.next_end({"a-0": 6}, 6) == {"a-0": 10}
    assert stream.next_end({"a-0": 10}, 6) == {"a-0": 10}


@pytest.mark.parametrize("latest", ["latest", '{"a":{"0":-1}}'])
def test_available_now_from_the_latest_offsets_begins_where_it_stops(latest: str) -> None:
    """Spark has it stop at the current ends, and asks then where it begins."""
    stream = Stream({"a-0": (0, 10)}, {"a": b"1"}, startingOffsets=latest)
    stream.planner.stop_at_current_ends()
    stream.log.there |= {"a-0": (0, 15), "a-1": (0, 5)}
    start = stream.initial()
    assert stream.next_end(start) == stream.next_end(start) == start == {"a-0": 10, "a": b"1"}
    stream.restart()
    end = stream.next_end(start)
    assert stream.parts(start, end) == [("a-0", 10, 15), ("a-1", 0, 5)]


def test_a_minimum_is_waited_for_but_not_for_ever() -> None:
    stream = Stream({"a-0": (0, 10)}, minOffsetsPerTrigger="20", maxTriggerDelay="1s")
    assert stream.next_end({"a-0": 0}, may_wait=True) == {
        "a-0": 10
    }  # the first is not kept waiting
    stream.log.there["a-0"] = (0, 15)
    assert stream.next_end({"a-0": 10}, may_wait=True) == {"a-0": 10}
    assert stream.next_end({"a-0": 10}) == {"a-0": 15}
    stream.now_ms += 1000
    assert stream.next_end({"a-0": 10}, may_wait=True) == {"a-0": 15}
    stream.log.there["a-0"] = (0, 40)
    assert stream.next_end({"a-0": 15}, may_wait=True) == {"a-0": 40}


def test_a_new_partition_is_read_from_its_beginning() -> None:
    stream = Stream({"a-0": (0, 10), "b-0": (0, 4)})
    end = stream.next_end({"a-0": 10})
    assert stream.parts({"a-0": 10}, end) == [("b-0", 0, 4)]


def test_a_new_partition_that_has_lost_its_beginning_is_lost_data() -> None:
    lost = {"a-0": (0, 10), "b-0": (2, 4)}
    with pytest.raises(DataLostError, match="Added partition b-0 starts from 2 instead of 0"):
        Stream(lost).parts({"a-0": 10}, {"a-0": 10, "b-0": 4})
    tolerant = Stream(lost, failOnDataLoss="false")
    assert tolerant.parts({"a-0": 10}, {"a-0": 10, "b-0": 4}) == [("b-0", 2, 4)]


def test_a_deleted_topic_is_lost_data() -> None:
    with pytest.raises(DataLostError, match="b-0 no longer exist"):
        Stream({"a-0": (0, 10)}).parts({"a-0": 3, "b-0": 4}, {"a-0": 10})
    tolerant = Stream({"a-0": (0, 10)}, failOnDataLoss="false")
    start = {"a-0": 3, "b-0": 4}
    assert tolerant.parts(start, tolerant.next_end(start)) == [("a-0", 3, 10)]


def test_a_log_that_has_become_shorter_is_lost_data_and_read_from_its_start() -> None:
    with pytest.raises(DataLostError, match="the log that was read up to offset 100"):
        Stream({"a-0": (0, 40)}).parts({"a-0": 100}, {"a-0": 40})
    tolerant = Stream({"a-0": (0, 40)}, failOnDataLoss="false")
    end = tolerant.next_end({"a-0": 100}, 15)
    assert end == {"a-0": 15}
    assert tolerant.parts({"a-0": 100}, end) == [("a-0", 0, 15)]


def test_a_log_that_has_become_shorter_is_not_read_again_if_its_topic_is_the_same(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It lost its last records, for example by an unclean election."""
    start = {"a-0": 100, "b-0": 3, "a": b"1", "b": b"2"}
    there, ids = {"a-0": (0, 40), "b-0": (0, 5)}, {"a": b"1", "b": b"2"}
    with pytest.raises(DataLostError, match="up to offset 100 now ends at 40"):
        Stream(there, ids).next_end(start)
    stream = Stream(there, ids, failOnDataLoss="false")
    end = stream.next_end(start, 30)
    assert end == {**start, "a-0": 40, "b-0": 5}
    assert stream.parts(start, end) == [("b-0", 3, 5)]
    assert "up to offset 100 now ends at 40" in caplog.text
    stream.log.there["a-0"] = (0, 45)
    assert stream.parts(end, stream.next_end(end)) == [("a-0", 40, 45)]


@pytest.mark.parametrize("fails", ["true", "false"])
def test_a_stream_stays_where_it_is_while_an_open_transaction_is_before_it(
    fails: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It read uncommitted records before. Likewise, files say later what is committed."""
    start = {"a-0": 100, "a": b"1"}
    stream = Stream({"a-0": (0, 90)}, {"a": b"1"}, failOnDataLoss=fails)
    stream.log.ends["a-0"] = 100
    assert stream.next_end(start) == start
    stream.log.there["a-1"] = (0, 2)
    end = stream.next_end(start)
    assert end == {**start, "a-1": 2}
    assert stream.parts(start, end) == [("a-1", 0, 2)]
    stream.log.there["a-0"] = (0, 105)
    assert stream.parts(end, stream.next_end(end)) == [("a-0", 100, 105)]
    assert not caplog.text


def test_a_batch_that_an_earlier_version_planned_to_go_back_reads_nothing() -> None:
    stream = Stream({"a-0": (0, 90)}, {"a": b"1"})
    stream.log.ends["a-0"] = 100
    assert stream.parts({"a-0": 100, "a": b"1"}, {"a-0": 90, "a": b"1"}) == []


def created_again(there: dict[str, tuple[int, int]], **given: str) -> Stream:
    """A stream that is started after the topic `a` was created again, with another id."""
    return Stream(there, {"a": b"2"}, **given)


READ = {"a-0": 40, "a-1": 7, "a": b"1"}
AGAIN = {"a-0": (0, 60), "a-1": (0, 9)}


def test_a_topic_that_was_created_again_is_lost_data_also_after_a_restart() -> None:
    says = "the topic a was deleted and created again"
    with pytest.raises(DataLostError, match=says):
        created_again(AGAIN).next_end(READ)
    with pytest.raises(DataLostError, match=says):
        created_again({"a-0": (0, 60)}).next_end(READ)  # with fewer partitions
    with pytest.raises(DataLostError, match=says):
        created_again(AGAIN).parts(READ, {"a-0": 60, "a-1": 9, "a": b"2"})


def test_a_topic_that_was_created_again_is_read_from_its_start_if_loss_is_allowed() -> None:
    stream = created_again({"a-0": (0, 60), "a-2": (3, 5)}, failOnDataLoss="false")
    end = stream.next_end(READ, 31)
    assert end == {"a-0": 30, "a-2": 4, "a": b"2"}
    assert stream.parts(READ, end) == [("a-0", 0, 30), ("a-2", 3, 4)]
    stream.restart()
    assert stream.parts(READ, end) == [("a-0", 0, 30), ("a-2", 3, 4)]
    rest = stream.next_end(end)
    assert stream.parts(end, rest) == [("a-0", 30, 60), ("a-2", 4, 5)]


@pytest.mark.parametrize("is_first", [False, True])
def test_a_batch_has_nothing_of_a_topic_that_was_created_again_after_it_was_planned(
    *, is_first: bool
) -> None:
    start = {"a-0": 0, "b-0": 0, "a": b"1"}
    planned = {"a-0": 40, "b-0": 2, "a": b"1"}
    now = {"a-0": (0, 60), "b-0": (0, 2)}
    with pytest.raises(DataLostError, match="after this batch had been planned"):
        created_again(now).parts(start, planned)
    stream = created_again(now, failOnDataLoss="false")
    begin = stream.initial() if is_first else start
    assert stream.parts(begin, planned) == [("a-0", 40, 40), ("b-0", 0, 2)]
    end = stream.next_end(planned)
    assert stream.parts(planned, end) == [("a-0", 0, 60)]


@pytest.mark.parametrize("divided", [{"maxRecordsPerPartition": "10"}, {"minPartitions": "7"}])
def test_tasks_keep_their_numbers_if_a_topic_of_the_batch_was_created_again(
    divided: dict[str, str],
) -> None:
    """The sink knows by its number what a task has written."""
    there = {"a-0": (0, 40), "b-0": (0, 30)}
    stream = Stream(there, {"a": bytes(16), "b": bytes(16)}, failOnDataLoss="false", **divided)
    start = stream.planner.initial()
    end = from_json_object(stream.planner.next_end(start, None, may_wait=False).as_json_object())
    before = stream.planner.parts(start, end)
    stream.log.there["a-0"], stream.log.ids["a"] = (0, 3), b"2"
    stream.restart()
    after = stream.planner.parts(stream.planner.initial(), end)
    assert len(after) == len(before) >= 7
    for was, now in zip(before, after, strict=True):
        assert now == (replace(was, start=was.end) if was.partition.topic == "a" else was)


def test_a_checkpoint_without_ids_goes_on_and_learns_them() -> None:
    stream = Stream({"a-0": (0, 40)}, {"a": b"1"})
    assert stream.parts({"a-0": 10}, {"a-0": 20}) == [("a-0", 10, 20)]
    end = stream.next_end({"a-0": 20})
    assert end == {"a-0": 40, "a": b"1"}
    assert stream.parts({"a-0": 20}, end) == [("a-0", 20, 40)]


@pytest.mark.parametrize("changed", [{"maxRecordsPerPartition": "3"}, {"minPartitions": "9"}])
def test_a_batch_that_runs_again_is_divided_as_before_whatever_the_options_are_now(
    changed: dict[str, str],
) -> None:
    before = Stream({"a-0": (0, 40)}, maxRecordsPerPartition="10")
    start = before.planner.initial()
    end = before.planner.next_end(start, None, may_wait=False)
    parts = before.planner.parts(start, end)
    assert len(parts) == 4
    after = Stream({"a-0": (0, 60)}, **changed)
    end = from_json_object(end.as_json_object())
    assert after.planner.parts(start, end) == parts
    rest = after.planner.next_end(end, None, may_wait=False)
    assert len(after.planner.parts(end, rest)) in (7, 9)


def test_a_batch_that_runs_again_begins_where_it_began_whatever_was_deleted_since() -> None:
    first = Stream({"a-0": (0, 40)}, maxRecordsPerPartition="10")
    start = first.planner.initial()
    end = from_json_object(first.planner.next_end(start, None, may_wait=False).as_json_object())
    parts = first.planner.parts(start, end)
    assert [(part.start, part.end) for part in parts] == [(0, 10), (10, 20), (20, 30), (30, 40)]
    first.log.there["a-0"] = (25, 40)
    first.restart()
    assert first.planner.parts(first.planner.initial(), end) == parts
    assert first.planner.next_end(end, None, may_wait=False).as_json_object() == (
        end.as_json_object()
    )
    first.log.there |= {"a-0": (25, 41), "b-0": (0, 9)}
    after = from_json_object(first.planner.next_end(end, None, may_wait=False).as_json_object())
    expected = [OffsetRange(tp("a-0"), 40, 41), OffsetRange(tp("b-0"), 0, 9)]
    assert first.planner.parts(end, after) == expected
    first.log.there["b-0"] = (4, 9)
    first.options = replace(first.options, fail_on_data_loss=False)
    first.restart()
    assert first.planner.parts(end, after) == expected


def test_a_partition_that_is_missing_for_a_while_is_not_read_again_if_loss_is_allowed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stream = Stream({"b-0": (0, 5)}, {"b": b"2"}, failOnDataLoss="false")
    start = {"a-0": 7, "b-0": 0, "a": b"1", "b": b"2"}
    end = stream.next_end(start)
    assert end == {**start, "b-0": 5}
    assert stream.parts(start, end) == [("b-0", 0, 5)]
    assert stream.next_end(end) == end
    assert caplog.text.count("a-0 no longer exist") == 1
    stream.log.there["a-0"], stream.log.ids["a"] = (0, 9), b"1"
    assert stream.parts(end, stream.next_end(end)) == [("a-0", 7, 9)]
    stream.log.ids["a"] = b"3"
    assert stream.parts(end, stream.next_end(end)) == [("a-0", 0, 9)]


@pytest.mark.parametrize("missing_batches", [0, 1, 2])
@pytest.mark.parametrize("is_shorter", [False, True])
def test_a_spark_that_does_not_say_where_a_batch_begins_does_not_read_it_again_either(
    missing_batches: int, *, is_shorter: bool
) -> None:
    """It is missing when the process starts: only the checkpoint knows how far it was read.

    Or a transaction is open before that.
    """
    stream = Stream({"a-0": (0, 10)}, {"a": b"1" * 16}, failOnDataLoss="false")
    if is_shorter:
        stream.log.there["a-1"], stream.log.ends["a-1"] = (0, 5), 9
    read: list[tuple[str, int, int]] = []
    at = {"a-0": 9, "a-1": 7, "a": b"1" * 16}

    def batch() -> None:
        nonlocal at
        end = from_json_object(stream.planner.all_ends().as_json_object())
        read.extend(
            (str(part.partition), part.start, part.end)
            for part in stream.planner.parts(as_offsets(at), end)
        )
        at = as_named(end)

    batch()
    assert read == [("a-0", 9, 10)]
    for _ in range(missing_batches):
        batch()
    stream.log.there["a-1"] = (0, 8)
    batch()
    stream.log.there["a-1"] = (0, 9)
    batch()
    assert read[1:] == [("a-1", 7, 8), ("a-1", 8, 9)]


def planned_to_the_ends(stream: Stream) -> StreamOffsets:
    """The end of a batch, as a Spark that does not say where it begins stores it."""
    return from_json_object(stream.planner.all_ends().as_json_object())


def test_a_first_batch_that_runs_again_is_not_the_beginning_of_the_second() -> None:
    """After a crash Spark asks again where the query begins, and not where the batch ends."""
    stream = Stream({"a-0": (0, 10)})
    stream.planner.initial()
    end = planned_to_the_ends(stream)
    stream.restart()
    expected = [OffsetRange(tp("a-0"), 0, 10)]
    assert stream.planner.parts(stream.planner.initial(), end) == expected
    stream.log.there["a-0"] = (0, 12)
    rest = planned_to_the_ends(stream)
    assert stream.planner.parts(end, rest) == [OffsetRange(tp("a-0"), 10, 12)]


@pytest.mark.parametrize("is_first", [True, False])
def test_a_spark_that_does_not_say_where_a_batch_begins_divides_it_as_before_also_if_it_is_new(
    *, is_first: bool
) -> None:
    stream = Stream({"a-0": (0, 10)}, failOnDataLoss="false", maxRecordsPerPartition="10")
    start = stream.planner.initial()
    if not is_first:
        start = planned_to_the_ends(stream)
    stream.log.there["b-0"] = (0, 40)
    end = planned_to_the_ends(stream)
    parts = stream.planner.parts(start, end)
    assert len(parts) == 4 + is_first
    stream.log.there["b-0"] = (25, 40)
    stream.restart()
    if is_first:
        start = stream.planner.initial()
    assert stream.planner.parts(start, end) == parts


def test_an_id_that_cannot_be_found_out_for_a_while_is_kept() -> None:
    stream = Stream({"a-0": (0, 40)})
    assert stream.next_end({"a-0": 10, "a": b"1"}) == {"a-0": 40, "a": b"1"}


def test_the_ranges_of_a_batch_are_of_the_topic_for_which_it_was_planned() -> None:
    stream = Stream({"a-0": (0, 40)}, {"a": b"1"})
    parts = stream.planner.parts(as_offsets({"a-0": 0}), as_offsets({"a-0": 9, "a": b"1"}))
    assert [part.topic_id for part in parts] == [b"1"]


def test_lost_data_is_detected_before_spark_stores_the_end_of_a_batch() -> None:
    stream = Stream({"a-0": (0, 40)})
    with pytest.raises(DataLostError, match="b-0 no longer exist"):
        stream.next_end({"a-0": 3, "b-0": 4})
    with pytest.raises(DataLostError, match="a-0: the log that was read up to offset 100"):
        stream.next_end({"a-0": 100})


def test_lost_data_is_detected_by_a_spark_that_does_not_say_where_a_batch_begins() -> None:
    stream = Stream({"a-0": (0, 40), "b-0": (0, 7)})
    assert as_named(stream.planner.all_ends()) == {"a-0": 40, "b-0": 7}
    del stream.log.there["b-0"]
    with pytest.raises(DataLostError, match="b-0 no longer exist"):
        stream.planner.all_ends()
    stream = Stream({"a-0": (0, 40)}, {"a": b"1"})
    assert as_named(stream.planner.all_ends()) == {"a-0": 40, "a": b"1"}
    stream.log.ids["a"] = b"2"
    with pytest.raises(DataLostError, match="the topic a was deleted and created again"):
        stream.planner.all_ends()
