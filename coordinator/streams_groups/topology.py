"""The topology of an application: its subtopologies, and the topics between them.

The first member sends it, and the group stores it (type 23). A subtopology reads source topics,
which the application's users create, and repartition topics, which other subtopologies write. Its
stores have changelog topics. Repartition and changelog topics are internal: the broker creates them
(configuration.py). The topology of a group does not change; a member with an older epoch is told
so, and one with another topology is refused.

Kafka: StreamsTopology.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatSubtopology,
    StreamsGroupHeartbeatTopicInfo,
    StreamsGroupHeartbeatTopology,
)
from odradek.protocol.records.streams_group import (
    CopartitionGroup,
    StreamsGroupTopologyValue,
    Subtopology,
    TopicConfig,
    TopicInfo,
)


class Topology:
    """One topology, immutable."""

    def __init__(self, value: StreamsGroupTopologyValue) -> None:
        """`value` is the record that stores it. Raises ApiError UNKNOWN_SERVER_ERROR."""
        self.value = value
        self.epoch = value.epoch
        self.subtopologies: Mapping[str, Subtopology] = {
            subtopology.subtopology_id: subtopology for subtopology in value.subtopologies
        }
        if len(self.subtopologies) != len(value.subtopologies):
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "a subtopology occurs twice")

    def is_like(self, other: "Topology") -> bool:
        """Whether two topologies have the same epoch and the same subtopologies, in any order."""
        return self.epoch == other.epoch and self.subtopologies == other.subtopologies

    @cached_property
    def required_topics(self) -> frozenset[str]:
        """The topics that must exist before tasks can be assigned."""
        return frozenset(
            name
            for subtopology in self.subtopologies.values()
            for name in (*read_topics(subtopology), *names_of(subtopology.state_changelog_topics))
        )

    @cached_property
    def reader_of(self) -> Mapping[str, str]:
        """The id of the subtopology that reads a topic, by topic name."""
        return {
            name: subtopology.subtopology_id
            for subtopology in self.subtopologies.values()
            for name in read_topics(subtopology)
        }


def names_of(topics: Iterable[TopicInfo]) -> Iterator[str]:
    """Yield the names of internal topics."""
    return (topic.name for topic in topics)


def read_topics(subtopology: Subtopology) -> Iterator[str]:
    """Yield the topics that a subtopology reads: source topics and repartition topics."""
    yield from subtopology.source_topics
    yield from names_of(subtopology.repartition_source_topics)


def topology_value(topology: StreamsGroupHeartbeatTopology) -> StreamsGroupTopologyValue:
    """Return the record that stores the topology of a request."""
    return StreamsGroupTopologyValue(
        epoch=topology.epoch, subtopologies=list(map(_subtopology, topology.subtopologies))
    )


def _subtopology(found: StreamsGroupHeartbeatSubtopology) -> Subtopology:
    return Subtopology(
        subtopology_id=found.subtopology_id,
        source_topics=found.source_topics,
        source_topic_regex=found.source_topic_regex,
        state_changelog_topics=list(map(_topic_info, found.state_changelog_topics)),
        repartition_sink_topics=found.repartition_sink_topics,
        repartition_source_topics=list(map(_topic_info, found.repartition_source_topics)),
        copartition_groups=[
            CopartitionGroup(
                source_topics=group.source_topics,
                source_topic_regex=group.source_topic_regex,
                repartition_source_topics=group.repartition_source_topics,
            )
            for group in found.copartition_groups
        ],
    )


def _topic_info(found: StreamsGroupHeartbeatTopicInfo) -> TopicInfo:
    return TopicInfo(
        name=found.name,
        partitions=found.partitions,
        replication_factor=found.replication_factor,
        topic_configs=[TopicConfig(key=one.key, value=one.value) for one in found.topic_configs],
    )
