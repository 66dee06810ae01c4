"""Requests of administrators about the start offsets of a share group without members.

The offsets themselves are in the state that the share coordinator stores. So each request has two
halves: what the group records, which is decided here, and what the share coordinator then does,
which the caller asks it for. Kafka: GroupMetadataManager.alterShareGroupOffsets,
sharePartitionsEligibleForOffsetDeletion, shareGroupBuildPartitionDeleteRequest.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from odradek.coordinator.modern_groups.draft import Draft, DraftResult
from odradek.coordinator.modern_groups.topics_view import ClusterTopics
from odradek.coordinator.runtime.outcome import Outcome
from odradek.coordinator.runtime.steps import Step, stepping
from odradek.coordinator.runtime.timers import Now
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)
from odradek.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequestTopic,
    DeleteShareGroupOffsetsResponseTopic,
)
from odradek.protocol.primitives import ZERO_UUID

from .group import ShareGroup
from .heartbeat import Initialization
from .records import epoch_record, state_partitions_record
from .state_partitions import StatePartitions, TopicOfState

NO_PARTITION_TEXT = "there is no such topic or partition"

# Partitions by topic id.
Partitions = Mapping[bytes, Iterable[int]]


class Altered(NamedTuple):
    """The results by topic, and the state to create."""

    topics: list[AlterShareGroupOffsetsResponseTopic]
    initialization: Initialization


class Deletion(NamedTuple):
    """The topics that have no offsets to delete, and the state to delete of the others."""

    without_offsets: list[DeleteShareGroupOffsetsResponseTopic]
    partitions: Partitions


def alter(
    group: ShareGroup,
    wanted: Iterable[AlterShareGroupOffsetsRequestTopic],
    topics: ClusterTopics,
    now: Now,
    step: Step,
) -> Outcome[DraftResult[Altered]]:
    """Begin to set start offsets. Raises ApiError NON_EMPTY_GROUP.

    Of a topic that is named again all partitions count, and only those that exist. In Kafka the
    last entry decides which count. A partition -1 is never initialized there, and a topic without
    one is: so its partitions begin at offset 0.
    """
    group.check_deletable()
    draft = Draft(group, now, epoch_record)
    results: list[AlterShareGroupOffsetsResponseTopic] = []
    starts: dict[tuple[bytes, str], dict[int, int]] = {}
    for topic in stepping(wanted, step):
        topic_id = topics.id_of(topic.topic_name)
        count = 0 if topic_id is None else topics.partition_count(topic_id)
        existing = {
            partition.partition_index: partition.start_offset
            for partition in stepping(topic.partitions, step)
            if 0 <= partition.partition_index < count
        }
        results.append(
            AlterShareGroupOffsetsResponseTopic(
                topic_name=topic.topic_name,
                topic_id=topic_id or ZERO_UUID,
                partitions=[
                    altered_partition(
                        partition.partition_index, exists=partition.partition_index in existing
                    )
                    for partition in stepping(topic.partitions, step)
                ],
            )
        )
        if topic_id is not None and existing:
            starts.setdefault((topic_id, topic.topic_name), {}).update(existing)
    initializing: dict[bytes, TopicOfState] = {}
    offsets: dict[tuple[bytes, int], int] = {}
    for (topic_id, name), of_topic in stepping(starts.items(), step):
        initializing[topic_id] = TopicOfState(name, frozenset(of_topic), now.wall_ms)
        offsets |= {(topic_id, partition): offset for partition, offset in of_topic.items()}
    if initializing:
        # A deletion that was not completed may have left states of a topic's other partitions.
        whole = {
            topic_id: topic._replace(partitions=frozenset(range(topics.partition_count(topic_id))))
            for topic_id, topic in initializing.items()
            if topic_id in group.state_partitions.deleting
        }
        state = group.state_partitions.with_initializing({**initializing, **whole})
        draft.records.append(state_partitions_record(group.group_id, state, topics.name_of))
    initialization = Initialization(group.group_id, group.epoch, initializing, offsets)
    return draft.outcome(Altered(results, initialization))


def altered_partition(partition: int, *, exists: bool) -> AlterShareGroupOffsetsResponsePartition:
    """Make the result of a partition, which exists or not."""
    error = ErrorCode.NONE if exists else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return AlterShareGroupOffsetsResponsePartition(
        partition_index=partition,
        error_code=error,
        error_message=None if exists else NO_PARTITION_TEXT,
    )


def begin_deletion(
    group: ShareGroup,
    wanted: Iterable[DeleteShareGroupOffsetsRequestTopic],
    topics: ClusterTopics,
    now: Now,
    step: Step,
) -> Outcome[DraftResult[Deletion]]:
    """Begin to delete the start offsets of topics. Raises ApiError NON_EMPTY_GROUP."""
    group.check_deletable()
    draft = Draft(group, now, epoch_record)
    without_offsets: list[DeleteShareGroupOffsetsResponseTopic] = []
    partitions: dict[bytes, Iterable[int]] = {}
    if not group.has_state_record:
        return draft.outcome(Deletion(without_offsets, partitions))
    state = group.state_partitions
    for topic in stepping(wanted, step):
        topic_id = topics.id_of(topic.topic_name)
        if topic_id is None:
            without_offsets.append(_not_deleted(topic.topic_name, NO_PARTITION_TEXT))
        elif topic_id in state.initialized:
            partitions[topic_id] = sorted(state.initialized[topic_id].partitions)
        elif topic_id in state.deleting:  # an earlier deletion was not completed
            partitions[topic_id] = range(topics.partition_count(topic_id))
        else:
            without_offsets.append(
                _not_deleted(topic.topic_name, "the group has no offsets in the topic")
            )
    state = state.with_deleting(partitions)
    draft.records.append(state_partitions_record(group.group_id, state, topics.name_of))
    return draft.outcome(Deletion(without_offsets, partitions))


def complete_deletion(
    group: ShareGroup, topic_ids: Sequence[bytes], topics: ClusterTopics, now: Now
) -> Outcome[DraftResult[None]]:
    """The state of these topics has been deleted."""
    draft = Draft(group, now, epoch_record)
    state = group.state_partitions.without_deleting(topic_ids)
    draft.records.append(state_partitions_record(group.group_id, state, topics.name_of))
    return draft.outcome(None)


def begin_group_deletion(
    group: ShareGroup, topics: ClusterTopics, now: Now
) -> Outcome[DraftResult[Partitions]]:
    """Begin to delete the state of all topics, with which the group can be deleted.

    A topic whose deletion was not completed is deleted again. Those that do not exist any more have
    no state. Raises ApiError NON_EMPTY_GROUP.
    """
    group.check_deletable()
    draft = Draft(group, now, epoch_record)
    partitions: dict[bytes, Iterable[int]] = {}
    if group.has_state_record:
        state = group.state_partitions.without_topics(
            topics.missing_of(group.state_partitions.topic_ids())
        )
        stored = state.stored()
        partitions = {topic_id: sorted(topic.partitions) for topic_id, topic in stored.items()}
        for topic_id in state.deleting:
            partitions[topic_id] = range(topics.partition_count(topic_id))
        deleting = StatePartitions(deleting=frozenset(partitions))
        draft.records.append(state_partitions_record(group.group_id, deleting, topics.name_of))
    return draft.outcome(partitions)


def _not_deleted(name: str, text: str) -> DeleteShareGroupOffsetsResponseTopic:
    return DeleteShareGroupOffsetsResponseTopic(
        topic_name=name,
        topic_id=ZERO_UUID,
        error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        error_message=text,
    )
