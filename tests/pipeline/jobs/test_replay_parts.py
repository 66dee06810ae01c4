"""What replays are made of, without a broker."""

from pathlib import Path

import pyarrow as pa
import pytest

from odradek.pipeline.jobs import JobError
from odradek.pipeline.jobs.archive.parquet.dated_files import WrittenFile
from odradek.pipeline.jobs.archive.parquet.parquet_format import RECORD_SCHEMA
from odradek.pipeline.jobs.archive.parquet.storage import ArchiveLocation
from odradek.pipeline.jobs.archive.table.archive_table import ArchiveTable
from odradek.pipeline.jobs.archive.table.state import ArchivedRange, PartitionKey
from odradek.pipeline.jobs.archive.table.table_format import create_table
from odradek.pipeline.jobs.replay.archived import read_archive
from odradek.pipeline.jobs.replay.job import ReplaySettings, plan_replay
from odradek.pipeline.jobs.replay.partition_progress import PartitionProgress, check_same_job
from odradek.pipeline.jobs.replay.selection import Selection
from odradek.pipeline.jobs.replay.send_rate import SendRate
from odradek.pipeline.jobs.replay.sending import _changed_timestamps, _rows
from odradek.pipeline.jobs.topic_choice import TopicChoice
from tests.support.archives import at
from tests.support.crashing_files import QuickFiles
from tests.support.task_attempts import Waits

# -- which records ---------------------------------------------------------------------------------


def key(partition: int = 0, topic_id: str = "aa") -> PartitionKey:
    return PartitionKey(topic="orders", topic_id=topic_id, partition=partition)


def archive_with(
    root: Path, *files: tuple[PartitionKey, int, int, tuple[int, int]]
) -> ArchiveLocation:
    """A table whose files are not there: key, first and last offset, milliseconds."""
    create_table(at(root))
    ranges = [ArchivedRange(key, first, last + 1) for key, first, last, _ in files]
    written = [
        WrittenFile(
            path=f"{key.topic_id}-{key.partition}-{first}",
            topic=key.topic,
            date="2023-11-14",
            records=last - first + 1,
            size_bytes=1,
            partitions=(key.partition, key.partition),
            offsets=(first, last),
            times_us=(times_ms[0] * 1000, times_ms[1] * 1000),
        )
        for key, first, last, times_ms in files
    ]
    ArchiveTable(at(root)).append(written, lambda state: state.with_ranges(ranges, {"orders": 2}))
    return at(root)


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
    selection: Selection, expected: list[list[int]], tmp_path: Path
) -> None:
    archive = archive_with(
        tmp_path,
        (key(), 10, 19, (200, 299)),
        (key(), 0, 9, (100, 199)),
        (key(1), 0, 9, (100, 198)),
    )
    found = read_archive(archive, TopicChoice(), selection, QuickFiles()).topics["orders"]
    assert [sorted(file.offsets[0] or 0 for file in each.files) for each in found] == expected


def test_the_newest_id_of_a_recreated_topic_is_selected(tmp_path: Path) -> None:
    archive = archive_with(
        tmp_path, (key(topic_id="old"), 0, 9, (1, 2)), (key(topic_id="new"), 0, 3, (1, 2))
    )
    (found,) = read_archive(archive, TopicChoice(), Selection(), QuickFiles()).topics["orders"]
    assert found.topic_id == "new"
    with pytest.raises(JobError, match="no topic other"):
        read_archive(archive, TopicChoice(names=["other"]), Selection(), QuickFiles())


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
    assert [row[4] for row in _rows(table, "t", 0)] == [1, -1, 7]
    assert [row[5] for row in _rows(table, "t", 0)] == [[("h", None)], None, [("h", None)]]
    assert _changed_timestamps(table) == 1


# -- progress, and the rate ------------------------------------------------------------------------


def test_a_job_is_continued_only_if_all_of_its_marks_are_there() -> None:
    begun = [PartitionProgress("job", 2), PartitionProgress("job", 2, 7, 5)]
    check_same_job("job", "id", begun)
    with pytest.raises(JobError, match="does not know the job id"):
        check_same_job("job", "id", [])
    with pytest.raises(JobError, match="has forgotten a part of the job id"):
        check_same_job("job", "id", begun[:1])
    for found in (begun, begun[:1]):  # the second: one of its topics is not asked for
        with pytest.raises(JobError, match="started with other topics or another range"):
            check_same_job("another", "id", found)


@pytest.mark.parametrize("rate", [0.0, -1.0, float("inf"), float("nan")])
def test_a_rate_that_is_none_is_refused(tmp_path: Path, rate: float) -> None:
    topics = TopicChoice(names=["orders"])
    settings = ReplaySettings(
        archive=at(tmp_path), client={}, job_id="j", topics=topics, records_per_s=rate
    )
    with pytest.raises(JobError, match="is no rate"):
        plan_replay(settings)


def test_records_are_sent_no_faster_than_asked() -> None:
    waits = Waits()
    rate = SendRate(50.0, waits.clock)
    assert rate.chunk_records == 5
    waits.clock.sleep(10)  # before the first record, which is not made up for
    for _ in range(41):
        waits.clock.sleep(rate.reserve(rate.chunk_records))
    assert waits.total_s == pytest.approx(14.0)
    assert SendRate(None, waits.clock).reserve(1000) == 0


def test_a_pause_is_made_up_for_by_the_records_of_a_second_at_most() -> None:
    waits = Waits()
    rate = SendRate(50.0, waits.clock)
    for pause_s, expected_s in ((0.5, 4), (120, 123)):
        began_s = waits.total_s
        waits.clock.sleep(rate.reserve(rate.chunk_records))
        waits.clock.sleep(pause_s)
        for _ in range(40):
            waits.clock.sleep(rate.reserve(rate.chunk_records))
        assert waits.total_s - began_s == pytest.approx(expected_s)
