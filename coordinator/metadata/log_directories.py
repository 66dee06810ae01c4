"""Computes the records of log directories: which are online, which get no new partitions.

A broker's registration lists the directories that are online. One that fails is removed from it,
and its partitions have no leader from then on. With KIP-966 (eligible leader replicas) their ISR
becomes empty, and its former members stay eligible. Without it the ISR stays as it was. When the
directory is back at a later start, the broker registers it again and leads the partitions.

In a PartitionChangeRecord a field that is None does not change.

In Kafka brokers report both by heartbeats: ReplicationControlManager's handleDirectoriesOffline and
handleDirectoriesCordoned, PartitionChangeBuilder, DirectoryId.
"""

from collections.abc import Collection, Mapping, Sequence

from odradek.coordinator.runtime.outcome import JournalRecord, Outcome
from odradek.protocol.records.cluster_metadata import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
)
from odradek.protocol.schema import replace
from odradek.storage.topic_partition import TopicPartition

from .cluster_metadata import ClusterMetadata
from .features import ELR_VERSION, FIRST_VERSION_WITH_CORDONED, FIRST_VERSION_WITH_DIRECTORIES
from .topics import NO_LEADER, Partition, Topic

# The lowest version of a BrokerRegistrationChangeRecord that has the field.
VERSION_WITH_LOG_DIRS = 2
VERSION_WITH_CORDONED = 3


def directories_offline(
    metadata: ClusterMetadata,
    node_id: int,
    failed: Collection[bytes],
    directory_of: Mapping[TopicPartition, bytes],
) -> Outcome[list[TopicPartition]]:
    """Record that directories (directory.ids) have failed. The reply: partitions without a leader.

    `directory_of`: where each log is, because the metadata may still name the directory that one
    has left. Nothing is written for directories that are not registered, or where the metadata is
    too old to name directories.
    """
    registration = metadata.brokers[node_id]
    lost = [directory for directory in registration.log_dirs if directory in failed]
    if not lost or metadata.features.metadata_version < FIRST_VERSION_WITH_DIRECTORIES:
        return Outcome(reply=[])
    changes = [
        change
        for topic in metadata.topics.values()
        for partition in topic.partitions.values()
        if (
            change := _change_on_directory_loss(
                metadata, topic, partition, node_id, lost, directory_of
            )
        )
    ]
    leaderless = [
        TopicPartition(metadata.topics.by_id[change.topic_id].name, change.partition_id)
        for change in changes
        if change.leader == NO_LEADER
    ]
    records = [metadata.features.versioned(change) for change in changes]
    change_of_broker = BrokerRegistrationChangeRecord(
        broker_id=node_id,
        broker_epoch=registration.broker_epoch,
        log_dirs=[directory for directory in registration.log_dirs if directory not in lost],
    )
    records.append(JournalRecord(change_of_broker, VERSION_WITH_LOG_DIRS))
    # Not atomic: there may be a record for each partition. A start decides about all of them again.
    return Outcome(reply=leaderless, records=tuple(records), atomic=False)


def _change_on_directory_loss(
    metadata: ClusterMetadata,
    topic: Topic,
    partition: Partition,
    node_id: int,
    lost: Collection[bytes],
    directory_of: Mapping[TopicPartition, bytes],
) -> PartitionChangeRecord | None:
    """Return a partition's change when these directories are lost; None if it has none."""
    recorded = partition.directory_of(node_id)
    actual = directory_of.get(TopicPartition(topic.name, partition.index), recorded)
    if actual in lost and partition.leader == node_id:
        return leader_lost(metadata, topic, partition, node_id)
    if recorded in lost and actual is not None and actual not in lost:
        change = PartitionChangeRecord(partition_id=partition.index, topic_id=topic.id)
        return placed_in(change, partition, node_id, actual)
    return None


def directories_cordoned(
    metadata: ClusterMetadata, node_id: int, cordoned: Sequence[bytes]
) -> Outcome[None]:
    """Record the directories that get no new partitions.

    Nothing is written if the metadata has them already, or is too old to name them.
    """
    registration = metadata.brokers[node_id]
    known = registration.cordoned_log_dirs
    if metadata.features.metadata_version < FIRST_VERSION_WITH_CORDONED:
        return Outcome(reply=None)
    if known is not None and set(known) == set(cordoned):
        return Outcome(reply=None)
    change = BrokerRegistrationChangeRecord(
        broker_id=node_id,
        broker_epoch=registration.broker_epoch,
        cordoned_log_dirs=list(cordoned),
    )
    return Outcome(reply=None, records=(JournalRecord(change, VERSION_WITH_CORDONED),))


def leader_lost(
    metadata: ClusterMetadata, topic: Topic, partition: Partition, node_id: int
) -> PartitionChangeRecord:
    """Return the change that leaves a partition, which `node_id` led, without a leader."""
    change = PartitionChangeRecord(
        partition_id=partition.index, topic_id=topic.id, leader=NO_LEADER
    )
    if not metadata.features.level(ELR_VERSION):  # then a partition keeps none
        forgotten: list[int] | None = [] if partition.eligible_leader_replicas else None
        return replace(change, eligible_leader_replicas=forgotten)
    # The node leaves the in-sync replicas, and becomes an eligible one.
    isr = [node for node in partition.isr if node != node_id]
    eligible = [node for node in partition.eligible_leader_replicas if node not in isr]
    eligible += [node for node in partition.isr if node not in (*isr, *eligible)]
    same = tuple(eligible) == partition.eligible_leader_replicas
    return replace(
        change,
        isr=None if tuple(isr) == partition.isr else isr,
        eligible_leader_replicas=None if same else eligible,
        last_known_elr=None if partition.last_known_elr else [node_id],
    )


def placed_in(
    change: PartitionChangeRecord, partition: Partition, node_id: int, directory_id: bytes
) -> PartitionChangeRecord:
    """Return the change with a new directory of the node's replica."""
    directories = list(partition.directories)
    directories[partition.replicas.index(node_id)] = directory_id
    return replace(change, directories=directories)
