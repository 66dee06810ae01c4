"""The number of partitions of each internal topic of a topology.

    repartition topics   as the topology says; else the largest number among the topics that the
                         writing subtopology reads. They may depend on each other, so this repeats
                         until all are known
    co-partitioned       topics that are joined by key must have the same number: source topics
                         determine that of the repartition topics, or the fixed ones that of the
                         others, or the largest is used
    changelog topics     the number of tasks of their subtopology

An existing topic keeps its number. Kafka: RepartitionTopics, CopartitionedTopicsEnforcer,
ChangelogTopics.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.records.streams_group import CopartitionGroup, Subtopology, TopicInfo

from .status import Status, StatusCode
from .topology import Topology, names_of, read_topics


class TopicsProblem(Exception):  # noqa: N818 # it is a status of the group, not an error
    """The topics do not allow the topology to run; `status` tells the members why."""

    def __init__(self, code: StatusCode, detail: str) -> None:
        super().__init__(detail)
        self.status = Status(code, detail)


class PartitionCounts:
    """Existing topics, and the decisions about internal ones."""

    def __init__(self, existing: Callable[[str], int | None]) -> None:
        """`existing` returns the number of partitions of a topic; None if it does not exist."""
        self.existing = existing
        self.decided: dict[str, int] = {}

    def of(self, topic: str) -> int:
        """Return a topic's number of partitions. Raises ApiError UNKNOWN_SERVER_ERROR."""
        found = self.existing(topic)
        if found is None:
            found = self.decided.get(topic)
        if found is None:
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, f"nothing decides how large {topic} is")
        return found

    def of_tasks(self, subtopology: Subtopology) -> int:
        """Return the number of tasks: one for each partition of the largest topic that it reads.

        Raises ApiError: STREAMS_INVALID_TOPOLOGY if it reads no topic.
        """
        counts = [self.of(topic) for topic in read_topics(subtopology)]
        if not counts:
            raise _invalid(f"subtopology {subtopology.subtopology_id} has no source topics")
        return max(counts)


def decide_partition_counts(
    topology: Topology, existing: Callable[[str], int | None]
) -> PartitionCounts:
    """Decide about all internal topics. The source topics exist.

    Raises TopicsProblem INCORRECTLY_PARTITIONED_TOPICS; ApiError: STREAMS_INVALID_TOPOLOGY,
    UNKNOWN_SERVER_ERROR.
    """
    subtopologies = list(topology.subtopologies.values())
    joined = [group for one in subtopologies for group in _copartitioned(one)]
    counts = PartitionCounts(existing)
    counts.decided |= _repartition_topics(subtopologies, existing)
    fixed = {topic.name for topic in _repartition_infos(subtopologies) if topic.partitions}
    for group in joined:
        _copartition(group, fixed, {*names_of(_repartition_infos(subtopologies))}, counts)
    for subtopology in subtopologies:
        task_count = counts.of_tasks(subtopology)
        counts.decided |= dict.fromkeys(names_of(subtopology.state_changelog_topics), task_count)
    return counts


def _invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.STREAMS_INVALID_TOPOLOGY, message)


def _repartition_infos(subtopologies: Iterable[Subtopology]) -> Iterator[TopicInfo]:
    return (topic for one in subtopologies for topic in one.repartition_source_topics)


# -- repartition topics ----------------------------------------------------------------------------


def _repartition_topics(
    subtopologies: Sequence[Subtopology], existing: Callable[[str], int | None]
) -> dict[str, int]:
    infos = list(_repartition_infos(subtopologies))
    known = {topic.name: topic.partitions for topic in infos if topic.partitions}
    open_sinks = [
        (subtopology, sink)
        for subtopology in subtopologies
        for sink in subtopology.repartition_sink_topics
    ]
    while open_sinks:
        left = [pair for pair in open_sinks if not _decide_sink(*pair, known, existing)]
        if len(left) == len(open_sinks):
            raise _invalid("repartition topics depend on each other: there is a loop")
        open_sinks = left
    for topic in infos:
        if topic.name not in known:
            raise _invalid(f"no subtopology writes to the repartition topic {topic.name}")
    return known


def _decide_sink(
    subtopology: Subtopology,
    sink: str,
    known: dict[str, int],
    existing: Callable[[str], int | None],
) -> bool:
    """Decide about a topic that a subtopology writes. Returns whether that was possible yet."""
    if sink in known:
        return True
    candidates = [
        *(known.get(name) for name in names_of(subtopology.repartition_source_topics)),
        *(existing(name) for name in subtopology.source_topics),
    ]
    counts = [count for count in candidates if count is not None]
    if counts:
        known[sink] = max(counts)
    return bool(counts)


# -- topics that are joined ------------------------------------------------------------------------


def _copartitioned(subtopology: Subtopology) -> Iterator[frozenset[str]]:
    """Yield the topics of each co-partition group. Raises ApiError for an index out of range."""
    repartition = list(names_of(subtopology.repartition_source_topics))
    for group in subtopology.copartition_groups:
        yield frozenset(_named(group, subtopology.source_topics, repartition))


def _named(
    group: CopartitionGroup, source_topics: Sequence[str], repartition: Sequence[str]
) -> Iterator[str]:
    for indexes, names in (
        (group.source_topics, source_topics),
        (group.repartition_source_topics, repartition),
    ):
        for index in indexes:
            if not 0 <= index < len(names):
                message = f"a co-partition group names topic {index} of {len(names)}"
                raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, message)
            yield names[index]


def _copartition(
    topics: frozenset[str], fixed: set[str], repartition: set[str], counts: PartitionCounts
) -> None:
    """Give the repartition topics of a group the number of partitions that the group must have."""
    if not topics:
        return
    own = {topic: counts.of(topic) for topic in sorted(topics)}
    internal = {topic: count for topic, count in own.items() if topic in repartition}
    sources = {topic: count for topic, count in own.items() if topic not in repartition}
    if sources:
        wanted = _only_count(sources)
    elif fixed:
        # All fixed repartition topics of the topology, not only those of this group, as in Kafka.
        wanted = _only_count({topic: counts.of(topic) for topic in sorted(fixed)})
    else:
        wanted = max(internal.values())
    for topic, count in internal.items():
        if topic in fixed and count != wanted:
            raise _incorrect(f"{topic} has {count} partitions, its source topics have {wanted}")
        counts.decided[topic] = wanted


def _only_count(counts: Mapping[str, int]) -> int:
    """Return the number that all topics have. Raises TopicsProblem if they differ."""
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{topic}: {count}" for topic, count in counts.items())
        raise _incorrect(f"these topics need the same number of partitions: {listed}")
    return next(iter(counts.values()))


def _incorrect(detail: str) -> TopicsProblem:
    return TopicsProblem(StatusCode.INCORRECTLY_PARTITIONED_TOPICS, detail)
