"""Committed offsets: who may commit, what is kept, and when it is forgotten."""

import pytest

from odradek.config.broker_config import BrokerConfig
from odradek.coordinator.any_group.group_settings import GroupSettings
from odradek.coordinator.groups.group_state import GroupState
from odradek.coordinator.java.java_hash import partition_of
from odradek.coordinator.runtime.outcome import JournalRecord, ReplayContext
from odradek.protocol.batch_header import read_header
from odradek.protocol.compression import CompressionType
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
)
from odradek.protocol.record import read_records
from odradek.protocol.records.consumer_offsets import (
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
)
from tests.support.groups import GROUP, TOPIC, WALL_AHEAD_MS, AllTopics, Groups, subscription
from tests.support.memory_log import MemoryLog

MINUTE = 60_000
DAY = 24 * 60 * MINUTE
RETENTION = 7 * DAY
OTHER = ("other", b"other topic's id")


def fetch(groups: Groups, topic: tuple[str, bytes], *partitions: int) -> list[tuple[int, int, str]]:
    wanted = OffsetFetchRequestTopic(
        name=topic[0], topic_id=topic[1], partition_indexes=list(partitions)
    )
    group = OffsetFetchRequestGroup(group_id=GROUP, topics=[wanted])
    (found,) = groups.coordinator.offsets.fetch(group, [wanted])
    assert (found.name, found.topic_id) == topic
    return [
        (p.committed_offset, p.committed_leader_epoch, p.metadata or "") for p in found.partitions
    ]


def refused(groups: Groups, offset: int = 1, **words: object) -> ErrorCode:
    with pytest.raises(ApiError) as caught:
        groups.commit(offset, **words)  # type: ignore[arg-type] # whatever a test says
    return caught.value.code


def test_what_is_committed_can_be_fetched_and_nothing_is_minus_one() -> None:
    groups = Groups()
    groups.commit(42, metadata="note")
    assert fetch(groups, TOPIC, 0, 1) == [(42, -1, "note"), (-1, -1, "")]
    assert fetch(groups, OTHER, 0) == [(-1, -1, "")]
    nobody = OffsetFetchRequestGroup(group_id="nobody", topics=None)
    assert groups.coordinator.offsets.fetch(nobody, None) == []


def test_offsets_survive_a_restart() -> None:
    groups = Groups()
    groups.commit(1)
    groups.commit(2, metadata=None)
    groups.commit(7, partition=3)
    after = groups.restarted()
    assert fetch(after, TOPIC, 0, 3) == [(2, -1, ""), (7, -1, "")]


def test_an_offset_of_a_topic_that_had_the_same_name_is_not_found_by_the_new_id() -> None:
    groups = Groups()
    groups.commit(42)
    assert fetch(groups, (TOPIC[0], b"reborn 16 bytes!"), 0) == [(-1, -1, "")]
    assert fetch(groups, (TOPIC[0], bytes(16)), 0) == [(42, -1, "")]


def test_all_partitions_of_a_commit_are_one_batch_in_kafkas_versions() -> None:
    groups = Groups()
    groups.commit(1)
    batch = groups.logs[0].stored[-1]
    (record,) = read_records(batch, header=read_header(batch))
    assert record.key == b"\x00\x01" + b"\x00\x01g" + b"\x00\x05topic" + bytes(4)
    assert record.value is not None
    # Version 4, offset 1, leader epoch -1, metadata "", commit time, one tag: the topic id.
    assert record.value[:14] == b"\x00\x04" + bytes(7) + b"\x01" + b"\xff" * 4
    assert record.value[14:15] == b"\x01"
    assert record.value[23:] == b"\x01\x00\x10" + TOPIC[1]


def test_metadata_that_is_too_long_is_refused_for_its_partition_alone() -> None:
    groups = Groups(offset_metadata_max_units=4)
    assert groups.commit(1, metadata="12345") is ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert groups.commit(1, metadata="1234") is ErrorCode.NONE
    # Java counts UTF-16 units.
    assert groups.commit(1, metadata="\U0001f600\U0001f600") is ErrorCode.NONE
    assert groups.commit(1, metadata="\U0001f600\U0001f600!") is ErrorCode.OFFSET_METADATA_TOO_LARGE


def test_a_commit_with_a_generation_needs_a_group() -> None:
    groups = Groups()
    words = {"member_id": "m", "generation_id": 1}
    assert refused(groups, version=8, **words) is ErrorCode.ILLEGAL_GENERATION
    assert refused(groups, version=9, **words) is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_simple_consumer_commits_to_a_group_without_members_only() -> None:
    groups = Groups()
    assert groups.commit(1) is ErrorCode.NONE
    (member_id,) = groups.stable_group(1)
    assert refused(groups) is ErrorCode.UNKNOWN_MEMBER_ID
    groups.leave(member_id)
    assert groups.commit(2) is ErrorCode.NONE


def test_a_failed_write_is_told_and_nothing_is_committed() -> None:
    groups = Groups()
    groups.commit(1)
    groups.logs[0].fail_next = ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "disk")
    assert refused(groups, 2) is ErrorCode.NOT_COORDINATOR
    assert groups.committed() == 1


def test_a_commit_that_does_not_fit_one_batch_is_refused_whole() -> None:
    groups = Groups(logs=[MemoryLog("__consumer_offsets", max_message_bytes=300)])
    assert groups.commit(1, metadata="x" * 100) is ErrorCode.NONE
    assert refused(groups, 2, metadata="x" * 400) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert groups.committed() == 1


# -- expiry --------------------------------------------------------------------------------------


def test_an_empty_groups_offsets_expire_after_it_became_empty_and_then_the_group() -> None:
    groups = Groups()
    (member_id,) = groups.stable_group(1)
    groups.commit(1, member_id=member_id, generation_id=1)
    groups.advance(9_000)
    groups.leave(member_id)
    groups.advance(RETENTION - 10 * MINUTE)
    assert groups.committed() == 1
    groups.advance(20 * MINUTE)
    assert groups.committed() is None
    assert GROUP not in groups.coordinator.shards.of(GROUP).state.groups
    assert len(groups.restarted().coordinator.shards.of(GROUP).state.offsets) == 0


def test_a_simple_consumers_offsets_expire_after_their_commit_each_on_its_own() -> None:
    groups = Groups()
    groups.commit(1)
    groups.advance(3 * DAY)
    groups.commit(2, partition=1)
    groups.advance(RETENTION - 3 * DAY + 20 * MINUTE)
    assert (groups.committed(), groups.committed(partition=1)) == (None, 2)
    assert groups.group()


def test_offsets_of_a_stable_group_expire_only_where_nobody_subscribes() -> None:
    groups = Groups(max_session_timeout_ms=30 * DAY, offsets_retention_ms=DAY)
    words = {"session_ms": 20 * DAY, "protocols": {"range": subscription("topic")}}
    (member_id,) = groups.stable_group(1, **words)
    groups.commit(1, member_id=member_id, generation_id=1)
    groups.commit(2, member_id=member_id, generation_id=1, topic=OTHER)
    groups.advance(DAY + 20 * MINUTE)
    assert (groups.committed(), groups.committed("other")) == (1, None)


@pytest.mark.parametrize(
    ("protocol_type", "metadata"), [("connect", b""), ("consumer", b"unreadable")]
)
def test_offsets_do_not_expire_while_it_is_not_known_what_is_consumed(
    protocol_type: str, metadata: bytes
) -> None:
    groups = Groups(max_session_timeout_ms=30 * DAY, offsets_retention_ms=DAY)
    protocols = {"range": metadata}
    joined = groups.join(session_ms=20 * DAY, protocol_type=protocol_type, protocols=protocols)
    groups.sync(joined.member_id, protocol_type=protocol_type)
    groups.commit(1, member_id=joined.member_id, generation_id=1)
    groups.advance(3 * DAY)
    assert groups.committed() == 1


def test_a_retention_time_of_its_own_overrules_the_brokers() -> None:
    groups = Groups()
    groups.commit(1, version=4, retention_ms=MINUTE)
    groups.commit(2, version=4, retention_ms=-1, partition=1)
    groups.advance(11 * MINUTE)
    assert (groups.committed(), groups.committed(partition=1)) == (None, 2)


def test_a_retention_time_of_for_ever_does_not_end() -> None:
    """Kafka adds the times as longs: the offset expires at the next check."""
    groups = Groups()
    assert groups.commit(1, version=4, retention_ms=2**63 - 1) is ErrorCode.NONE
    groups.advance(30 * DAY)
    assert groups.committed() == groups.restarted().committed() == 1


def test_a_commit_with_a_retention_time_of_its_own_is_the_same_after_a_restart() -> None:
    """The version of its record cannot carry the id of the topic."""
    groups = Groups()
    groups.commit(1, retention_ms=1_000)
    state = groups.coordinator.shards.of(GROUP).state
    again = groups.restarted().coordinator.shards.of(GROUP).state
    assert again.offsets.of_group(GROUP) == state.offsets.of_group(GROUP)


def test_an_empty_group_that_never_committed_is_forgotten_at_the_next_check() -> None:
    groups = Groups()
    groups.leave(*groups.stable_group(1))
    groups.advance(10 * MINUTE)
    assert GROUP not in groups.restarted().coordinator.shards.of(GROUP).state.groups


# -- deletion ------------------------------------------------------------------------------------


def test_offsets_in_a_deleted_topic_are_forgotten_but_not_those_of_its_namesake() -> None:
    groups = Groups()
    groups.commit(1)
    groups.commit(2, topic=OTHER)
    groups.coordinator.retention.on_topics_deleted([("topic", b"older 16 bytes id"[:16]), OTHER])
    assert (groups.committed(), groups.committed("other")) == (1, None)
    groups.coordinator.retention.on_topics_deleted([TOPIC])
    groups.advance(0)  # those above are deleted first
    assert groups.committed() is None
    assert groups.restarted().committed() is None


def test_offsets_of_a_topic_whose_deletion_a_crash_cut_short_are_forgotten_at_start() -> None:
    groups = Groups()
    groups.commit(1)
    groups.commit(2, topic=OTHER)
    groups.commit(3, topic=("of an old client", bytes(16)))
    after = groups.restarted(topic_ids={OTHER[1]})
    assert (after.committed(), after.committed("other")) == (None, 2)
    assert after.committed("of an old client") == 3
    assert after.restarted(topic_ids=AllTopics()).committed() is None


def test_a_partition_that_is_found_late_forgets_topics_that_went_meanwhile() -> None:
    groups = Groups()
    groups.commit(1)
    groups.commit(2, topic=OTHER)
    topic_ids = {TOPIC[1], OTHER[1]}
    later = groups.restarted(topic_ids=topic_ids)
    later.coordinator.partition_offline(0)
    topic_ids.remove(TOPIC[1])
    later.coordinator.retention.on_topics_deleted([TOPIC])
    later.coordinator.partition_online(later.logs[0])  # type: ignore[arg-type] # a MemoryLog serves a journal
    later.advance(0)
    assert (later.committed(), later.committed("other")) == (None, 2)
    assert later.restarted(topic_ids=AllTopics()).committed() is None


def groups_with_expired_offsets() -> tuple[Groups, list[str]]:
    """Groups in four partitions, of which the first is being checked, and their ids."""
    groups = Groups(partitions=4)
    names = [f"group-{number}" for number in range(40)]
    for name in names:
        groups.commit(1, group_id=name)
    groups.loop.now_ms += RETENTION + DAY
    groups.coordinator.alarm.expire_due()
    return groups, names


def test_each_turn_of_the_loop_looks_for_expired_offsets_in_one_partition() -> None:
    groups, names = groups_with_expired_offsets()
    left = [name for name in names if groups.committed(group_id=name) == 1]
    assert left == [name for name in names if partition_of(name, 4) != 0]
    groups.advance(0)
    assert not any(groups.committed(group_id=name) for name in names)


def test_a_partition_whose_check_fails_does_not_keep_offsets_of_the_others() -> None:
    groups, names = groups_with_expired_offsets()
    groups.logs[1].fail_next = LookupError("a bug")
    with pytest.raises(LookupError):
        groups.advance(0)
    groups.advance(0)
    left = [name for name in names if groups.committed(group_id=name) == 1]
    assert left == [name for name in names if partition_of(name, 4) == 1]


def test_without_its_topic_nothing_is_left_to_expire() -> None:
    groups = Groups(partitions=2)
    groups.commit(1)
    groups.loop.now_ms += RETENTION + DAY
    groups.coordinator.alarm.expire_due()
    groups.coordinator.close()
    stored = [len(log.stored) for log in groups.logs]
    groups.advance(DAY)
    assert [len(log.stored) for log in groups.logs] == stored


def test_a_deleted_group_leaves_no_offsets_behind() -> None:
    groups = Groups()
    for partition in range(3):
        groups.commit(partition, partition=partition)
    batches = len(groups.logs[0].stored)
    (result,) = groups.coordinator.admin.delete([GROUP])
    assert result.error_code == ErrorCode.NONE
    assert len(groups.logs[0].stored) == batches + 1
    for life in (groups, groups.restarted()):
        assert life.committed() is None
        (result,) = life.coordinator.admin.delete([GROUP])
        assert result.error_code == ErrorCode.GROUP_ID_NOT_FOUND


# -- what other brokers have written -------------------------------------------------------------


def state_of(*records: JournalRecord) -> GroupState:
    state = GroupState()
    for offset, record in enumerate(records):
        state.replay(record, ReplayContext(offset, 0))
    return state


def test_offsets_in_the_format_before_kafka_0_9_are_read() -> None:
    key = LegacyOffsetCommitKey(group=GROUP, topic="topic", partition=0)
    value = LegacyOffsetCommitValue(offset=9, metadata="m", commit_timestamp=WALL_AHEAD_MS)
    state = state_of(JournalRecord(value, 0, key))
    assert state.offsets.of_group(GROUP)["topic"][0].offset == 9
    state.replay(JournalRecord(None, 0, key), ReplayContext(1, 0))
    assert len(state.offsets) == 0


@pytest.mark.parametrize("codec", CompressionType)
def test_the_offsets_topic_has_the_codec_that_the_broker_was_told(codec: CompressionType) -> None:
    config = BrokerConfig(offsets_topic_compression_codec=int(codec))
    assert GroupSettings.of(config).offsets_topic_compression is codec
    groups = Groups(offsets_topic_compression=codec)
    groups.commit(42)
    assert [read_header(batch).compression for batch in groups.logs[0].stored] == [codec]
    assert groups.restarted().committed() == 42
