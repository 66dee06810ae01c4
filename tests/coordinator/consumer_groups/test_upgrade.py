"""A classic group becomes a consumer group: rolling upgrades, refusals, failures, all states."""

import pytest

from odradek.coordinator.any_group.group_settings import MigrationPolicy
from odradek.coordinator.classic_groups.group import ClassicState
from odradek.coordinator.consumer_groups.group import ConsumerState
from odradek.protocol.errors import ErrorCode
from odradek.protocol.records.consumer_group import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMetadataKey,
)
from odradek.protocol.records.consumer_offsets import GroupMetadataKey
from odradek.protocol.records.consumer_protocol import (
    ConsumerProtocolAssignment,
    encode_versioned,
)
from tests.support.both_lives import assert_log_agrees
from tests.support.classic_consumers import (
    ClassicConsumer,
    Consumer,
    assignment_bytes,
    settle,
    subscription_bytes,
)
from tests.support.groups import SESSION_MS, Groups
from tests.support.heartbeats import Heartbeats
from tests.support.journals import keys_since, records_since

REJOIN = ErrorCode.REBALANCE_IN_PROGRESS
NOT_FOUND = ErrorCode.GROUP_ID_NOT_FOUND
Member = ClassicConsumer | Consumer


@pytest.fixture
def beats() -> Heartbeats:
    return with_topic(Heartbeats())


def with_topic(beats: Heartbeats) -> Heartbeats:
    beats.topic("t", 6)
    return beats


def lone_classic(beats: Heartbeats) -> ClassicConsumer:
    """A stable classic group of one."""
    member = ClassicConsumer(beats, "t")
    settle(beats, member)
    return member


# -- rolling


@pytest.mark.parametrize("cooperative", [False, True], ids=["eager", "cooperative"])
def test_a_rolling_upgrade_and_downgrade_replaces_members_one_by_one(
    beats: Heartbeats, cooperative: bool
) -> None:
    members: list[Member] = [ClassicConsumer(beats, "t", cooperative=cooperative) for _ in range(3)]
    settle(beats, *members)
    for index in range(3):
        assert members[index].leave() is ErrorCode.NONE
        members[index] = Consumer(beats, f"new-{index}", "t")
        settle(beats, *members)
        assert beats.group().classic_member_count == 2 - index
        assert beats.group().state is ConsumerState.STABLE
    for index in range(3):
        assert members[index].leave() is ErrorCode.NONE
        members[index] = ClassicConsumer(beats, "t", cooperative=cooperative)
        settle(beats, *members)
        assert all(member.commit() is ErrorCode.NONE for member in members)
    assert beats.groups.group().state is ClassicState.STABLE
    assert [len(member.reads) for member in members] == [2, 2, 2]


def test_members_keep_reading_the_partitions_they_keep(beats: Heartbeats) -> None:
    old = ClassicConsumer(beats, "t", cooperative=True)
    settle(beats, old)
    new = Consumer(beats, "new", "t")
    new.poll()
    kept = None
    for _ in range(12):
        old.poll()
        kept = old.reads if kept is None else kept & old.reads
        new.poll()
    assert kept == old.reads
    assert len(old.reads) == 3


# -- what is written


def test_the_classic_groups_end_and_the_new_group_are_one_batch(beats: Heartbeats) -> None:
    lone_classic(beats)
    log = beats.groups.logs[0]
    end, batches = log.log_end_offset, beats.batches
    Consumer(beats, "new", "t").poll()
    assert beats.batches == batches + 1
    assert keys_since(log, end)[:6] == [
        GroupMetadataKey,
        ConsumerGroupMemberMetadataKey,
        ConsumerGroupMetadataKey,
        ConsumerGroupTargetAssignmentMemberKey,
        ConsumerGroupTargetAssignmentMetadataKey,
        ConsumerGroupCurrentMemberAssignmentKey,
    ]
    epochs = [
        record.value.epoch
        for record in records_since(log, end)
        if isinstance(record.value, ConsumerGroupMetadataValue)
    ]
    assert epochs == [1, 2]  # the generation, and one more for who has joined


def test_a_static_member_with_an_empty_instance_id_stays_in_the_group(beats: Heartbeats) -> None:
    old, new = ClassicConsumer(beats, "t", instance=""), Consumer(beats, "new", "t")
    settle(beats, old)
    settle(beats, old, new)
    assert beats.groups.heartbeat(old.member_id, old.generation, instance="") is ErrorCode.NONE
    assert old.member_id in beats.group().members
    assert beats.group().static_member_ids == {"": old.member_id}


def test_a_classic_member_keeps_what_is_known_of_it(beats: Heartbeats) -> None:
    old = ClassicConsumer(beats, "t", instance="i")
    settle(beats, old)
    Consumer(beats, "new", "t").poll()
    member = beats.member(old.member_id)
    assert (member.member_epoch, member.previous_member_epoch) == (1, 1)
    assert (member.instance_id, member.client_id) == ("i", "client")
    assert member.subscribed_topics == {"t"}
    assert member.classic is not None
    assert member.classic.session_timeout_ms == SESSION_MS
    assert [one.name for one in member.classic.supported_protocols] == ["range", "roundrobin"]
    assert beats.group().target(old.member_id) != member.assigned
    assert set(next(iter(member.assigned.values())).values()) == {1}


# -- from the midst of a rebalance


def test_waiting_joins_are_answered_to_join_the_new_group(beats: Heartbeats) -> None:
    old = lone_classic(beats)
    second = ClassicConsumer(beats, "t")
    second.poll()
    second.poll()
    assert beats.groups.group().state is ClassicState.PREPARING_REBALANCE
    new = Consumer(beats, "new", "t")
    new.poll()
    second.poll()
    assert second.last_error is REJOIN
    assert len(beats.group().members) == 3
    settle(beats, old, second, new)


def test_waiting_syncs_are_answered_to_join_the_new_group(beats: Heartbeats) -> None:
    old = lone_classic(beats)
    second = ClassicConsumer(beats, "t")
    second.poll()
    second.poll()
    old.poll()
    old.poll()
    second.poll()
    second.poll()
    assert beats.groups.group().state is ClassicState.COMPLETING_REBALANCE
    new = Consumer(beats, "new", "t")
    new.poll()
    second.poll()
    assert second.last_error is REJOIN
    settle(beats, old, second, new)


def test_a_group_whose_first_rebalance_is_not_over_can_be_joined() -> None:
    metadata = Heartbeats().metadata
    groups = Groups(metadata=metadata.state, initial_rebalance_delay_ms=3_000)
    beats = with_topic(Heartbeats(metadata=metadata, groups=groups))
    old, new = ClassicConsumer(beats, "t"), Consumer(beats, "new", "t")
    old.poll()
    old.poll()
    assert groups.group().protocol_name is None
    new.poll()
    old.poll()
    assert old.last_error is REJOIN
    beats.advance(1_000)  # targets are made once a second here
    settle(beats, old, new)


def test_a_rebalance_in_progress_forces_new_targets(
    beats: Heartbeats,
) -> None:
    static, other = ClassicConsumer(beats, "t", instance="i"), ClassicConsumer(beats, "t")
    settle(beats, static, other)
    other.leave()
    assert beats.groups.group().state is ClassicState.PREPARING_REBALANCE
    settle(beats, Consumer(beats, "new", "t", instance="i"))  # as the static member's successor


def test_a_partition_without_an_owner_forces_new_targets(beats: Heartbeats) -> None:
    static, other = ClassicConsumer(beats, "t", instance="i"), Consumer(beats, "other", "t")
    settle(beats, static)
    settle(beats, static, other)
    other.leave()  # a classic group again, which is to assign the partitions of `other`
    assert beats.groups.group().state is ClassicState.PREPARING_REBALANCE
    beats.groups = beats.restarted().groups
    assert beats.groups.group().state is ClassicState.STABLE
    settle(beats, Consumer(beats, "new", "t", instance="i"))


def test_deadlines_of_the_classic_group_end_with_it(beats: Heartbeats) -> None:
    old, new = lone_classic(beats), Consumer(beats, "new", "t")
    new.poll()
    new.leave()
    settle(beats, old)  # in a classic group of the same name, with a member of the same name
    generation = old.generation
    for _ in range(4):
        beats.advance(SESSION_MS // 2)
        old.poll()
    assert old.last_error is ErrorCode.NONE
    assert beats.groups.group().generation_id == generation


def test_the_classic_session_timeout_stays_in_effect(beats: Heartbeats) -> None:
    lone_classic(beats)
    new = Consumer(beats, "new", "t")
    new.poll()
    beats.advance(SESSION_MS)
    assert list(beats.group().members) == ["new"]
    settle(beats, new)


# -- refusals


@pytest.mark.parametrize("policy", MigrationPolicy)
def test_the_policy_says_whether_groups_with_members_may_be_joined(
    policy: MigrationPolicy,
) -> None:
    beats = with_topic(Heartbeats(migration_policy=policy))
    old = lone_classic(beats)
    new = Consumer(beats, "new", "t")
    new.poll()
    if policy in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.UPGRADE):
        assert new.last_error is ErrorCode.NONE
    else:
        assert new.last_error is NOT_FOUND
        settle(beats, old)
        old.leave()
        settle(beats, new)  # an empty group is anybody's
    settle(beats, new, *([old] if policy.allows_upgrade else []))


def refused(beats: Heartbeats, code: ErrorCode = NOT_FOUND) -> None:
    """Assert that a join by heartbeat fails, writes nothing, and does not change the group."""
    before = beats.batches
    assert beats.join("new", "t").error_code == code
    assert beats.batches == before
    assert beats.groups.group().state is not ClassicState.DEAD
    assert_log_agrees(beats.groups)


def test_a_group_of_another_protocol_type_is_refused(beats: Heartbeats) -> None:
    joined = beats.groups.join(protocol_type="connect", protocols={"sessioned": b""})
    beats.groups.sync(joined.member_id, protocol_type="connect")
    refused(beats)


def test_a_group_beyond_the_size_of_a_consumer_group_is_refused() -> None:
    beats = with_topic(Heartbeats(max_size=1))
    settle(beats, ClassicConsumer(beats, "t"), ClassicConsumer(beats, "t"))
    refused(beats)


@pytest.mark.parametrize(
    "assignment",
    [
        encode_versioned(ConsumerProtocolAssignment(assigned_partitions=[], user_data=b"!"), 1),
        b"\0",
        b"\xff\xff\0\0\0\0",
        assignment_bytes({("t", 0)})[:-6],
    ],
    ids=["of a custom assignor", "without a version", "of version -1", "cut off"],
)
def test_an_assignment_with_user_data_or_without_a_valid_encoding_is_refused(
    beats: Heartbeats, assignment: bytes
) -> None:
    joined = beats.groups.join()
    beats.groups.sync(joined.member_id, assignments={joined.member_id: assignment})
    refused(beats)


def test_a_subscription_that_cannot_be_decoded_is_refused(beats: Heartbeats) -> None:
    joined = beats.groups.join(protocols={"range": b"\0"})
    beats.groups.sync(joined.member_id)
    refused(beats)


def test_a_partition_that_two_members_have_is_refused(beats: Heartbeats) -> None:
    first, second = beats.groups.stable_group(
        2, protocols={"range": subscription_bytes(["t"], set())}
    )
    twice = {member: assignment_bytes({("t", 0)}) for member in (first, second)}
    beats.groups.parked_join(first, protocols={"range": subscription_bytes(["t"], {("t", 0)})})
    beats.groups.send_join(second, protocols={"range": subscription_bytes(["t"], {("t", 0)})})
    leader = beats.groups.group().leader_id
    assert leader is not None
    beats.groups.sync(leader, assignments=twice)
    refused(beats, ErrorCode.UNKNOWN_SERVER_ERROR)


def test_deleted_topics_are_left_out(beats: Heartbeats) -> None:
    beats.topic("gone", 1)
    joined = beats.groups.join(protocols={"range": subscription_bytes(["t"], set())})
    mine = assignment_bytes({("t", 1), ("gone", 0)})
    beats.groups.sync(joined.member_id, assignments={joined.member_id: mine})
    beats.delete("gone")
    Consumer(beats, "new", "t").poll()
    [assigned] = beats.member(joined.member_id).assigned.values()
    assert list(assigned) == [1]


# -- failures


def test_partitions_that_a_topic_created_again_does_not_have_are_left_out(
    beats: Heartbeats,
) -> None:
    static, other = ClassicConsumer(beats, "t", instance="i"), ClassicConsumer(beats, "t")
    settle(beats, static, other)
    beats.delete("t")
    beats.topic("t", 3)
    new = Consumer(beats, "new", "t", instance="i")  # causes no new targets by itself
    settle(beats, new, other)
    assert new.reads | other.reads == {("t", partition) for partition in range(3)}
    assert not new.reads & other.reads


def test_an_upgrade_that_cannot_be_written_leaves_everything_as_it_was(beats: Heartbeats) -> None:
    old = lone_classic(beats)
    second = ClassicConsumer(beats, "t")
    second.poll()
    second.poll()
    beats.fail_next_append()
    assert beats.join("new", "t").error_code == ErrorCode.NOT_COORDINATOR
    assert beats.groups.group().state is ClassicState.PREPARING_REBALANCE
    second.poll()
    assert second.last_error is ErrorCode.MEMBER_ID_REQUIRED  # its join is parked still
    settle(beats, old, second)
    new = Consumer(beats, "new", "t")
    settle(beats, old, second, new)


# -- an empty group


def test_an_empty_group_is_taken_over_with_its_offsets_either_way(beats: Heartbeats) -> None:
    old = lone_classic(beats)
    assert old.commit(7) is ErrorCode.NONE
    old.leave()
    new = Consumer(beats, "new", "t")
    settle(beats, new)
    assert beats.group().epoch == 2  # a new group's first, not the old generation
    assert beats.groups.committed("t") == 7
    assert new.commit(8) is ErrorCode.NONE
    new.leave()
    settle(beats, old)
    assert beats.groups.group().generation_id == 1
    assert beats.groups.committed("t") == 8


def test_a_member_id_given_before_the_upgrade_is_valid_in_the_new_group(beats: Heartbeats) -> None:
    old = lone_classic(beats)
    promised = ClassicConsumer(beats, "t")
    promised.poll()
    old.leave()
    new = Consumer(beats, "new", "t")
    new.poll()
    settle(beats, promised, new)
    assert promised.member_id in beats.group().members
    beats.advance(SESSION_MS // 2)
    promised.poll()
    beats.advance(SESSION_MS // 2)  # beyond the end of the promise
    assert promised.member_id in beats.group().members


def test_an_empty_consumer_group_is_not_replaced_by_a_join_with_a_member_id(
    beats: Heartbeats,
) -> None:
    Consumer(beats, "new", "t").poll()
    beats.leave("new")
    assert beats.groups.send_join("claimed").error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert beats.group().state is ConsumerState.EMPTY
