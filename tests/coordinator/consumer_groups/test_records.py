"""A member's records, and the member that is read from them."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.coordinator.consumer_groups.group import ConsumerGroup
from odradek.coordinator.consumer_groups.member import ConsumerMember
from odradek.coordinator.consumer_groups.records import (
    current_assignment_record,
    epoch_record,
    group_tombstones,
    member_tombstones,
    owned_partitions,
    regex_record,
    regex_tombstone,
    subscription_metadata_tombstone,
    subscription_record,
    target_epoch_record,
    target_record,
)
from odradek.coordinator.consumer_groups.replay import replay
from odradek.coordinator.consumer_groups.subscriptions import ResolvedRegex
from odradek.coordinator.modern_groups.member import MemberState
from odradek.coordinator.runtime.outcome import JournalRecord
from odradek.coordinator.runtime.record_codec import CoordinatorRecordCodec
from odradek.protocol.records.consumer_group import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    CurrentTopicPartitions,
)
from odradek.protocol.records.consumer_offsets import RECORD_TYPES
from tests.support.consumer_members import IDS, REGEX, members, targets
from tests.support.group_snapshot import consumer_group_snapshot
from tests.support.lengths import by_length

CODEC = CoordinatorRecordCodec(RECORD_TYPES)
examples = settings(max_examples=by_length(20, 5_000), deadline=None)
RESOLVED = ResolvedRegex(topics=frozenset({"a", "b"}), version=12, timestamp_ms=99)


def replayed(*records: JournalRecord) -> ConsumerGroup | None:
    """The group that the records make, on the way through their bytes."""
    groups: dict[str, ConsumerGroup] = {}
    for record in records:
        read: Any = CODEC.decode(*CODEC.encode(record))
        replay(groups, read.key, read.value)
    return groups.get("g")


def only(group: ConsumerGroup | None) -> ConsumerMember:
    assert group is not None
    (member,) = group.members.values()
    return member


@examples
@given(member=members)
def test_a_member_equals_its_two_records_in_either_order(member: ConsumerMember) -> None:
    asked, has = subscription_record("g", member), current_assignment_record("g", member)
    assert only(replayed(asked, has)) == member
    assert only(replayed(has, asked)) == member


@examples
@given(members=st.lists(members, max_size=5, unique_by=lambda one: one.member_id), target=targets)
def test_a_group_equals_its_records_until_its_tombstones(
    members: list[ConsumerMember], target: dict[bytes, frozenset[int]]
) -> None:
    records = [
        *(subscription_record("g", member) for member in members),
        epoch_record("g", 7, -5),
        *(target_record("g", member.member_id, target) for member in members),
        target_epoch_record("g", 6, 1234),
        *(current_assignment_record("g", member) for member in members),
        regex_record("g", REGEX, RESOLVED),
    ]
    group = replayed(*records)
    assert group is not None
    shown = consumer_group_snapshot(group)
    assert shown["members"] == {member.member_id: member for member in members}
    assert shown["targets"] == {member.member_id: target for member in members}
    assert (shown["epoch"], shown["hash"], shown["assignment"]) == (7, -5, (6, 1234))
    assert shown["regexes"] == {REGEX: RESOLVED}
    assert replayed(*records, *group.tombstones()) is None


@examples
@given(first=members, second=members)
def test_the_tombstones_of_a_member_remove_all_of_its_state(
    first: ConsumerMember, second: ConsumerMember
) -> None:
    stays = [subscription_record("g", first), epoch_record("g", 3, 0)]
    alone = replayed(*stays)
    assert alone is not None
    if first.member_id == second.member_id or first.instance_id == second.instance_id:
        return
    with_both = replayed(
        *stays,
        subscription_record("g", second),
        current_assignment_record("g", second),
        target_record("g", second.member_id, {IDS[0]: frozenset({0})}),
        *member_tombstones("g", second.member_id),
    )
    assert with_both is not None
    assert consumer_group_snapshot(with_both) == consumer_group_snapshot(alone)
    assert all(with_both.ownership.epoch(topic, 0) == -1 for topic in IDS)


def test_partitions_without_epochs_get_the_members_epoch() -> None:
    without = CurrentTopicPartitions(topic_id=IDS[0], partitions=[0, 2], assignment_epochs=None)
    absent = CurrentTopicPartitions(topic_id=IDS[1], partitions=[1])
    uneven = CurrentTopicPartitions(topic_id=IDS[2], partitions=[1, 2], assignment_epochs=[3])
    assert owned_partitions([without, absent, uneven], 5) == {
        IDS[0]: {0: 5, 2: 5},
        IDS[1]: {1: 5},
        IDS[2]: {1: 5, 2: 5},
    }
    assert owned_partitions([without], -2) == {IDS[0]: {0: 0, 2: 0}}


def test_a_state_of_a_newer_kafka_is_unknown() -> None:
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=1,
        previous_member_epoch=0,
        state=9,
        assigned_partitions=[],
        partitions_pending_revocation=[],
    )
    key = ConsumerGroupCurrentMemberAssignmentKey(group_id="g", member_id="m")
    assert only(replayed(JournalRecord(value, 0, key))).state is MemberState.UNKNOWN


def test_tombstones_do_not_create_a_group() -> None:
    gone = [*group_tombstones("g", ["m"], [REGEX]), *member_tombstones("g", "m")]
    assert replayed(*gone, regex_tombstone("g", REGEX)) is None


def test_only_the_existence_of_kafka_4_0s_record_is_kept() -> None:
    key = subscription_metadata_tombstone("g").key
    value = RECORD_TYPES[4][1](topics=[])  # type: ignore[call-arg] # its class, by number
    group = replayed(JournalRecord(value, 0, key))
    assert group is not None
    assert group.has_partition_metadata
    group = replayed(JournalRecord(value, 0, key), subscription_metadata_tombstone("g"))
    assert group is not None
    assert not group.has_partition_metadata
