"""Decisions about who leads: at start, and when ElectLeaders asks.

There is one broker, so a partition is led by it or by nobody. A clean election takes a replica from
the ISR, or where that is empty one that KIP-966 calls eligible (a stopped Kafka leaves partitions
so), or the last known leader. Only the last two change the ISR.

At start the broker takes over what it can lead. A partition that it already leads gets a new leader
epoch only after an unclean shutdown: then the end of its log may be gone, and consumers notice that
by the epoch (KIP-320). One that lies in a directory that is offline has no leader, and nobody can
be elected, until the directory is back.

Kafka: PartitionChangeBuilder, LeaderAcceptor, ReplicationControlManager.electLeader.
"""

from collections.abc import Mapping, Sequence
from enum import IntEnum

from odradek.coordinator.outcome import JournalRecord, Outcome
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.records.cluster_metadata import PartitionChangeRecord

from .cluster_metadata import ClusterMetadata
from .log_directories import leader_lost, placed_in
from .topics import NO_LEADER, NO_RECOVERY_CHANGE, LeaderRecoveryState, Partition, Topic

TopicPartition = tuple[str, int]


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
    any_offline: bool = False,
) -> Outcome[list[TopicPartition]]:
    """Lead, from this start on, every partition that has a replica here.

    `directory_of`: the directory.id of the log of each partition that has one on disk; where
    directories are offline, the others' logs may lie there. The reply names partitions that nobody
    leads now. The broker has registered with the directories that are online.
    """
    records: list[JournalRecord] = []
    leaderless: list[TopicPartition] = []
    for topic in metadata.topics.values():
        for partition in topic.partitions.values():
            place = directory_of.get((topic.name, partition.index))
            if _is_out_of_reach(metadata, partition, node_id, place, any_offline):
                change = _change_out_of_reach(metadata, topic, partition, node_id)
            else:
                change = _change_at_start(topic, partition, node_id, place, not clean_shutdown)
            if change is not None:
                records.append(metadata.features.versioned(change))
            if (partition if change is None else partition.changed_by(change)).leader != node_id:
                leaderless.append((topic.name, partition.index))
    return Outcome(reply=leaderless, records=tuple(records), atomic=False)


def _change_at_start(
    topic: Topic, partition: Partition, node_id: int, place: bytes | None, bump_epoch: bool
) -> PartitionChangeRecord | None:
    change = None
    if partition.leader != node_id or bump_epoch:
        change = _election(topic, partition, node_id, unclean=False)
        if change is None and partition.leader not in (node_id, NO_LEADER):
            # Another broker led it, and there is none beside us.
            change = PartitionChangeRecord(
                partition_id=partition.index, topic_id=topic.id, leader=NO_LEADER
            )
    if place is None or partition.directory_of(node_id) in (place, None):
        return change
    if change is None:
        change = PartitionChangeRecord(partition_id=partition.index, topic_id=topic.id)
    return placed_in(change, partition, node_id, place)


def _change_out_of_reach(
    metadata: ClusterMetadata, topic: Topic, partition: Partition, node_id: int
) -> PartitionChangeRecord | None:
    """Its log lies in a directory that is offline."""
    if partition.leader != node_id:
        return None
    return leader_lost(metadata, topic, partition, node_id)


def _is_out_of_reach(
    metadata: ClusterMetadata,
    partition: Partition,
    node_id: int,
    place: bytes | None,
    any_offline: bool,
) -> bool:
    """Whether the log lies in a directory that is offline, as far as one can know."""
    if place is None:
        return any_offline and not _is_online(metadata, node_id, partition.directory_of(node_id))
    return not _is_online(metadata, node_id, place)


def _is_online(metadata: ClusterMetadata, node_id: int, directory_id: bytes | None) -> bool:
    registration = metadata.brokers.get(node_id)
    return registration is None or registration.has_online(directory_id)


def elect_leaders(
    metadata: ClusterMetadata,
    node_id: int,
    election: ElectionType,
    wanted: Sequence[TopicPartition] | None,
) -> Outcome[dict[TopicPartition, ApiError | None]]:
    """Elect leaders of the partitions `wanted`, or say why not.

    None stands for all partitions; then the reply leaves out those that need no election.
    """
    everything = wanted is None
    if wanted is None:
        wanted = [
            (topic.name, partition.index)
            for topic in metadata.topics.values()
            for partition in topic.partitions.values()
        ]
    records: list[JournalRecord] = []
    reply: dict[TopicPartition, ApiError | None] = {}
    for name, index in wanted:
        try:
            change = _elect(metadata, node_id, election, name, index)
        except ApiError as refusal:
            if not (everything and refusal.code is ErrorCode.ELECTION_NOT_NEEDED):
                reply[name, index] = refusal
        else:
            records.append(metadata.features.versioned(change))
            reply[name, index] = None
    return Outcome(reply=reply, records=tuple(records), atomic=False)


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
    """The change that makes `node_id` the leader; None where it must not be."""
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
        # There is no other replica to learn from: who is elected has nothing left to recover.
        leader_recovery_state=NO_RECOVERY_CHANGE if recovered else LeaderRecoveryState.RECOVERED,
    )
