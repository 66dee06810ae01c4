"""Configures a topology: compares it with the cluster's topics.

A configured topology is ready if all its topics exist with the right number of partitions: then
tasks can be assigned. If only internal topics are missing, the result lists them, and the broker
creates them. The configuration is computed again when one of the topics changes. It is not stored.

Kafka: InternalTopicManager, ConfiguredTopology.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from heapq import nsmallest
from itertools import islice

from msgspec import Struct

from odradek.coordinator.runtime.steps import Step, no_step, stepping
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.records.streams_group import Subtopology, TopicInfo

from .partition_counts import (
    PartitionCounts,
    TopicsProblem,
    copartitioned_topics,
    decide_partition_counts,
)
from .status import Status, StatusCode
from .topology import Topology

MAX_NAMES_IN_DETAIL = 3
# A few bytes of a topology make as many tasks as the largest topic has partitions, and each takes
# 5 us to assign. Kafka has no limit but the size of the records, about 130,000 tasks.
MAX_TASKS = 20_000


class InternalTopic(Struct, frozen=True):
    """A repartition or changelog topic. Replication factor 0: the broker's default."""

    name: str
    partition_count: int
    replication_factor: int
    configs: Mapping[str, str]


class ConfiguredSubtopology(Struct, frozen=True):
    """A subtopology with the number of its tasks. Internal topics are by name."""

    task_count: int
    source_topics: frozenset[str]
    repartition_sources: Mapping[str, InternalTopic]
    repartition_sinks: frozenset[str]
    changelogs: Mapping[str, InternalTopic]

    @property
    def is_stateful(self) -> bool:
        return bool(self.changelogs)


class ConfiguredTopology(Struct, frozen=True):
    """The result; `subtopologies` are in the order of their ids, None if they cannot be computed.

    `problem` is the reason why tasks cannot be assigned; None if the topology is ready.
    """

    epoch: int
    subtopologies: Mapping[str, ConfiguredSubtopology] | None
    missing: Mapping[str, InternalTopic]
    problem: Status | None = None

    @property
    def is_ready(self) -> bool:
        return self.problem is None


def configure(
    topology: Topology, existing: Callable[[str], int | None], step: Step = no_step
) -> ConfiguredTopology:
    """Configure a topology.

    `existing` returns the number of partitions of a topic; None if it does not exist. Raises
    ApiError: STREAMS_INVALID_TOPOLOGY, UNKNOWN_SERVER_ERROR.
    """

    @cache  # a topic may change between two steps
    def seen(topic: str) -> int | None:
        return existing(topic)

    def existing_seen(topic: str) -> int | None:
        step()
        return seen(topic)

    in_order = topology.in_hash_order(step)
    joined = copartitioned_topics(in_order, step)  # an index is wrong whatever topics exist
    try:
        _check_sources(topology, existing_seen, step)
        counts = decide_partition_counts(in_order, joined, existing_seen, step)
        subtopologies = {
            subtopology_id: _configured(topology.subtopologies[subtopology_id], counts, step)
            for subtopology_id in sorted(topology.subtopologies)
        }
        _check_task_count(subtopologies.values())
        missing = _missing_topics(subtopologies.values(), existing_seen)
    except TopicsProblem as problem:
        return ConfiguredTopology(topology.epoch, None, {}, problem.status)
    status = None
    if missing:
        detail = f"Internal topics are missing: {_summary(missing, len(missing))}"
        status = Status(StatusCode.MISSING_INTERNAL_TOPICS, detail)
    return ConfiguredTopology(topology.epoch, subtopologies, missing, status)


def _check_sources(topology: Topology, existing: Callable[[str], int | None], step: Step) -> None:
    missing = {
        topic
        for subtopology in topology.subtopologies.values()
        for topic in subtopology.source_topics
        if existing(topic) is None
    }
    if missing:
        first = nsmallest(MAX_NAMES_IN_DETAIL, stepping(missing, step))
        detail = f"Source topics {_summary(first, len(missing))} are missing."
        raise TopicsProblem(StatusCode.MISSING_SOURCE_TOPICS, detail)


def _check_task_count(subtopologies: Iterable[ConfiguredSubtopology]) -> None:
    count = sum(subtopology.task_count for subtopology in subtopologies)
    if count > MAX_TASKS:
        raise ApiError(
            ErrorCode.STREAMS_INVALID_TOPOLOGY,
            f"the topology has {count} tasks, the limit is {MAX_TASKS}",
        )


def _configured(
    subtopology: Subtopology, counts: PartitionCounts, step: Step
) -> ConfiguredSubtopology:
    return ConfiguredSubtopology(
        task_count=counts.of_tasks(subtopology),
        source_topics=frozenset(subtopology.source_topics),
        repartition_sources=_internal_topics(subtopology.repartition_source_topics, counts, step),
        repartition_sinks=frozenset(subtopology.repartition_sink_topics),
        changelogs=_internal_topics(subtopology.state_changelog_topics, counts, step),
    )


def _internal_topics(
    infos: Iterable[TopicInfo], counts: PartitionCounts, step: Step
) -> dict[str, InternalTopic]:
    return {info.name: _internal_topic(info, counts) for info in stepping(infos, step)}


def _internal_topic(info: TopicInfo, counts: PartitionCounts) -> InternalTopic:
    count = info.partitions or counts.decided[info.name]
    if count < 1:
        raise ApiError(
            ErrorCode.UNKNOWN_SERVER_ERROR, f"{info.name} cannot have {count} partitions"
        )
    configs = {config.key: config.value for config in info.topic_configs}
    return InternalTopic(info.name, count, info.replication_factor, configs)


def _missing_topics(
    subtopologies: Iterable[ConfiguredSubtopology], existing: Callable[[str], int | None]
) -> dict[str, InternalTopic]:
    """Return the internal topics to create, by name. Raises TopicsProblem for one of other size."""
    missing: dict[str, InternalTopic] = {}
    for subtopology in subtopologies:
        for topic in (
            *subtopology.repartition_sources.values(),
            *subtopology.changelogs.values(),
        ):
            count = existing(topic.name)
            if count is None:
                missing[topic.name] = topic
            elif count != topic.partition_count:
                detail = f"{topic.name} has {count} partitions, not {topic.partition_count}"
                raise TopicsProblem(StatusCode.INCORRECTLY_PARTITIONED_TOPICS, detail)
    return missing


def _summary(names: Iterable[str], count: int) -> str:
    """Name the first of `count` topics, and count the others."""
    text = ", ".join(islice(names, MAX_NAMES_IN_DETAIL))
    others = count - MAX_NAMES_IN_DETAIL
    return f"{text} and {others} additional topics" if others > 0 else text
