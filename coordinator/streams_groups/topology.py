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

from odradek.coordinator.java.java_hash import hash_map_order
from odradek.coordinator.runtime.steps import Step, no_step, stepping
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
        self._required_topics: frozenset[str] | None = None

    def in_hash_order(self, step: Step) -> list[Subtopology]:
        """Return the subtopologies in the order of the HashMap in which Kafka keeps them."""
        ids = hash_map_order(self.subtopologies, step=step)
        return [self.subtopologies[subtopology_id] for subtopology_id in ids]

    def is_like(self, other: "Topology", step: Step) -> bool:
        """Whether two topologies have the same epoch and the same subtopologies, in any order."""
        return (
            self.epoch == other.epoch
            and len(self.subtopologies) == len(other.subtopologies)
            and all(
                other.subtopologies.get(subtopology_id) == subtopology
                for subtopology_id, subtopology in stepping(self.subtopologies.items(), step)
            )
        )

    def required_topics(self, step: Step) -> frozenset[str]:
        """The topics that must exist before tasks can be assigned."""
        if self._required_topics is None:
            self._required_topics = frozenset(
                name
                for subtopology in self.subtopologies.values()
                for topics in (
                    read_topics(subtopology),
                    names_of(subtopology.state_changelog_topics),
                )
                for name in stepping(topics, step)
            )
        return self._required_topics

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


def topology_value(
    topology: StreamsGroupHeartbeatTopology, step: Step = no_step
) -> StreamsGroupTopologyValue:
    """Return the record that stores the topology of a request."""
    return StreamsGroupTopologyValue(
        epoch=topology.epoch,
        subtopologies=[
            _subtopology(subtopology, step)
            for subtopology in stepping(topology.subtopologies, step)
        ],
    )


def _subtopology(found: StreamsGroupHeartbeatSubtopology, step: Step) -> Subtopology:
    return Subtopology(
        subtopology_id=found.subtopology_id,
        source_topics=found.source_topics,
        source_topic_regex=found.source_topic_regex,
        state_changelog_topics=_topic_infos(found.state_changelog_topics, step),
        repartition_sink_topics=found.repartition_sink_topics,
        repartition_source_topics=_topic_infos(found.repartition_source_topics, step),
        copartition_groups=[
            CopartitionGroup(
                source_topics=group.source_topics,
                source_topic_regex=group.source_topic_regex,
                repartition_source_topics=group.repartition_source_topics,
            )
            for group in stepping(found.copartition_groups, step)
        ],
    )


def _topic_infos(topics: Iterable[StreamsGroupHeartbeatTopicInfo], step: Step) -> list[TopicInfo]:
    return [
        TopicInfo(
            name=topic.name,
            partitions=topic.partitions,
            replication_factor=topic.replication_factor,
            topic_configs=[
                TopicConfig(key=config.key, value=config.value)
                for config in stepping(topic.topic_configs, step)
            ],
        )
        for topic in stepping(topics, step)
    ]
