"""Heartbeats of dynamic members: joins, reports, assignments, epochs, errors."""

import pytest

from odradek.coordinator.consumer_groups.group import ConsumerState
from odradek.coordinator.modern_groups.member import MemberState
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.delete_groups import DeleteGroupsResult
from odradek.protocol.records.consumer_group import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMetadataKey,
    TopicMetadata,
)
from odradek.protocol.records.share_group import ShareGroupMetadataKey, ShareGroupMetadataValue
from tests.support.group_snapshot import consumer_group_snapshot
from tests.support.groups import GROUP
from tests.support.heartbeats import Heartbeats, refusal
from tests.support.journals import append_records, keys_since

NO_PARTITIONS: dict[str, list[int]] = {}
HOUR_MS = 3_600_000


@pytest.fixture
def beats() -> Heartbeats:
    beats = Heartbeats()
    beats.topic("t", 4)
    return beats


def shared(beats: Heartbeats) -> None:
    """`a` and `b` have two partitions each, at epoch 3."""
    beats.join("a", "t")
    beats.join("b", "t")
    beats.beat("a", 2)
    first, second = (beats.group().target(member) for member in "ab")
    (mine,), (others,) = (list(target.values()) for target in (first, second))
    beats.beat("a", 2, owned={"t": sorted(mine)})
    assert beats.assigned(beats.beat("b", 3)) == {"t": sorted(others)}
    assert beats.group().state is ConsumerState.STABLE


# -- joining and going on


def test_the_first_member_gets_everything_at_once(beats: Heartbeats) -> None:
    answer = beats.join("a", "t")
    assert (answer.member_id, answer.member_epoch) == ("a", 2)
    assert answer.heartbeat_interval_ms == 5_000
    assert beats.assigned(answer) == {"t": [0, 1, 2, 3]}
    assert beats.group().state is ConsumerState.STABLE


def test_a_join_writes_its_records_in_one_batch_and_in_kafkas_order(beats: Heartbeats) -> None:
    beats.join("a", "t")
    assert beats.batches == 1
    assert keys_since(beats.groups.logs[0], 0) == [
        ConsumerGroupMemberMetadataKey,
        ConsumerGroupMetadataKey,
        ConsumerGroupTargetAssignmentMemberKey,
        ConsumerGroupTargetAssignmentMetadataKey,
        ConsumerGroupCurrentMemberAssignmentKey,
    ]


def test_a_heartbeat_without_changes_writes_nothing_and_returns_no_assignment(
    beats: Heartbeats,
) -> None:
    beats.join("a", "t")
    answer = beats.beat("a", 2)
    assert (answer.member_epoch, answer.assignment) == (2, None)
    assert beats.assigned(beats.beat("a", 2, owned={"t": [0, 1, 2, 3]})) is None
    assert beats.batches == 1
    assert beats.group().topics_checked_offset == beats.groups.topics.last_change_offset


def test_a_full_report_is_answered_with_the_whole_assignment(beats: Heartbeats) -> None:
    beats.join("a", "t")
    everything = {"t": [0, 1, 2, 3]}
    again = beats.beat("a", 2, owned=everything, topics=["t"], rebalance_timeout_ms=60_000)
    assert beats.assigned(again) == everything
    assert beats.batches == 1


def test_a_repeated_join_changes_nothing(beats: Heartbeats) -> None:
    first = beats.join("a", "t")
    assert beats.join("a", "t") == first
    assert beats.batches == 1


def test_the_broker_chooses_an_id_for_a_client_of_version_0(beats: Heartbeats) -> None:
    answer = beats.join("", "t", version=0)
    assert answer.member_id == "uuid1"
    assert answer.member_id in beats.group().members


def test_a_member_has_the_fields_of_its_last_report(beats: Heartbeats) -> None:
    beats.join("a", "t", rack_id="rack", server_assignor="range")
    beats.beat("a", 2, client_id="renamed", rebalance_timeout_ms=7)
    member = beats.member("a")
    assert (member.client_id, member.client_host) == ("renamed", "/127.0.0.1")
    assert (member.rack_id, member.rebalance_timeout_ms) == ("rack", 7)
    assert (member.server_assignor, member.member_epoch) == ("range", 2)


def test_a_member_without_subscription_has_no_partitions(beats: Heartbeats) -> None:
    answer = beats.join("a")
    assert (answer.member_epoch, beats.assigned(answer)) == (1, {})
    assert beats.group().state is ConsumerState.STABLE


# -- epochs


@pytest.mark.parametrize("epoch", [1, 3, 99])
def test_an_epoch_that_is_not_the_members_fences_it(beats: Heartbeats, epoch: int) -> None:
    beats.join("a", "t")
    fenced = ErrorCode.FENCED_MEMBER_EPOCH
    assert beats.refusal("a", epoch) is fenced
    assert beats.refusal("a", epoch, owned={"t": [0]}) is fenced


def test_the_previous_epoch_is_accepted_from_a_member_that_missed_the_response(
    beats: Heartbeats,
) -> None:
    shared(beats)
    (mine,) = beats.member("a").assigned.values()
    assert beats.member("a").previous_member_epoch == 2
    late = beats.beat("a", 2, owned={"t": sorted(mine)})
    assert late.member_epoch == 3
    assert beats.beat("a", 2, owned={}).member_epoch == 3


def test_the_previous_epoch_is_refused_with_other_partitions_or_none_reported(
    beats: Heartbeats,
) -> None:
    shared(beats)
    fenced = ErrorCode.FENCED_MEMBER_EPOCH
    assert beats.refusal("a", 2, owned={"t": [0, 1, 2, 3]}) is fenced
    assert beats.refusal("a", 2) is fenced
    beats.topic("other", 1)
    assert beats.refusal("a", 2, owned={"other": [0]}) is fenced


def test_a_fenced_member_rejoins_and_gets_its_partitions_back(beats: Heartbeats) -> None:
    shared(beats)
    (mine,) = beats.member("a").assigned.values()
    answer = beats.join("a", "t")
    assert (answer.member_epoch, beats.assigned(answer)) == (3, {"t": sorted(mine)})


# -- subscriptions that change


def test_an_unsubscribed_topic_must_be_given_up_before_the_next_epoch(beats: Heartbeats) -> None:
    beats.topic("u", 1)
    beats.join("a", "t", "u")
    everything = {"t": [0, 1, 2, 3], "u": [0]}
    answer = beats.beat("a", 2, topics=["u"], owned=everything)
    assert (answer.member_epoch, beats.assigned(answer)) == (2, {"u": [0]})
    assert beats.member("a").state is MemberState.UNREVOKED_PARTITIONS
    assert beats.beat("a", 2, owned=everything).member_epoch == 2
    answer = beats.beat("a", 2, owned={"u": [0]})
    assert (answer.member_epoch, answer.assignment) == (3, None)
    assert beats.group().state is ConsumerState.STABLE


def test_the_assignor_with_most_votes_is_taken(beats: Heartbeats) -> None:
    beats.topic("u", 4)
    beats.join("a", "t", "u", server_assignor="range")
    beats.join("b", "t", "u", server_assignor="range")
    beats.beat("a", 2, owned={})
    assert beats.assigned(beats.join("b", "t", "u")) == {"t": [2, 3], "u": [2, 3]}


def test_the_default_replaces_an_assignor_that_is_no_longer_configured() -> None:
    beats = Heartbeats()
    beats.topic("t", 2)
    beats.join("a", "t", server_assignor="range")
    after = Heartbeats(
        groups=beats.groups.restarted(), metadata=beats.metadata, assignors=("uniform",)
    )
    after.grow("t", 3)
    assert after.assigned(after.beat("a", 2)) == {"t": [0, 1, 2]}


# -- several members


def test_a_second_member_gets_partitions_when_the_first_has_given_them_up(
    beats: Heartbeats,
) -> None:
    beats.join("a", "t")
    second = beats.join("b", "t")
    assert (second.member_epoch, beats.assigned(second)) == (3, {})
    assert beats.group().state is ConsumerState.RECONCILING
    first = beats.assigned(beats.beat("a", 2))
    assert first is not None
    assert len(first["t"]) == 2
    assert beats.assigned(beats.beat("b", 3)) is None
    assert beats.beat("a", 2, owned=first).member_epoch == 3
    second_has = beats.assigned(beats.beat("b", 3))
    assert second_has is not None
    assert sorted(first["t"] + second_has["t"]) == [0, 1, 2, 3]
    assert beats.group().state is ConsumerState.STABLE


def test_a_new_member_without_subscription_takes_no_partitions_from_others(
    beats: Heartbeats,
) -> None:
    beats.join("b", "t")
    beats.join("c", "t")
    beats.leave("c")
    assert beats.group().state is ConsumerState.ASSIGNING
    beats.join("a")
    assert beats.group().assignment_epoch == 4
    assert beats.assigned(beats.join("b", "t")) == {"t": [0, 1, 2, 3]}


def test_between_two_targets_the_interval_passes() -> None:
    beats = Heartbeats(assignment_interval_ms=1_000)
    beats.topic("t", 2)
    beats.join("a", "t")
    beats.advance(999)
    answer = beats.join("b", "t")
    assert (answer.member_epoch, beats.assigned(answer)) == (2, {})
    assert beats.group().state is ConsumerState.ASSIGNING
    assert (beats.group().epoch, beats.group().assignment_epoch) == (3, 2)
    beats.advance(1)
    assert beats.beat("b", 2).member_epoch == 3
    assert beats.group().assignment_epoch == 3


@pytest.mark.parametrize("step_ms", [-HOUR_MS, HOUR_MS])
def test_the_interval_between_two_targets_does_not_depend_on_the_wall_clock(step_ms: int) -> None:
    beats = Heartbeats(assignment_interval_ms=1_000)
    beats.topic("t", 2)
    beats.join("a", "t")
    beats.loop.wall_ahead_ms += step_ms
    beats.advance(999)
    assert beats.join("b", "t").member_epoch == 2
    beats.advance(1)
    assert beats.beat("b", 2).member_epoch == 3


def test_targets_with_a_timestamp_in_the_future_count_as_computed_at_the_restart() -> None:
    beats = Heartbeats(assignment_interval_ms=1_000)
    beats.loop.wall_ahead_ms += HOUR_MS
    beats.topic("t", 2)
    beats.join("a", "t")
    after = beats.restarted()  # the wall clock goes back by an hour
    after.advance(999)
    assert after.join("b", "t").member_epoch == 2
    after.advance(1)
    assert after.beat("b", 2).member_epoch == 3


def test_an_override_applies_to_its_group_only() -> None:
    beats = Heartbeats(overrides={"own": {"consumer.heartbeat.interval.ms": "6000"}})
    beats.topic("t", 2)
    assert beats.join("a", "t", group_id="own").heartbeat_interval_ms == 6_000
    assert beats.join("a", "t").heartbeat_interval_ms == 5_000


# -- refusals


def test_only_a_join_creates_a_group(beats: Heartbeats) -> None:
    not_found = ErrorCode.GROUP_ID_NOT_FOUND
    assert beats.refusal("a", 1) is not_found
    assert beats.refusal("a", -1) is not_found
    assert beats.refusal("a", -2, instance="i") is not_found
    assert beats.batches == 0


def test_an_unknown_member_is_refused(beats: Heartbeats) -> None:
    beats.join("a", "t")
    assert beats.refusal("b", 2) is ErrorCode.UNKNOWN_MEMBER_ID
    assert beats.refusal("b", -1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_full_group_accepts_only_its_members() -> None:
    beats = Heartbeats(max_size=1)
    beats.topic("t", 1)
    beats.join("a", "t")
    assert refusal(beats.join("b", "t")) is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert refusal(beats.join("", "t", version=0)) is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert beats.join("a", "t").member_epoch == 2


def test_the_name_of_a_group_of_another_type_is_taken(beats: Heartbeats) -> None:
    log = beats.groups.logs[0]
    append_records(
        log,
        ShareGroupMetadataKey(group_id=GROUP),
        ShareGroupMetadataValue(epoch=1, metadata_hash=0),
    )
    after = beats.restarted()
    assert refusal(after.join("a", "t")) is ErrorCode.GROUP_ID_NOT_FOUND


def test_without_an_offsets_topic_there_is_no_coordinator(beats: Heartbeats) -> None:
    beats.groups.coordinator = beats.groups.closed_coordinator()
    assert refusal(beats.join("a", "t")) is ErrorCode.NOT_COORDINATOR


# -- other groups of the same name, restarts


def test_a_group_of_offsets_alone_becomes_a_consumer_group_and_keeps_them(
    beats: Heartbeats,
) -> None:
    beats.groups.commit(7)
    assert beats.refusal("a", 1) is ErrorCode.GROUP_ID_NOT_FOUND
    assert beats.join("a", "t").member_epoch == 2
    assert beats.groups.committed() == 7
    after = beats.restarted()
    assert after.groups.committed() == 7
    assert after.beat("a", 2).member_epoch == 2


def test_an_empty_group_can_be_deleted_and_created_again(beats: Heartbeats) -> None:
    beats.join("a", "t")
    coordinator = beats.groups.coordinator
    (refused,) = coordinator.admin.delete([GROUP])
    assert refused.error_code == ErrorCode.NON_EMPTY_GROUP
    beats.leave("a")
    assert coordinator.admin.delete([GROUP]) == [DeleteGroupsResult(group_id=GROUP)]
    assert beats.refusal("a", 2) is ErrorCode.GROUP_ID_NOT_FOUND
    assert beats.join("a", "t").member_epoch == 2


def test_a_restart_keeps_the_group(beats: Heartbeats) -> None:
    shared(beats)
    beats.join("c", "t")
    beats.beat("a", 3)
    before = consumer_group_snapshot(beats.group())
    after = beats.restarted()
    assert consumer_group_snapshot(after.group()) == before
    assert after.beat("c", 4).error_code == ErrorCode.NONE


def test_a_heartbeat_that_cannot_be_written_leaves_all_as_it_was(beats: Heartbeats) -> None:
    beats.join("a", "t")
    before = consumer_group_snapshot(beats.group())
    beats.fail_next_append()
    assert refusal(beats.join("b", "t")) is ErrorCode.NOT_COORDINATOR
    assert consumer_group_snapshot(beats.group()) == before
    assert beats.batches == 1
    assert beats.join("b", "t").member_epoch == 3


def test_a_group_whose_first_heartbeat_cannot_be_written_does_not_exist(beats: Heartbeats) -> None:
    beats.fail_next_append(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert refusal(beats.join("a", "t")) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert beats.refusal("a", 2) is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_member_whose_record_cannot_be_encoded_is_refused(beats: Heartbeats) -> None:
    strange = beats.join("a", "t", client_id="\N{REPLACEMENT CHARACTER}" * 20_000)
    assert refusal(strange) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert beats.join("b", "t").member_epoch == 2
    assert list(beats.group().members) == ["b"]


def test_kafka_4_0s_record_of_topics_gets_a_tombstone(beats: Heartbeats) -> None:
    beats.join("a", "t")
    log = beats.groups.logs[0]
    topic = TopicMetadata(
        topic_id=bytes(16), topic_name="t", num_partitions=1, partition_metadata=[]
    )
    append_records(
        log,
        ConsumerGroupPartitionMetadataKey(group_id=GROUP),
        ConsumerGroupPartitionMetadataValue(topics=[topic]),
    )
    after = beats.restarted()
    assert after.group().has_partition_metadata
    written = log.log_end_offset
    after.beat("a", 2)
    assert keys_since(log, written) == [ConsumerGroupPartitionMetadataKey]
    assert not after.group().has_partition_metadata
