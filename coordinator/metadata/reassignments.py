"""Computes the records of replica placement: on which brokers, and in which directories.

There is one broker, and it has every replica (a directory with others is refused at start). So a
reassignment can only ask for the replicas that exist already: it changes nothing, none is ever in
progress, and none can be cancelled. A replica can move between the broker's directories. When its
log has been copied, the new directory is recorded in the metadata.

Kafka: ReplicationControlManager.alterPartitionReassignments, handleAssignReplicasToDirs.
"""

from collections.abc import Mapping, Sequence

from odradek.coordinator.runtime.outcome import JournalRecord, Outcome
from odradek.coordinator.runtime.steps import Step, no_step
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.records.cluster_metadata import PartitionChangeRecord
from odradek.storage.topic_partition import TopicPartition

from .cluster_metadata import ClusterMetadata
from .features import FIRST_VERSION_WITH_DIRECTORIES
from .log_directories import placed_in
from .placement import check_replicas
from .topics import Partition, Topic


def check_reassignment(
    metadata: ClusterMetadata,
    name: str,
    index: int,
    replicas: Sequence[int] | None,
    *,
    allow_replication_factor_change: bool,
    step: Step = no_step,
) -> None:
    """Refuse an impossible reassignment; any other changes nothing.

    If `replicas` is None, the request cancels a reassignment. Raises UNKNOWN_TOPIC_OR_PARTITION,
    NO_REASSIGNMENT_IN_PROGRESS, INVALID_REPLICA_ASSIGNMENT, INVALID_REPLICATION_FACTOR.
    """
    _, partition = find_partition(metadata, name, index)
    if replicas is None:
        text = "No partition reassignment is in progress."
        raise ApiError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, text)
    check_replicas(metadata.brokers, replicas, step)
    if not allow_replication_factor_change and len(replicas) != len(partition.replicas):
        text = (
            f"The replication factor is changed from {len(partition.replicas)} to {len(replicas)}"
        )
        raise ApiError(ErrorCode.INVALID_REPLICATION_FACTOR, text)


def find_partition(metadata: ClusterMetadata, name: str, index: int) -> tuple[Topic, Partition]:
    """Return a topic and its partition. Raises UNKNOWN_TOPIC_OR_PARTITION."""
    topic = metadata.topics.get(name)
    if topic is None:
        text = f"Unable to find a topic named {name}."
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
    partition = topic.partitions.get(index)
    if partition is None:
        text = f"Unable to find partition {name}:{index}."
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
    return topic, partition


def assign_directory(
    metadata: ClusterMetadata, node_id: int, name: str, index: int, directory_id: bytes
) -> Outcome[None]:
    """Record the directory of the node's replica of a partition.

    Nothing is written if the metadata has it already, or is too old to name directories.
    Raises UNKNOWN_TOPIC_OR_PARTITION.
    """
    topic, partition = find_partition(metadata, name, index)
    change = _assignment(metadata, node_id, topic, partition, directory_id)
    return Outcome(reply=None, records=() if change is None else (change,))


def assign_directories(
    metadata: ClusterMetadata, node_id: int, directory_of: Mapping[TopicPartition, bytes]
) -> Outcome[None]:
    """Record the directories of the node's replicas, by topic name and partition index."""
    changes = [
        _assignment(metadata, node_id, topic, topic.partitions[index], directory_id)
        for (name, index), directory_id in directory_of.items()
        if (topic := metadata.topics.get(name)) and index in topic.partitions
    ]
    records = tuple(change for change in changes if change is not None)
    return Outcome(reply=None, records=records, atomic=False)


def _assignment(
    metadata: ClusterMetadata, node_id: int, topic: Topic, partition: Partition, directory_id: bytes
) -> JournalRecord | None:
    if metadata.features.metadata_version < FIRST_VERSION_WITH_DIRECTORIES:
        return None
    if partition.directory_of(node_id) in (directory_id, None):
        return None
    change = PartitionChangeRecord(partition_id=partition.index, topic_id=topic.id)
    return metadata.features.versioned(placed_in(change, partition, node_id, directory_id))
