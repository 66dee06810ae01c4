"""Which partitions each instance of the application has, by its user endpoint.

An application uses this to forward a query of a store to the instance that has the key. A member
gets it when it does not know the group's endpoint epoch yet, which rises with every change of
tasks. Of a topic with fewer partitions than the subtopology has tasks, only existing partitions
are named; Kafka may name others. Kafka: EndpointToPartitionsManager.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Set

from odradek.coordinator.runtime.steps import Step, no_step, stepping
from odradek.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatEndpoint,
    StreamsGroupHeartbeatEndpointToPartitions,
    StreamsGroupHeartbeatTopicPartition,
)

from .configuration import ConfiguredTopology
from .member import StreamsMember

# Returns the number of partitions of a topic; None if it does not exist.
PartitionCount = Callable[[str], int | None]


def partitions_by_endpoint(
    members: Iterable[StreamsMember],
    topology: ConfiguredTopology,
    partition_count: PartitionCount,
    step: Step = no_step,
) -> list[StreamsGroupHeartbeatEndpointToPartitions]:
    """Return the partitions of each member that has an endpoint.

    While the topology cannot be configured, no partitions are known. Kafka then answers
    UNKNOWN_SERVER_ERROR.
    """
    return [
        StreamsGroupHeartbeatEndpointToPartitions(
            user_endpoint=StreamsGroupHeartbeatEndpoint(
                host=member.user_endpoint.host, port=member.user_endpoint.port
            ),
            active_partitions=list(
                _partitions(
                    {name: epochs.keys() for name, epochs in member.assigned.active.items()},
                    topology,
                    partition_count,
                    step,
                )
            ),
            standby_partitions=list(
                _partitions(member.assigned.standby, topology, partition_count, step)
            ),
        )
        for member in members
        if member.user_endpoint is not None
    ]


def _partitions(
    tasks: Mapping[str, Set[int]],
    topology: ConfiguredTopology,
    partition_count: PartitionCount,
    step: Step,
) -> Iterator[StreamsGroupHeartbeatTopicPartition]:
    subtopologies = topology.subtopologies or {}
    for subtopology_id, partitions in sorted(tasks.items()):
        subtopology = subtopologies.get(subtopology_id)
        if subtopology is None:
            continue
        in_order = sorted(partitions)
        topics = sorted({*subtopology.source_topics, *subtopology.repartition_sources})
        for topic in stepping(topics, step):
            existing = in_order[: bisect_left(in_order, partition_count(topic) or 0)]
            yield StreamsGroupHeartbeatTopicPartition(topic=topic, partitions=existing)
