"""Streams groups in `__consumer_offsets`, beside groups of other types."""

import pytest
from msgspec.structs import replace

from odradek.coordinator.runtime.timers import Now
from odradek.coordinator.streams_groups.draft import StreamsDraft
from odradek.coordinator.streams_groups.group import StreamsGroup
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.offset_delete import (
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from odradek.protocol.records.streams_group import StreamsGroupMetadataValue
from tests.support.both_lives import assert_cleaned_log_agrees, assert_log_agrees
from tests.support.groups import GROUP, TOPIC
from tests.support.streams_members import StreamsMembers, subtopology, topology

YEAR_MS = 365 * 24 * 3_600_000
ON_TOPIC = topology(subtopology("0", TOPIC[0]))


@pytest.fixture
def members() -> StreamsMembers:
    made = StreamsMembers(overrides={"streams.num.standby.replicas": "1"})
    made.topic(TOPIC[0], 4)
    return made


def streams_groups(members: StreamsMembers) -> list[StreamsGroup]:
    return list(members.groups.coordinator.shards.of(GROUP).state.of_type(StreamsGroup))


def test_the_log_says_what_the_group_is(members: StreamsMembers) -> None:
    members.join("a", ON_TOPIC)
    members.join("b", ON_TOPIC)
    members.beat("a")
    assert_log_agrees(members.groups)
    members.settle("a", "b")
    assert_log_agrees(members.groups)
    assert_cleaned_log_agrees(members.groups)
    members.leave("a")
    assert_log_agrees(members.groups)


def test_the_epochs_of_kafkas_topology_descriptions_stay_when_the_group_epoch_rises() -> None:
    group = StreamsGroup("g")
    stored = StreamsGroupMetadataValue(
        epoch=1,
        metadata_hash=2,
        stored_description_topology_epoch=3,
        failed_description_topology_epoch=4,
    )
    group.replay_metadata(stored)
    draft = StreamsDraft(group, Now(timer_ms=0, wall_ms=0))
    draft.bump_epoch(2, "a test")
    [record] = draft.records
    assert record.value == replace(stored, epoch=2)


def test_a_failed_append_changes_nothing(members: StreamsMembers) -> None:
    members.join("a", ON_TOPIC)
    before = (members.group.epoch, dict(members.group.members))
    members.groups.logs[0].fail_next = ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "the disk says no")
    assert members.join("b", ON_TOPIC).error_code != ErrorCode.NONE
    assert (members.group.epoch, members.group.members) == before
    assert_log_agrees(members.groups)


def test_offsets_are_committed_by_members_and_when_the_group_is_empty(
    members: StreamsMembers,
) -> None:
    members.join("a", ON_TOPIC)
    commit = members.groups.commit
    assert commit(1, member_id="a", generation_id=2) is ErrorCode.NONE
    for words, code in (
        ({}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member_id": "a", "generation_id": 3}, ErrorCode.STALE_MEMBER_EPOCH),
        ({"member_id": "a", "generation_id": 1}, ErrorCode.STALE_MEMBER_EPOCH),
        ({"member_id": "a", "generation_id": 2, "version": 8}, ErrorCode.UNSUPPORTED_VERSION),
    ):
        with pytest.raises(ApiError) as refusal:
            commit(9, **words)
        assert refusal.value.code is code
    members.leave("a")
    assert commit(2) is ErrorCode.NONE
    members.restart()
    assert members.groups.committed() == 2


def test_a_commit_with_an_older_epoch_counts_for_tasks_that_the_member_kept(
    members: StreamsMembers,
) -> None:
    members.join("a", ON_TOPIC)
    members.join("b", ON_TOPIC)
    members.settle("a", "b")
    assert members.owned("a") == {"0": [0, 1]}
    commit = members.groups.commit
    assert commit(1, member_id="a", generation_id=2, partition=1) is ErrorCode.NONE
    with pytest.raises(ApiError) as refusal:
        commit(1, member_id="a", generation_id=2, partition=2)
    assert refusal.value.code is ErrorCode.STALE_MEMBER_EPOCH


def test_offsets_of_topics_that_are_read_are_not_deleted(members: StreamsMembers) -> None:
    members.join("a", ON_TOPIC)
    members.groups.commit(1, member_id="a", generation_id=2)
    topic = OffsetDeleteRequestTopic(
        name=TOPIC[0], partitions=[OffsetDeleteRequestPartition(partition_index=0)]
    )
    delete = members.groups.coordinator.offsets.delete
    delete(GROUP, [topic])
    assert members.groups.committed() == 1
    members.leave("a")
    delete(GROUP, [topic])
    assert members.groups.committed() is None


def test_an_empty_group_expires_with_its_last_offset(members: StreamsMembers) -> None:
    members.join("a", ON_TOPIC)
    members.groups.commit(1, member_id="a", generation_id=2)
    members.leave("a")
    members.advance(YEAR_MS)
    assert not streams_groups(members)
    members.restart()
    assert not streams_groups(members)


@pytest.mark.parametrize("way", ["join", "delete"])
def test_an_empty_group_is_replaced_or_deleted_whole(members: StreamsMembers, way: str) -> None:
    members.join("a", ON_TOPIC)
    members.groups.commit(5, member_id="a", generation_id=2)
    admin = members.groups.coordinator.admin
    assert admin.delete([GROUP])[0].error_code == ErrorCode.NON_EMPTY_GROUP
    refused = members.groups.send_join()
    assert refused.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    members.leave("a")
    if way == "join":
        assert members.groups.send_join().error_code == ErrorCode.MEMBER_ID_REQUIRED
    else:
        assert admin.delete([GROUP])[0].error_code == ErrorCode.NONE
    members.restart()
    assert not streams_groups(members)
    assert members.groups.committed() == (5 if way == "join" else None)


def test_an_empty_classic_group_becomes_a_streams_group_with_its_offsets(
    members: StreamsMembers,
) -> None:
    [leader] = members.groups.stable_group(1)
    assert members.join("a", ON_TOPIC).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    members.groups.leave(leader)
    members.groups.commit(7)
    assert members.join("a", ON_TOPIC).error_code == ErrorCode.NONE
    assert members.groups.committed() == 7
    assert_log_agrees(members.groups)
    members.restart()
    assert members.groups.committed() == 7
    assert streams_groups(members)


def test_a_member_of_another_type_of_group_is_no_member(members: StreamsMembers) -> None:
    members.join("a", ON_TOPIC)
    assert members.groups.heartbeat("a", 2) is ErrorCode.UNKNOWN_MEMBER_ID
