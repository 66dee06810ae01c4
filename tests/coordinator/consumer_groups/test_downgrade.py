"""A consumer group becomes a classic group again when only classic members remain."""

import pytest

from odradek.coordinator.any_group.group_settings import MigrationPolicy
from odradek.coordinator.classic_groups.group import ClassicState
from odradek.coordinator.modern_groups.member import MemberState
from odradek.protocol.errors import ErrorCode
from odradek.protocol.records.consumer_group import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMetadataKey,
)
from odradek.protocol.records.consumer_offsets import GroupMetadataKey
from tests.support.both_lives import assert_log_agrees
from tests.support.classic_consumers import ClassicConsumer, Consumer, assigned_places, settle
from tests.support.groups import Groups
from tests.support.heartbeats import SESSION_MS, Heartbeats
from tests.support.journals import keys_since

ALL = {("t", partition) for partition in range(4)}


@pytest.fixture
def beats() -> Heartbeats:
    return with_topic(Heartbeats())


def with_topic(beats: Heartbeats) -> Heartbeats:
    beats.topic("t", 4)
    return beats


def mixed(beats: Heartbeats, instance: str | None = None) -> tuple[ClassicConsumer, Consumer]:
    """A consumer group with a classic member, which is not static, and one of its own kind."""
    old, new = ClassicConsumer(beats, "t"), Consumer(beats, "new", "t", instance=instance)
    settle(beats, old)
    settle(beats, new, old)
    return old, new


# -- by a departure


def test_the_last_consumers_departure_makes_a_classic_group_that_rebalances(
    beats: Heartbeats,
) -> None:
    old, new = mixed(beats)
    epoch = beats.group().epoch
    log, end = beats.groups.logs[0], beats.groups.logs[0].log_end_offset
    assert new.leave() is ErrorCode.NONE
    assert keys_since(log, end) == [
        ConsumerGroupCurrentMemberAssignmentKey,
        ConsumerGroupCurrentMemberAssignmentKey,
        ConsumerGroupTargetAssignmentMemberKey,
        ConsumerGroupTargetAssignmentMemberKey,
        ConsumerGroupTargetAssignmentMetadataKey,
        ConsumerGroupMemberMetadataKey,
        ConsumerGroupMemberMetadataKey,
        ConsumerGroupPartitionMetadataKey,
        ConsumerGroupMetadataKey,
        GroupMetadataKey,
    ]
    group = beats.groups.group()
    assert group.state is ClassicState.PREPARING_REBALANCE
    assert (group.generation_id, group.leader_id) == (epoch, old.member_id)
    assert list(group.members) == [old.member_id]
    assert assigned_places(group.members[old.member_id].assignment) == old.reads
    old.poll()
    assert old.last_error is ErrorCode.REBALANCE_IN_PROGRESS
    settle(beats, old)


def test_the_members_may_still_elect_any_protocol_that_all_support(beats: Heartbeats) -> None:
    old, new = mixed(beats)
    new.leave()
    group = beats.groups.group()
    assert [name for name, _ in group.members[old.member_id].protocols] == ["range", "roundrobin"]
    joined = beats.groups.send_join(old.member_id, protocols={"roundrobin": b"\0\0\0\0\0\0"})
    assert (joined.error_code, joined.protocol_name) == (ErrorCode.NONE, "roundrobin")


def test_a_consumer_whose_session_ends_leaves_a_classic_group_behind(beats: Heartbeats) -> None:
    old, _ = mixed(beats)
    for _ in range(SESSION_MS // 5_000 + 1):
        beats.advance(5_000)
        old.poll()
    assert list(beats.groups.group().members) == [old.member_id]
    settle(beats, old)


def test_sessions_of_the_classic_group_are_watched_from_the_start(beats: Heartbeats) -> None:
    _, new = mixed(beats)
    new.leave()
    beats.advance(10_000)
    assert beats.groups.group().state is ClassicState.EMPTY


def test_deadlines_of_the_consumer_group_end_with_it(beats: Heartbeats) -> None:
    old, new = mixed(beats)
    service = beats.groups.coordinator.consumer_groups
    assert len(service.deadlines.sessions) == 2
    new.leave()
    assert len(service.deadlines.sessions) == 0
    for _ in range(12):
        beats.advance(9_000)
        old.poll()
    settle(beats, old)


def test_an_empty_consumer_group_stays_one(beats: Heartbeats) -> None:
    new = Consumer(beats, "new", "t")
    new.poll()
    new.leave()
    assert beats.group().is_empty


@pytest.mark.parametrize(
    "policy", [each for each in MigrationPolicy if each is not MigrationPolicy.DISABLED]
)
def test_the_policy_says_whether_the_group_goes_back(policy: MigrationPolicy) -> None:
    beats = with_topic(Heartbeats(migration_policy=policy))
    old, new = ClassicConsumer(beats, "t"), Consumer(beats, "new", "t")
    settle(beats, new)
    settle(beats, new, old)
    new.leave()
    if policy in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.DOWNGRADE):
        assert beats.groups.group().state is ClassicState.PREPARING_REBALANCE
    else:
        assert list(beats.group().members) == [old.member_id]
    settle(beats, old)


def test_a_group_beyond_the_size_of_a_classic_group_stays_a_consumer_group() -> None:
    metadata = Heartbeats().metadata
    beats = with_topic(
        Heartbeats(
            metadata=metadata,
            groups=Groups(metadata=metadata.state, max_size=1),
        )
    )
    new, first, second = (
        Consumer(beats, "new", "t"),
        ClassicConsumer(beats, "t"),
        ClassicConsumer(beats, "t"),
    )
    for _ in range(40):
        for member in (new, first, second):
            member.poll()
        beats.advance(500)
    new.leave()
    assert len(beats.group().members) == 2


def test_a_member_whose_words_cannot_be_read_keeps_the_group_as_it_is(beats: Heartbeats) -> None:
    old, new = mixed(beats)
    words = {**old.protocols, "garbled": b"\0"}
    # It is read under its first protocol; the group would elect the one that all prefer.
    beats.groups.send_join(old.member_id, protocols={"range": words["range"], "garbled": b"\0"})
    other = beats.groups.send_join("other", protocols={"garbled": words["range"]})
    assert other.error_code == ErrorCode.NONE
    assert new.leave() is ErrorCode.NONE
    assert set(beats.group().members) == {old.member_id, "other"}


def test_a_downgrade_that_cannot_be_written_leaves_everything_as_it_was(beats: Heartbeats) -> None:
    old, new = mixed(beats)
    beats.fail_next_append()
    assert beats.leave("new") is ErrorCode.NOT_COORDINATOR
    assert len(beats.group().members) == 2
    assert_log_agrees(beats.groups)
    settle(beats, old, new)


def test_a_departure_by_timeout_that_cannot_be_written_is_tried_again(beats: Heartbeats) -> None:
    old, _ = mixed(beats)
    while len(beats.group().members) == 2:
        beats.fail_next_append()
        beats.advance(5_000)
        old.poll()
        if beats.groups.logs[0].failed:
            break
    assert len(beats.group().members) == 2
    beats.advance(500)
    assert beats.groups.group().state is ClassicState.PREPARING_REBALANCE


# -- by a replacement


def test_a_static_consumer_that_comes_back_as_a_classic_one_disturbs_nobody(
    beats: Heartbeats,
) -> None:
    old, new = mixed(beats, instance="i")
    assigned, epoch = set(new.reads), beats.group().epoch
    beats.beat("new", -2, instance="i")
    back = ClassicConsumer(beats, "t", instance="i")
    back.poll()
    group = beats.groups.group()
    assert (group.state, group.generation_id) == (ClassicState.STABLE, epoch)
    assert back.generation == epoch
    assert group.leader_id == old.member_id
    assert_log_agrees(beats.groups)
    back.poll()
    old.poll()
    assert (back.reads, old.last_error) == (assigned, ErrorCode.NONE)
    settle(beats, old, back)
    assert beats.groups.group().generation_id == epoch


def test_one_that_wants_something_else_makes_the_group_rebalance(beats: Heartbeats) -> None:
    old, _ = mixed(beats, instance="i")
    beats.topic("more", 1)
    back = ClassicConsumer(beats, "t", "more", instance="i")
    back.poll()
    assert beats.groups.group().state is ClassicState.PREPARING_REBALANCE
    for _ in range(12):
        back.poll()
        old.poll()
    assert back.reads | old.reads == ALL | {("more", 0)}


def test_a_member_that_waits_for_partitions_of_the_replaced_member_gets_them(
    beats: Heartbeats,
) -> None:
    old, _ = mixed(beats, instance="i")
    waiting = ClassicConsumer(beats, "t")
    for _ in range(3):
        waiting.poll()
    state = beats.group().members[waiting.member_id].state
    assert (state, waiting.reads) == (MemberState.UNRELEASED_PARTITIONS, set())
    back = ClassicConsumer(beats, "t", instance="i")
    back.poll()
    assert beats.groups.group().state is ClassicState.PREPARING_REBALANCE
    settle(beats, old, waiting, back)


def test_a_replacement_among_other_consumers_keeps_the_group(beats: Heartbeats) -> None:
    old, new = mixed(beats, instance="i")
    other = Consumer(beats, "other", "t")
    settle(beats, old, new, other)
    back = ClassicConsumer(beats, "t", instance="i")
    settle(beats, back, old, other)
    assert beats.group().static_member_ids == {"i": back.member_id}


def test_a_replacement_that_cannot_be_written_leaves_everything_as_it_was(
    beats: Heartbeats,
) -> None:
    old, new = mixed(beats, instance="i")
    beats.fail_next_append()
    back = ClassicConsumer(beats, "t", instance="i")
    back.poll()
    assert back.last_error is ErrorCode.NOT_COORDINATOR
    assert beats.group().static_member_ids == {"i": "new"}
    settle(beats, old, new)


def test_a_static_consumer_alone_may_come_back_as_a_classic_one(beats: Heartbeats) -> None:
    new = Consumer(beats, "new", "t", instance="i")
    settle(beats, new)
    back = ClassicConsumer(beats, "t", instance="i")
    settle(beats, back)
    assert beats.groups.group().leader_id == back.member_id
