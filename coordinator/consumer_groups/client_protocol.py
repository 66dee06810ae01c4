"""Decodes the subscriptions of classic consumers, and encodes their assignments.

In a classic group the broker passes subscriptions and assignments between members as opaque bytes.
In a consumer group the broker computes the assignment. So it must decode the subscriptions of
classic members, and encode assignments in the version that each member uses. Classic members use
topic names, the broker uses topic ids; deleted topics are left out. Kafka: ConsumerProtocol and the
to… methods of Utils.
"""

from collections.abc import Callable, Iterable, Mapping

from odradek.coordinator.assignors.assignment import Assignment
from odradek.coordinator.modern_groups.partition_sets import partition_sets
from odradek.coordinator.modern_groups.topics_view import ClusterTopics
from odradek.coordinator.runtime.steps import (
    Step,
    no_step,
    step_of_items,
    stepping,
    stepping_if_many,
)
from odradek.protocol.records.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    ConsumerTopicPartitions,
    decode_versioned,
    encode_versioned,
    version_for,
)


class CustomAssignorError(Exception):
    """An assignment contains user data of a custom assignor, which the broker cannot produce."""


def subscription_of(metadata: bytes, step: Step = no_step) -> ConsumerProtocolSubscription:
    """Decode the subscription in a member's protocol metadata. Raises DecodeError."""
    return decode_versioned(ConsumerProtocolSubscription, metadata, _items_step(step))


def assignment_of(data: bytes, topics: ClusterTopics, step: Step = no_step) -> Assignment:
    """Decode an assignment; no bytes (the member has never synced) are no partitions.

    Raises DecodeError, CustomAssignorError.
    """
    if not data:
        return {}
    assignment = decode_versioned(ConsumerProtocolAssignment, data, _items_step(step))
    if assignment.user_data:
        raise CustomAssignorError("user data of a custom assignor would be lost")
    return by_topic_id(assignment.assigned_partitions, topics, step)


def assignment_bytes(
    partitions: Mapping[bytes, Iterable[int]],
    metadata: bytes,
    topics: ClusterTopics,
    step: Step = no_step,
) -> bytes:
    """Encode an assignment in the version of the member's join metadata. Raises DecodeError."""
    items = stepping_if_many(partitions.items(), step)
    named = ((topics.name_of(topic_id), indexes) for topic_id, indexes in items)
    assignment = ConsumerProtocolAssignment(
        assigned_partitions=[
            ConsumerTopicPartitions(topic=name, partitions=sorted(indexes))
            for name, indexes in named
            if name is not None
        ]
    )
    version = version_for(ConsumerProtocolAssignment, metadata)
    return encode_versioned(assignment, version, _items_step(step))


def _items_step(step: Step) -> Callable[[int], None] | None:
    """Return the step of a codec; None has it read or write without steps, which is quicker."""
    return None if step is no_step else step_of_items(step)


def by_topic_id(
    named: Iterable[ConsumerTopicPartitions], topics: ClusterTopics, step: Step = no_step
) -> Assignment:
    """Return the partitions of an assignment or subscription by topic id."""
    found = ((topics.id_of(entry.topic), entry.partitions) for entry in stepping(named, step))
    named_ids = ((topic_id, its) for topic_id, its in found if topic_id is not None)
    by_id = partition_sets(named_ids, step)
    return {topic_id: partitions for topic_id, partitions in by_id.items() if partitions}
