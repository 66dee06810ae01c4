"""What replays are made of, without a broker."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.pipeline.jobs import JobError
from odradek.pipeline.jobs.archive.entries import ArchivedFile, ArchivedRange, Entry, PartitionKey
from odradek.pipeline.jobs.archive.manifest import ArchiveState
from odradek.pipeline.jobs.archive.parquet_format import RECORD_SCHEMA
from odradek.pipeline.jobs.replay.delivered import Delivered, TargetRecord, find_delivered
from odradek.pipeline.jobs.replay.outgoing import (
    OutgoingRecord,
    count_changed_timestamps,
    outgoing_records,
)
from odradek.pipeline.jobs.replay.progress_files import (
    PartitionProgress,
    ProgressFiles,
    ReplayJob,
    ReplayTopic,
)
from odradek.pipeline.jobs.replay.selection import Selection, select
from odradek.pipeline.jobs.replay.sending import SendingWork, _RateLimit
from odradek.pipeline.reading.partitions import TopicPartition
from odradek.storage.files import Files
from tests.support.crashing_files import QuickFiles

# -- what a killed run has delivered ---------------------------------------------------------------


def record(offset: int, name: bytes, timestamp_ms: int = 1) -> OutgoingRecord:
    return OutgoingRecord(offset, b"k", name, timestamp_ms, [])


def there(offset: int, name: bytes, timestamp_ms: int = 1) -> TargetRecord:
    return TargetRecord(record(offset, name, timestamp_ms), has_create_time=True)


def test_records_after_the_wanted_ones_are_not_read() -> None:
    wanted = [record(10, b"a"), record(12, b"b"), record(13, b"c")]
    found = find_delivered(wanted, [there(70, b"a"), there(71, b"b")])
    assert found == Delivered(2, 13, 70, 71)


def test_records_of_others_lie_between() -> None:
    wanted = [record(10, b"a"), record(11, b"a"), record(12, b"b")]
    seen = [there(70, b"x"), there(71, b"a"), there(72, b"y"), there(73, b"a"), there(74, b"z")]
    assert find_delivered(wanted, seen) == Delivered(2, 12, 71, 73)


def test_the_same_content_at_another_time_is_another_record() -> None:
    assert find_delivered([record(10, b"a", 1)], [there(70, b"a", 2)]) == Delivered()


def test_a_time_that_the_broker_has_set_tells_nothing() -> None:
    seen = TargetRecord(record(70, b"a", 2), has_create_time=False)
    assert find_delivered([record(10, b"a", 1)], [seen]) == Delivered(1, 11, 70, 70)


@given(
    st.lists(st.integers(0, 2)),
    st.integers(0, 30),
    st.lists(st.integers(1, 4), max_size=10),
    st.randoms(),
)
def test_the_longest_prefix_is_found_among_records_of_others_which_may_be_equal(
    values: list[int], delivered: int, others: list[int], rng: Any
) -> None:
    wanted = [record(offset, b"%d" % value) for offset, value in enumerate(values)]
    seen = [b"%d" % value for value in values[:delivered]]
    for other in others:
        seen.insert(rng.randint(0, len(seen)), b"%d" % other)
    found = find_delivered(wanted, [there(offset, name) for offset, name in enumerate(seen)])
    assert found.records == longest_prefix([b"%d" % value for value in values], seen)
    assert found.records >= min(delivered, len(values))
    assert found.next_offset == found.records
    if found.records:
        assert seen[found.target_first] == b"%d" % values[0]
        assert seen[found.target_last] == b"%d" % values[found.records - 1]


def longest_prefix(wanted: list[bytes], seen: list[bytes]) -> int:
    """How many of `wanted`, from the first on, are in `seen` in their order."""
    for count in range(len(wanted), 0, -1):
        left = iter(seen)
        if all(each in left for each in wanted[:count]):
            return count
    return 0


# -- which records ---------------------------------------------------------------------------------


def key(partition: int = 0, topic_id: str = "aa") -> PartitionKey:
    return PartitionKey(topic="orders", topic_id=topic_id, partition=partition)


def file_of(of: PartitionKey, first: int, last: int, times_ms: tuple[int, int]) -> ArchivedFile:
    return ArchivedFile(
        of=of,
        path=f"{of.topic_id}-{of.partition}-{first}",
        staged="",
        date=None,
        records=last - first + 1,
        size_bytes=1,
        first_offset=first,
        last_offset=last,
        times_ms=times_ms,
        schema_id="",
    )


def state_with(*files: ArchivedFile) -> ArchiveState:
    ranges = tuple(
        ArchivedRange(of=file.of, start=file.first_offset, end=file.last_offset + 1)
        for file in files
    )
    entry = Entry(
        format=1,
        number=1,
        run_id="r",
        created_ms=0,
        kind="archive",
        ranges=ranges,
        files=files,
        partitions={"orders": 2},
    )
    return ArchiveState.of([entry])


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        (Selection(), [[0, 10], [0]]),
        (Selection(partitions=(1,)), [[0]]),
        (Selection(from_offset=10), [[10]]),
        (Selection(to_offset=10), [[0], [0]]),
        (Selection(from_ms=200), [[10]]),
        (Selection(to_ms=200), [[0], [0]]),
        (Selection(from_ms=199, to_ms=200), [[0]]),
        (Selection(from_ms=300), []),
    ],
)
def test_only_files_that_may_have_such_records_are_read(
    selection: Selection, expected: list[list[int]]
) -> None:
    state = state_with(
        file_of(key(), 10, 19, (200, 299)),
        file_of(key(), 0, 9, (100, 199)),
        file_of(key(1), 0, 9, (100, 198)),
    )
    found = select(state, "orders", selection)
    assert [[file.first_offset for file in each.files] for each in found] == expected


def test_the_newest_id_of_a_recreated_topic_is_selected() -> None:
    state = state_with(
        file_of(key(topic_id="old"), 0, 9, (1, 2)), file_of(key(topic_id="new"), 0, 3, (1, 2))
    )
    (found,) = select(state, "orders", Selection())
    assert (found.of.topic_id, found.records) == ("new", 4)
    with pytest.raises(JobError, match="does not contain topic other"):
        select(state, "other", Selection())


def table_of(*stamps_ms: int) -> pa.Table:
    count = len(stamps_ms)
    rows = {
        "key": [None] * count,
        "value": [b""] * count,
        "partition": [0] * count,
        "offset": range(count),
        "timestamp": pa.array([stamp * 1000 for stamp in stamps_ms]),
        "timestampType": [0] * count,
        "headers": [None if n % 2 else [{"key": "h", "value": None}] for n in range(count)],
    }
    return pa.table(rows, schema=RECORD_SCHEMA)


def test_records_are_selected_by_time_and_offset() -> None:
    table = table_of(5, 1, 4, 9, 2)
    selection = Selection(from_ms=2, to_ms=9, from_offset=1)
    assert selection.filter(table)["offset"].to_pylist() == [2, 4]
    assert Selection().filter(table) is table


def test_a_timestamp_of_0_becomes_1_and_others_stay() -> None:
    table = table_of(0, -1, 7)
    assert [each.timestamp_ms for each in outgoing_records(table)] == [1, -1, 7]
    assert [each.headers for each in outgoing_records(table)] == [[("h", None)], [], [("h", None)]]
    assert count_changed_timestamps(table) == 1


# -- files, and the pace ---------------------------------------------------------------------------


def test_progress_is_stored_and_read_again(tmp_path: Path) -> None:
    files = ProgressFiles(tmp_path / "job", QuickFiles())
    partition = TopicPartition("orders.eu", 3)
    files.begin(ReplayJob(topics=(), selection=Selection()))
    assert files.read(partition) == PartitionProgress()
    progress = PartitionProgress(target_next=5).with_more(Delivered(3, 30, 7, 9))
    progress = progress.with_more(Delivered(2, 40, 10, 12)).with_more(Delivered())
    files.write(partition, progress)
    expected = PartitionProgress(
        next_offset=40, records=5, target_first=7, target_last=12, target_next=13
    )
    assert files.read(partition) == expected


def test_a_job_cannot_become_another_one(tmp_path: Path) -> None:
    files = ProgressFiles(tmp_path / "job", QuickFiles())
    topic = ReplayTopic(source="a", target="b", topic_id="")
    job = ReplayJob(topics=(topic,), selection=Selection())
    files.begin(job)
    files.begin(job)
    with pytest.raises(JobError, match="started with other topics or another range"):
        files.begin(ReplayJob(topics=(topic,), selection=Selection(from_ms=1)))


def test_a_partition_is_replayed_by_one_task_at_a_time(tmp_path: Path) -> None:
    files = ProgressFiles(tmp_path, Files())
    lock = files.lock(TopicPartition("a", 0))
    with pytest.raises(JobError, match="a-0 is being replayed by another"):
        files.lock(TopicPartition("a", 0))
    lock.release()
    files.lock(TopicPartition("a", 0)).release()


def test_records_are_sent_no_faster_than_asked() -> None:
    now, waited = [100.0], [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds
        waited[0] += seconds

    work: Any = SendingWork.__new__(SendingWork)
    for name, value in {"records_per_s": 50.0, "now": lambda: now[0], "sleep": sleep}.items():
        object.__setattr__(work, name, value)
    pace = _RateLimit(work)
    for _ in range(201):
        pace.wait()
    assert waited[0] == pytest.approx(4.0)
