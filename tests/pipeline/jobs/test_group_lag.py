"""The lag of groups, from the records of `__consumer_offsets`."""

import shutil
from pathlib import Path

import pytest

from odradek.coordinator.runtime.outcome import JournalRecord
from odradek.coordinator.runtime.record_codec import CoordinatorRecordCodec
from odradek.pipeline.jobs.stats.job import StatsReport, StatsSettings, run_stats
from odradek.pipeline.jobs.stats.lag import GroupLag
from odradek.pipeline.jobs.topic_choice import TopicChoice
from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from odradek.protocol.records.consumer_group import (
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
)
from odradek.protocol.records.consumer_offsets import (
    RECORD_TYPES,
    GroupMemberMetadata,
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from odradek.protocol.schema import Message
from odradek.storage.checkpoints import write_offsets, write_topic_id
from odradek.storage.filenames import LOG_START_OFFSET_CHECKPOINT
from odradek.storage.files import Files
from odradek.storage.log import AppendOrigin, PartitionLog
from tests.support.archives import InThisProcess
from tests.support.log_box import NOW_MS, LogBox, put
from tests.support.log_files import end_transaction
from tests.support.partition_logs import open_log

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "groups"
CODEC = CoordinatorRecordCodec(RECORD_TYPES)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A topic with a hundred records in one partition."""
    log = LogBox(tmp_path).open()
    put(log, *[b"v"] * 100)
    log.close(NOW_MS)
    return tmp_path


@pytest.fixture
def journal(data: Path) -> PartitionLog:
    return open_log(data, "__consumer_offsets", 3)


def write(
    journal: PartitionLog, *pairs: tuple[Message, Message | None], producer: int = -1
) -> None:
    """One batch; of a transaction if there is a producer."""
    versions = {OffsetCommitValue: 4, GroupMetadataValue: 3}
    records = [
        Record(
            *CODEC.encode(JournalRecord(value, versions.get(type(value), 0), key)),
            NOW_MS,
            offset=at,
        )
        for at, (key, value) in enumerate(pairs)
    ]
    batch = build_batch(
        records,
        producer_id=producer,
        producer_epoch=0 if producer >= 0 else -1,
        is_transactional=producer >= 0,
    )
    journal.append(bytes(batch), now_ms=NOW_MS, origin=AppendOrigin.COORDINATOR)


def commit(
    group: str, offset: int, topic: str = "orders", partition: int = 0, **more: bytes
) -> tuple[Message, Message]:
    key = OffsetCommitKey(group=group, topic=topic, partition=partition)
    value = OffsetCommitValue(offset=offset, metadata="m", commit_timestamp=NOW_MS, **more)
    return key, value


def groups(data: Path) -> dict[str, GroupLag]:
    report = counted(data)
    assert report.problems == []
    return {group.group: group for group in report.groups}


def counted(data: Path) -> StatsReport:
    topics = TopicChoice(names=["orders"])
    return run_stats(InThisProcess(), StatsSettings(log_directories=[data], topics=topics))


def lag_of(data: Path, group: str) -> int | None:
    [partition] = groups(data)[group].partitions
    return partition.lag


def test_the_last_commit_counts(data: Path, journal: PartitionLog) -> None:
    write(journal, commit("g", 10), commit("g", 40))
    write(journal, commit("g", 30), commit("h", 100))
    found = groups(data)
    [partition] = found["g"].partitions
    assert (partition.commit.offset, partition.bounds, partition.lag) == (30, (0, 100), 70)
    assert (partition.commit.committed_ms, partition.commit.metadata) == (NOW_MS, "m")
    assert found["h"].lag == 0
    assert (found["g"].kind, found["g"].members) == ("offsets only", 0)


def test_a_commit_that_was_deleted_is_none(data: Path, journal: PartitionLog) -> None:
    write(journal, commit("g", 10))
    write(journal, (commit("g", 0)[0], None))
    assert groups(data) == {}


def test_groups_of_both_kinds_are_reported_with_their_members(
    data: Path, journal: PartitionLog
) -> None:
    member = GroupMemberMetadata(
        member_id="m", client_id="c", client_host="/h", session_timeout=1,
        subscription=b"", assignment=b"",
    )  # fmt: skip
    classic = GroupMetadataValue(
        protocol_type="consumer", generation=1, protocol="range", leader="m", members=[member]
    )
    empty = GroupMetadataValue(
        protocol_type="connect", generation=2, protocol=None, leader=None, members=[]
    )
    joined = ConsumerGroupMemberMetadataValue(
        instance_id=None, rack_id=None, client_id="c", client_host="/h", server_assignor=None,
        subscribed_topic_names=["orders"], subscribed_topic_regex=None,
    )  # fmt: skip
    write(
        journal,
        (GroupMetadataKey(group="classic"), classic),
        (GroupMetadataKey(group="empty"), empty),
        (ConsumerGroupMetadataKey(group_id="new"), ConsumerGroupMetadataValue(epoch=3)),
        (ConsumerGroupMemberMetadataKey(group_id="new", member_id="a"), joined),
        (ConsumerGroupMemberMetadataKey(group_id="new", member_id="b"), joined),
        commit("new", 99),
    )
    write(journal, (ConsumerGroupMemberMetadataKey(group_id="new", member_id="b"), None))
    found = groups(data)
    reported = [
        (each.group, each.kind, each.protocol, each.members, each.lag) for each in found.values()
    ]
    assert reported == [
        ("classic", "classic", "consumer", 1, 0),
        ("empty", "classic", "connect", 0, 0),
        ("new", "consumer", "", 1, 1),
    ]


def test_commits_of_a_transaction_count_when_it_is_committed(
    data: Path, journal: PartitionLog
) -> None:
    write(journal, commit("g", 10))
    write(journal, commit("g", 50), producer=7)
    assert lag_of(data, "g") == 90
    write(journal, commit("g", 20))
    end_transaction(journal, 7, aborts=False)
    assert lag_of(data, "g") == 80, "the later commit stays"
    write(journal, commit("g", 60), producer=7)
    end_transaction(journal, 7, aborts=True)
    assert lag_of(data, "g") == 80
    write(journal, commit("g", 70), producer=7)
    end_transaction(journal, 7, aborts=False)
    assert lag_of(data, "g") == 30


def test_records_that_were_deleted_before_they_were_read_are_lost(
    data: Path, journal: PartitionLog
) -> None:
    write(journal, commit("g", 10))
    write_offsets(Files(), data / LOG_START_OFFSET_CHECKPOINT, {("orders", 0): 60})
    [partition] = groups(data)["g"].partitions
    assert (partition.bounds, partition.lag, partition.lost) == ((60, 100), 40, 50)


def test_partitions_that_are_not_there_have_no_lag(data: Path, journal: PartitionLog) -> None:
    write(journal, commit("g", 10, "gone"), commit("g", 10, partition=9))
    assert [each.lag for each in groups(data)["g"].partitions] == [None, None]


def test_a_topic_that_was_recreated_has_no_lag(data: Path, journal: PartitionLog) -> None:
    write_topic_id(Files(), data / "orders-0" / "partition.metadata", bytes(range(16)))
    write(journal, commit("g", 10, topic_id=bytes(range(1, 17))))
    assert lag_of(data, "g") is None
    write(journal, commit("g", 10, topic_id=bytes(range(16))))
    assert lag_of(data, "g") == 90


def test_records_that_cannot_be_decoded_are_counted(data: Path, journal: PartitionLog) -> None:
    records = [Record(b"\0\1broken", b"\0\1", NOW_MS), Record(b"\x7f\0", b"\0\0", NOW_MS)]
    batch = bytes(build_batch(records))
    journal.append(batch, now_ms=NOW_MS, origin=AppendOrigin.COORDINATOR)
    [problem] = counted(data).problems
    assert "1 records cannot be decoded" in problem


def test_groups_that_apache_kafka_wrote_are_read(data: Path) -> None:
    directory = data / "__consumer_offsets-0"
    directory.mkdir()
    shutil.copy(GOLDEN / f"{0:020}.log", directory)
    found = groups(data)
    assert found
    assert {group.kind for group in found.values()} <= {"consumer", "classic", "offsets only"}
    assert any(group.kind == "consumer" for group in found.values())
