"""Computes the records that change leaders: at start, and for ElectLeaders requests.

There is one broker, so a partition is led by it or has no leader. A clean election takes a replica
from the ISR; if that is empty, an eligible leader replica (KIP-966; Kafka leaves partitions in this
state when it stops), or else the last known leader. Only the last two change the ISR.

At start the broker becomes the leader of the partitions that it can lead. One that it already leads
gets a new leader epoch only after an unclean shutdown: then the end of its log may be lost, and
consumers detect that by the epoch (KIP-320). A partition in a directory that is offline has no
leader, and none can be elected until the directory is back.

The records are not atomic, because there may be one for each partition. A field of a
PartitionChangeRecord that is None does not change.

Kafka: PartitionChangeBuilder, LeaderAcceptor, ReplicationControlManager.electLeader.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum

from odradek.coordinator.runtime.outcome import JournalRecord, Outcome
from odradek.coordinator.runtime.steps import Step, stepping, stepping_if_many
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.records.cluster_metadata import PartitionChangeRecord
from odradek.storage.topic_partition import TopicPartition

from .broker_registration import has_online
from .cluster_metadata import ClusterMetadata
from .log_directories import leader_lost, placed_in
from .topics import NO_LEADER, NO_RECOVERY_CHANGE, LeaderRecoveryState, Partition, Topic


class ElectionType(IntEnum):
    """On the wire: never renumber."""

    PREFERRED = 0
    UNCLEAN = 1


def take_over(
    metadata: ClusterMetadata,
    node_id: int,
    *,
    clean_shutdown: bool,
    directory_of: Mapping[TopicPartition, bytes],
) -> Outcome[list[TopicPartition]]:
    """Make the broker, at its start, the leader of every partition that has a replica here.

    `directory_of`: the directory.id of each log that was found. The broker must have registered
    with the directories that are online. A log that was not found is in another directory, if the
    metadata names one. The reply lists the partitions that have no leader.
    """
    records: list[JournalRecord] = []
    leaderless: list[TopicPartition] = []
    for topic in metadata.topics.values():
        for partition in topic.partitions.values():
            directory_id = directory_of.get(TopicPartition(topic.name, partition.index))
            if _is_in_offline_directory(metadata, partition, node_id, directory_id):
                change = _change_while_offline(metadata, topic, partition, node_id)
            else:
                change = _change_at_start(
                    topic, partition, node_id, directory_id, not clean_shutdown
                )
            if change is not None:
                records.append(metadata.features.versioned(change))
            if (partition if change is None else partition.changed_by(change)).leader != node_id:
                leaderless.append(TopicPartition(topic.name, partition.index))
    return Outcome(reply=leaderless, records=tuple(records), atomic=False)


def _change_at_start(
    topic: Topic, partition: Partition, node_id: int, directory_id: bytes | None, bump_epoch: bool
) -> PartitionChangeRecord | None:
    change = None
    if partition.leader != node_id or bump_epoch:
        change = _election(topic, partition, node_id, unclean=False)
        if change is None and partition.leader not in (node_id, NO_LEADER):
            # It was led by another broker, which does not exist any more.
            change = PartitionChangeRecord(
                partition_id=partition.index, topic_id=topic.id, leader=NO_LEADER
            )
    if directory_id is None or partition.directory_of(node_id) in (directory_id, None):
        return change
    if change is None:
        change = PartitionChangeRecord(partition_id=partition.index, topic_id=topic.id)
    return placed_in(change, partition, node_id, directory_id)


def _change_while_offline(
    metadata: ClusterMetadata, topic: Topic, partition: Partition, node_id: int
) -> PartitionChangeRecord | None:
    """Return the change of a partition whose log is in an offline directory.

    If another broker led it, the metadata keeps that leader until the directory is back. Clients
    see none, because the partition is not served.
    """
    if partition.leader != node_id:
        return None
    return leader_lost(metadata, topic, partition, node_id)


def _is_in_offline_directory(
    metadata: ClusterMetadata,
    partition: Partition,
    node_id: int,
    directory_id: bytes | None,
) -> bool:
    """Whether the log is in a directory that is offline, or not in `log.dirs` any more."""
    if directory_id is None:
        directory_id = partition.directory_of(node_id)
    return not _is_online(metadata, node_id, directory_id)


def _is_online(metadata: ClusterMetadata, node_id: int, directory_id: bytes | None) -> bool:
    registration = metadata.brokers.get(node_id)
    return registration is None or has_online(registration, directory_id)


def elect_leaders(
    metadata: ClusterMetadata,
    node_id: int,
    election: ElectionType,
    wanted: Sequence[TopicPartition],
) -> Outcome[dict[TopicPartition, ApiError | None]]:
    """Elect the leaders of the partitions `wanted`. The reply has the error of each refusal."""
    records: list[JournalRecord] = []
    reply: dict[TopicPartition, ApiError | None] = {}
    for name, index in wanted:
        try:
            change = _elect(metadata, node_id, election, name, index)
        except ApiError as refusal:
            reply[TopicPartition(name, index)] = refusal.with_traceback(None)
        else:
            records.append(metadata.features.versioned(change))
            reply[TopicPartition(name, index)] = None
    return Outcome(reply=reply, records=tuple(records), atomic=False)


def lead_again(
    metadata: ClusterMetadata, node_id: int, partitions: Iterable[TopicPartition]
) -> Outcome[None]:
    """Give partitions new leader epochs, because nodes of a played cluster lead them now."""
    records = tuple(
        metadata.features.versioned(
            PartitionChangeRecord(partition_id=index, topic_id=topic.id, leader=node_id)
        )
        for name, index in partitions
        if (topic := metadata.topics.get(name)) is not None and index in topic.partitions
    )
    return Outcome(reply=None, records=records, atomic=False)


def all_partitions(metadata: ClusterMetadata, step: Step) -> list[TopicPartition]:
    """The partitions of all topics."""
    return [
        TopicPartition(topic.name, index)
        for topic in stepping(metadata.topics.values(), step)
        for index in stepping_if_many(topic.partitions, step)
    ]


def without_needless(
    reply: Mapping[TopicPartition, ApiError | None],
) -> dict[TopicPartition, ApiError | None]:
    """A reply without the partitions that need no election, or have just been deleted."""
    left_out = (ErrorCode.ELECTION_NOT_NEEDED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return {
        partition: error
        for partition, error in reply.items()
        if error is None or error.code not in left_out
    }


def _elect(
    metadata: ClusterMetadata, node_id: int, election: ElectionType, name: str, index: int
) -> PartitionChangeRecord:
    topic = metadata.topics.get(name)
    partition = None if topic is None else topic.partitions.get(index)
    if topic is None or partition is None:
        text = (
            f"No such topic as {name}" if topic is None else f"No such partition as {name}-{index}"
        )
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
    preferred = election is ElectionType.PREFERRED
    if partition.leader == (partition.replicas[0] if preferred else node_id):
        raise ApiError(
            ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition."
        )
    change = None
    may_lead = not preferred or partition.replicas[0] == node_id
    if may_lead and _is_online(metadata, node_id, partition.directory_of(node_id)):
        change = _election(topic, partition, node_id, unclean=not preferred)
    if change is None and preferred:
        text = f"The preferred leader, broker {partition.replicas[0]}, was not available."
        raise ApiError(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, text)
    if change is None:
        text = "Eligible topic partition leaders are not available."
        raise ApiError(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, text)
    return change


def _election(
    topic: Topic, partition: Partition, node_id: int, *, unclean: bool
) -> PartitionChangeRecord | None:
    """Return the change that makes `node_id` the leader; None if it must not lead."""
    if node_id not in partition.replicas:
        return None
    eligible = partition.isr or partition.eligible_leader_replicas or partition.last_known_elr
    if node_id not in eligible and not unclean:
        return None
    remaining = [node for node in partition.eligible_leader_replicas if node != node_id]
    recovered = partition.recovery_state == LeaderRecoveryState.RECOVERED
    return PartitionChangeRecord(
        partition_id=partition.index,
        topic_id=topic.id,
        leader=node_id,
        isr=None if partition.isr == (node_id,) else [node_id],
        eligible_leader_replicas=remaining if partition.eligible_leader_replicas else None,
        last_known_elr=[] if partition.last_known_elr else None,
        # There is no other replica to recover from, so the elected leader has recovered.
        leader_recovery_state=NO_RECOVERY_CHANGE if recovered else LeaderRecoveryState.RECOVERED,
    )
