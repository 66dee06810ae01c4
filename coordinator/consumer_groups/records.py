"""A consumer group's records: decisions make them from members, replay applies them to members.

    record -> member        with_metadata, with_assignment: the member after a record
    member -> record        subscription_record (type 5), current_assignment_record (8)
    of the group            epoch_record (3), target_record (7), target_epoch_record (6),
                            regex_record (16); of type 4 only tombstones are written

A member has two records, so that its subscription is not written again with every change of its
partitions. Lists are sorted, also where Kafka does not sort them: equal state gives equal bytes.

Kafka: GroupCoordinatorRecordHelpers, ConsumerGroupMember.Builder.updateWith.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from odradek.coordinator.assignors.assignment import Assignment
from odradek.coordinator.modern_groups.member import member_state
from odradek.coordinator.runtime.outcome import JournalRecord
from odradek.coordinator.runtime.steps import (
    Step,
    no_step,
    sorted_in_steps,
    stepping,
    stepping_if_many,
)
from odradek.protocol.records.consumer_group import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    CurrentTopicPartitions,
    TargetTopicPartitions,
)

from .member import NOTHING, ConsumerMember, OwnedPartitions
from .subscriptions import ResolvedRegex

logger = logging.getLogger("odradek.groups")

# -- a member's records ----------------------------------------------------------------------------


def subscription_record(
    group_id: str, member: ConsumerMember, step: Step = no_step
) -> JournalRecord:
    """A member's subscription (type 5)."""
    value = ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted_in_steps(member.subscribed_topics, step),
        subscribed_topic_regex=member.subscribed_regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.server_assignor,
        classic_member_metadata=member.classic,
    )
    key = ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id)
    return JournalRecord(value, key=key)


def current_assignment_record(
    group_id: str, member: ConsumerMember, step: Step = no_step
) -> JournalRecord:
    """The partitions that a member owns, and those it must give up (type 8)."""
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.member_epoch,
        previous_member_epoch=member.previous_member_epoch,
        state=member.state,
        assigned_partitions=_current_partitions(member.assigned, step),
        partitions_pending_revocation=_current_partitions(member.pending_revocation, step),
    )
    key = ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id)
    return JournalRecord(value, key=key)


def target_record(
    group_id: str, member_id: str, target: Assignment, step: Step = no_step
) -> JournalRecord:
    """A member's target assignment (type 7)."""
    value = ConsumerGroupTargetAssignmentMemberValue(
        topic_partitions=[
            TargetTopicPartitions(topic_id=topic_id, partitions=sorted(partitions))
            for topic_id, partitions in stepping_if_many(target.items(), step)
        ]
    )
    key = ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
    return JournalRecord(value, key=key)


# The keys of a member's records, in the order in which Kafka writes their tombstones.
MEMBER_KEYS = (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupMemberMetadataKey,
)


def member_tombstones(group_id: str, member_id: str) -> list[JournalRecord]:
    """Return the tombstones that remove a member."""
    return [
        JournalRecord(None, key=key_type(group_id=group_id, member_id=member_id))
        for key_type in MEMBER_KEYS
    ]


# -- the group's own records -----------------------------------------------------------------------


def epoch_record(group_id: str, epoch: int, metadata_hash: int) -> JournalRecord:
    """The group epoch and the hash of the subscribed topics (type 3)."""
    value = ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return JournalRecord(value, key=ConsumerGroupMetadataKey(group_id=group_id))


def target_epoch_record(group_id: str, assignment_epoch: int, now_ms: int) -> JournalRecord:
    """The epoch of the targets, and when they were computed in wall time (type 6)."""
    value = ConsumerGroupTargetAssignmentMetadataValue(
        assignment_epoch=assignment_epoch, assignment_timestamp=now_ms
    )
    return JournalRecord(value, key=ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id))


def regex_record(
    group_id: str, regex: str, resolved: ResolvedRegex, step: Step = no_step
) -> JournalRecord:
    """The topics that a regular expression matches (type 16)."""
    value = ConsumerGroupRegularExpressionValue(
        topics=sorted_in_steps(resolved.topics, step),
        version=resolved.version,
        timestamp=resolved.timestamp_ms,
    )
    key = ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex)
    return JournalRecord(value, key=key)


def regex_tombstone(group_id: str, regex: str) -> JournalRecord:
    """Removes a regular expression without subscribers."""
    key = ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex)
    return JournalRecord(None, key=key)


def subscription_metadata_tombstone(group_id: str) -> JournalRecord:
    """Removes Kafka 4.0's record of subscribed topics (type 4), replaced by the epoch's hash."""
    return JournalRecord(None, key=ConsumerGroupPartitionMetadataKey(group_id=group_id))


def group_tombstones(
    group_id: str, member_ids: Iterable[str], regexes: Iterable[str], step: Step = no_step
) -> list[JournalRecord]:
    """All tombstones of a group, in Kafka's order (ConsumerGroup.createGroupTombstoneRecords).

    A downgrade that replaces a static member passes the new member id instead of the old one.
    """
    of_members = [
        member_tombstones(group_id, member_id) for member_id in stepping(member_ids, step)
    ]
    return [
        *(current_assignment for current_assignment, _, _ in of_members),
        *(target for _, target, _ in of_members),
        JournalRecord(None, key=ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id)),
        *(subscription for _, _, subscription in of_members),
        *(regex_tombstone(group_id, regex) for regex in regexes),
        subscription_metadata_tombstone(group_id),
        JournalRecord(None, key=ConsumerGroupMetadataKey(group_id=group_id)),
    ]


# -- records into members --------------------------------------------------------------------------


def with_metadata(
    member: ConsumerMember, value: ConsumerGroupMemberMetadataValue, step: Step = no_step
) -> ConsumerMember:
    """Return the member after a record of type 5; the partitions it owns are kept."""
    return replace(
        member,
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        subscribed_topics=frozenset(stepping_if_many(value.subscribed_topic_names, step)),
        subscribed_regex=value.subscribed_topic_regex or "",
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        server_assignor=value.server_assignor,
        classic=value.classic_member_metadata,
    )


def with_assignment(
    member: ConsumerMember, value: ConsumerGroupCurrentMemberAssignmentValue, step: Step = no_step
) -> ConsumerMember:
    """Return the member after a record of type 8; its subscription is kept."""
    return replace(
        member,
        member_epoch=value.member_epoch,
        previous_member_epoch=value.previous_member_epoch,
        state=member_state(value.state),
        assigned=owned_partitions(value.assigned_partitions, value.member_epoch, step),
        pending_revocation=owned_partitions(
            value.partitions_pending_revocation, value.member_epoch, step
        ),
    )


def owned_partitions(
    topics: Sequence[CurrentTopicPartitions], member_epoch: int, step: Step = no_step
) -> OwnedPartitions:
    """Partitions with the epochs of their assignment.

    Kafka 4.2 and earlier wrote no epochs; then the member's epoch is used. A static member that
    left temporarily has epoch -2, in which nothing was assigned; then 0 is used.
    """
    if not topics:
        return NOTHING  # the usual case for pending revocations
    default_epoch = max(member_epoch, 0)
    owned: dict[bytes, Mapping[int, int]] = {}
    for topic in stepping_if_many(topics, step):
        epochs = topic.assignment_epochs
        if epochs is None or len(epochs) != len(topic.partitions):
            if epochs:
                logger.error(
                    "%d epochs for %d partitions of topic %s: epoch %d is used for all",
                    len(epochs), len(topic.partitions), topic.topic_id.hex(), default_epoch,
                )  # fmt: skip
            epochs = [default_epoch] * len(topic.partitions)
        partitions = stepping_if_many(topic.partitions, step)
        owned[topic.topic_id] = dict(zip(partitions, epochs, strict=True))
    return owned


def target_of(value: ConsumerGroupTargetAssignmentMemberValue, step: Step = no_step) -> Assignment:
    """Return the target in a record of type 7."""
    topics = stepping_if_many(value.topic_partitions, step)
    return {topic.topic_id: frozenset(topic.partitions) for topic in topics}


def _current_partitions(owned: OwnedPartitions, step: Step) -> list[CurrentTopicPartitions]:
    topics = []
    for topic_id, epochs in stepping_if_many(owned.items(), step):
        partitions = sorted(epochs)
        topics.append(
            CurrentTopicPartitions(
                topic_id=topic_id,
                partitions=partitions,
                assignment_epochs=[
                    epochs[partition] for partition in stepping_if_many(partitions, step)
                ],
            )
        )
    return topics
