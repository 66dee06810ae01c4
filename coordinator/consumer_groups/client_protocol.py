"""What classic consumers say of themselves and are told, as the broker reads and writes it.

In a classic group that is between the members: the broker carries subscriptions and assignments as
bytes. Once a group has a member of the consumer protocol the broker makes the assignment, so it
must understand what classic members say, and speak to them in the version that they speak. They
name topics, the broker keeps ids; a topic that is no more has neither. Kafka: ConsumerProtocol and
the to… methods of Utils.
"""

from collections.abc import Iterable, Mapping

from odradek.coordinator.assignors.assignment import Assignment
from odradek.protocol.records.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    ConsumerTopicPartitions,
    decode_versioned,
    encode_versioned,
    version_for,
)

from .topics_view import ClusterTopics


class CustomAssignorError(Exception):
    """The members' leader tells them more than partitions: only its own assignor can do that."""


def subscription_of(metadata: bytes) -> ConsumerProtocolSubscription:
    """What a member said when it joined. Raises DecodeError."""
    return decode_versioned(ConsumerProtocolSubscription, metadata)


def reported_partitions(
    subscription: ConsumerProtocolSubscription, topics: ClusterTopics
) -> Assignment:
    """The partitions that a member said it has. One of an old version never says: nothing then."""
    return _by_id(subscription.owned_partitions, topics)


def assignment_of(data: bytes, topics: ClusterTopics) -> Assignment:
    """The partitions that a member was assigned; of no bytes nothing: it has never synced.

    Raises DecodeError, CustomAssignorError.
    """
    if not data:
        return {}
    assignment = decode_versioned(ConsumerProtocolAssignment, data)
    if assignment.user_data:
        raise CustomAssignorError("user data of a custom assignor would be lost")
    return _by_id(assignment.assigned_partitions, topics)


def assignment_bytes(
    partitions: Mapping[bytes, Iterable[int]], metadata: bytes, topics: ClusterTopics
) -> bytes:
    """The partitions, as a member that joined with this metadata reads them. Raises DecodeError."""
    named = ((topics.name_of(topic_id), ones) for topic_id, ones in partitions.items())
    assignment = ConsumerProtocolAssignment(
        assigned_partitions=[
            ConsumerTopicPartitions(topic=name, partitions=sorted(ones))
            for name, ones in named
            if name is not None
        ]
    )
    return encode_versioned(assignment, version_for(ConsumerProtocolAssignment, metadata))


def _by_id(named: Iterable[ConsumerTopicPartitions], topics: ClusterTopics) -> Assignment:
    found = ((topics.id_of(entry.topic), entry.partitions) for entry in named)
    return {
        topic_id: frozenset(partitions)
        for topic_id, partitions in found
        if topic_id is not None and partitions
    }
