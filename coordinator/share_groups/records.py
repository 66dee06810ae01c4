"""A share group's records: decisions make them from members, replay applies them to members.

Lists are sorted, also where Kafka does not sort them: equal state gives equal bytes.
Kafka: GroupCoordinatorRecordHelpers, ShareGroup.createGroupTombstoneRecords.
"""

from collections.abc import Callable, Iterable, Sequence

from odradek.coordinator.assignors.assignment import NOTHING, Assignment
from odradek.coordinator.runtime.outcome import JournalRecord
from odradek.coordinator.runtime.steps import Step, no_step, sorted_in_steps, stepping_if_many
from odradek.protocol.records.share_group import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataKey,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupStatePartitionMetadataValue,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMetadataValue,
    TopicInfo,
    TopicPartitions,
    TopicPartitionsInfo,
)

from .member import ShareMember
from .state_partitions import StatePartitions, TopicOfState, Topics

UNKNOWN_TOPIC = "<UNKNOWN>"

# -- of a member -----------------------------------------------------------------------------------


def subscription_record(group_id: str, member: ShareMember, step: Step) -> JournalRecord:
    """A member's subscription (type 10)."""
    value = ShareGroupMemberMetadataValue(
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted_in_steps(member.subscribed_topics, step),
    )
    key = ShareGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id)
    return JournalRecord(value, key=key)


def target_record(
    group_id: str, member_id: str, target: Assignment, step: Step = no_step
) -> JournalRecord:
    """A member's target assignment (type 13)."""
    value = ShareGroupTargetAssignmentMemberValue(topic_partitions=_partitions(target, step))
    key = ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
    return JournalRecord(value, key=key)


def current_assignment_record(
    group_id: str, member: ShareMember, step: Step = no_step
) -> JournalRecord:
    """The partitions that a member reads (type 14)."""
    value = ShareGroupCurrentMemberAssignmentValue(
        member_epoch=member.member_epoch,
        previous_member_epoch=member.previous_member_epoch,
        state=member.state,
        assigned_partitions=_partitions(member.assigned, step),
    )
    key = ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id)
    return JournalRecord(value, key=key)


# The keys of a member's records, in the order in which Kafka writes their tombstones.
MEMBER_KEYS = (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupMemberMetadataKey,
)


def member_tombstones(group_id: str, member_id: str) -> list[JournalRecord]:
    """Return the tombstones that remove a member."""
    return [
        JournalRecord(None, key=key_type(group_id=group_id, member_id=member_id))
        for key_type in MEMBER_KEYS
    ]


# -- of the group ----------------------------------------------------------------------------------


def epoch_record(group_id: str, epoch: int, metadata_hash: int) -> JournalRecord:
    """The group epoch and the hash of the subscribed topics (type 11)."""
    value = ShareGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return JournalRecord(value, key=ShareGroupMetadataKey(group_id=group_id))


def target_epoch_record(group_id: str, assignment_epoch: int, now_ms: int) -> JournalRecord:
    """The epoch of the targets, and when they were computed in wall time (type 12)."""
    value = ShareGroupTargetAssignmentMetadataValue(
        assignment_epoch=assignment_epoch, assignment_timestamp=now_ms
    )
    return JournalRecord(value, key=ShareGroupTargetAssignmentMetadataKey(group_id=group_id))


def state_partitions_record(
    group_id: str,
    state: StatePartitions,
    name_of: Callable[[bytes], str | None],
    step: Step = no_step,
) -> JournalRecord:
    """The partitions with stored state (type 15). `name_of` returns the name of a topic id."""
    value = ShareGroupStatePartitionMetadataValue(
        initializing_topics=_topics(state.initializing, step),
        initialized_topics=_topics(state.initialized, step),
        deleting_topics=[
            TopicInfo(topic_id=topic_id, topic_name=name_of(topic_id) or UNKNOWN_TOPIC)
            for topic_id in sorted(state.deleting)
        ],
    )
    return JournalRecord(value, key=ShareGroupStatePartitionMetadataKey(group_id=group_id))


def group_tombstones(group_id: str, member_ids: Iterable[str]) -> list[JournalRecord]:
    """All tombstones of a group, in Kafka's order."""
    of_members = [member_tombstones(group_id, member_id) for member_id in member_ids]
    return [
        *(current_assignment for current_assignment, _, _ in of_members),
        *(target for _, target, _ in of_members),
        JournalRecord(None, key=ShareGroupTargetAssignmentMetadataKey(group_id=group_id)),
        *(subscription for _, _, subscription in of_members),
        JournalRecord(None, key=ShareGroupStatePartitionMetadataKey(group_id=group_id)),
        JournalRecord(None, key=ShareGroupMetadataKey(group_id=group_id)),
    ]


# -- from records ----------------------------------------------------------------------------------


def assignment_of(topics: Sequence[TopicPartitions], step: Step = no_step) -> Assignment:
    """Return the assignment in a record of type 13 or 14."""
    if not topics:
        return NOTHING
    named = stepping_if_many(topics, step)
    return {topic.topic_id: frozenset(topic.partitions) for topic in named}


def state_partitions_of(
    value: ShareGroupStatePartitionMetadataValue, timestamp_ms: int, step: Step = no_step
) -> StatePartitions:
    """Return the partitions in a record of type 15 that was written at `timestamp_ms`."""

    def topics(infos: Sequence[TopicPartitionsInfo]) -> Topics:
        return {
            info.topic_id: TopicOfState(info.topic_name, frozenset(info.partitions), timestamp_ms)
            for info in stepping_if_many(infos, step)
        }

    return StatePartitions(
        initializing=topics(value.initializing_topics),
        initialized=topics(value.initialized_topics),
        deleting=frozenset(topic.topic_id for topic in value.deleting_topics),
    )


def _partitions(assignment: Assignment, step: Step) -> list[TopicPartitions]:
    return [
        TopicPartitions(topic_id=topic_id, partitions=sorted(partitions))
        for topic_id, partitions in stepping_if_many(assignment.items(), step)
    ]


def _topics(topics: Topics, step: Step) -> list[TopicPartitionsInfo]:
    return [
        TopicPartitionsInfo(
            topic_id=topic_id, topic_name=topic.name, partitions=sorted(topic.partitions)
        )
        for topic_id, topic in stepping_if_many(topics.items(), step)
    ]
