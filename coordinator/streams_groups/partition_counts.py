"""The number of partitions of each internal topic of a topology.

    repartition topics   as the topology says; else the largest number among the topics that the
                         writing subtopology reads, of those that are known by then. They may
                         depend on each other, so Kafka goes through all sinks until all are known
    co-partitioned       topics that are joined by key must have the same number: source topics
                         determine that of the repartition topics, or the fixed ones that of the
                         others, or the largest is used
    changelog topics     the number of tasks of their subtopology

What a topic gets depends on the order in which the subtopologies are passed: Kafka's is that of a
HashMap. An existing topic keeps its number. The time is linear in the size of the topology, which a
client sends. Kafka: RepartitionTopics, CopartitionedTopicsEnforcer, ChangelogTopics.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from heapq import heappop, heappush

from odradek.coordinator.runtime.steps import Step, no_step, stepping
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.records.streams_group import CopartitionGroup, Subtopology, TopicInfo

from .status import Status, StatusCode
from .topology import names_of, read_topics


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
    subtopologies: Sequence[Subtopology],
    joined: Iterable[frozenset[str]],
    existing: Callable[[str], int | None],
    step: Step = no_step,
) -> PartitionCounts:
    """Decide about all internal topics. The source topics exist.

    `subtopologies` are in Kafka's order (Topology.in_hash_order), `joined` what
    `copartitioned_topics` has returned of them. Raises TopicsProblem
    INCORRECTLY_PARTITIONED_TOPICS; ApiError: STREAMS_INVALID_TOPOLOGY, UNKNOWN_SERVER_ERROR.
    """
    counts = PartitionCounts(existing)
    infos = list(stepping(_repartition_infos(subtopologies), step))
    counts.decided |= _repartition_topics(subtopologies, infos, existing, step)
    copartitioning = _Copartitioning(infos, counts)
    for group in stepping(joined, step):
        copartitioning.decide(group)
    for subtopology in subtopologies:
        task_count = counts.of_tasks(subtopology)
        counts.decided |= dict.fromkeys(names_of(subtopology.state_changelog_topics), task_count)
    return counts


def _invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.STREAMS_INVALID_TOPOLOGY, message)


def _repartition_infos(subtopologies: Iterable[Subtopology]) -> Iterator[TopicInfo]:
    return (
        topic for subtopology in subtopologies for topic in subtopology.repartition_source_topics
    )


# -- repartition topics ----------------------------------------------------------------------------


def _repartition_topics(
    subtopologies: Sequence[Subtopology],
    infos: Sequence[TopicInfo],
    existing: Callable[[str], int | None],
    step: Step,
) -> dict[str, int]:
    known = {topic.name: topic.partitions for topic in infos if topic.partitions}
    _decide_sinks(subtopologies, known, existing, step)
    for topic in infos:
        if topic.name not in known:
            raise _invalid(f"no subtopology writes to the repartition topic {topic.name}")
    return known


class _Writer:
    """A subtopology that writes repartition topics: its sinks, by their place among all sinks."""

    __slots__ = ("largest", "sinks")

    def __init__(self, first_place: int, sinks: Sequence[str], known: Iterable[int | None]) -> None:
        self.sinks = range(first_place, first_place + len(sinks))
        self.largest = max((count for count in known if count is not None), default=None)
        """The largest number of partitions that is known of a topic that it reads."""


def _decide_sinks(
    subtopologies: Sequence[Subtopology],
    known: dict[str, int],
    existing: Callable[[str], int | None],
    step: Step,
) -> None:
    """Decide about all topics that subtopologies write, and add them to `known`.

    Kafka passes over all sinks, and again over those that could not be decided. A sink is decided
    when it is passed and a topic that its subtopology reads is known. Here only these visits are
    made, in the same order: by the number of the pass, and the place among the sinks.
    """
    sinks = [sink for subtopology in subtopologies for sink in subtopology.repartition_sink_topics]
    writers: list[_Writer] = []
    readers: dict[str, list[_Writer]] = {}
    writer_of: list[_Writer] = []  # by place
    for subtopology in stepping(subtopologies, step):
        sources = [*map(existing, subtopology.source_topics)]
        reads = [*names_of(subtopology.repartition_source_topics)]
        own = subtopology.repartition_sink_topics
        writer = _Writer(len(writer_of), own, [*map(known.get, reads), *sources])
        writers.append(writer)
        writer_of += [writer] * len(own)
        for name in reads:
            readers.setdefault(name, []).append(writer)
    visits = [
        (0, place) for writer in writers if writer.largest is not None for place in writer.sinks
    ]
    while visits:
        step()
        number, place = heappop(visits)
        name, count = sinks[place], writer_of[place].largest
        assert count is not None, "a sink is visited when a topic that its writer reads is known"
        if name in known:
            continue
        known[name] = count
        for reader in readers.get(name, ()):
            if reader.largest is None:
                reader.largest = count
                for later in reader.sinks:
                    heappush(visits, (number + (later < place), later))
            reader.largest = max(count, reader.largest)
    if any(sink not in known for sink in sinks):
        raise _invalid("repartition topics depend on each other: there is a loop")


# -- topics that are joined ------------------------------------------------------------------------


def copartitioned_topics(subtopologies: Iterable[Subtopology], step: Step) -> list[frozenset[str]]:
    """Return the topics of each co-partition group.

    Raises ApiError UNKNOWN_SERVER_ERROR for an index out of range.
    """
    return [
        group
        for subtopology in stepping(subtopologies, step)
        for group in _copartitioned(subtopology, step)
    ]


def _copartitioned(subtopology: Subtopology, step: Step) -> Iterator[frozenset[str]]:
    repartition = list(names_of(subtopology.repartition_source_topics))
    for group in stepping(subtopology.copartition_groups, step):
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


class _Copartitioning:
    """Gives the repartition topics of groups the number of partitions that each group must have."""

    def __init__(self, infos: Iterable[TopicInfo], counts: PartitionCounts) -> None:
        self._counts = counts
        self._repartition = {topic.name for topic in infos}
        self._fixed = {topic.name for topic in infos if topic.partitions}

    @cached_property
    def _fixed_count(self) -> int:
        """The number of all fixed repartition topics. No group changes it."""
        return _only_count({topic: self._counts.of(topic) for topic in sorted(self._fixed)})

    def decide(self, topics: frozenset[str]) -> None:
        """Decide about the repartition topics of one group. Raises TopicsProblem."""
        if not topics:
            return
        own = {topic: self._counts.of(topic) for topic in sorted(topics)}
        internal = {topic: count for topic, count in own.items() if topic in self._repartition}
        sources = {topic: count for topic, count in own.items() if topic not in self._repartition}
        if sources:
            wanted = _only_count(sources)
        elif self._fixed:
            # All fixed repartition topics of the topology, not only the group's, as in Kafka.
            wanted = self._fixed_count
        else:
            wanted = max(internal.values())
        for topic, count in internal.items():
            if topic in self._fixed and count != wanted:
                raise _incorrect(f"{topic} has {count} partitions, its source topics have {wanted}")
            self._counts.decided[topic] = wanted


def _only_count(counts: Mapping[str, int]) -> int:
    """Return the number that all topics have. Raises TopicsProblem if they differ."""
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{topic}: {count}" for topic, count in counts.items())
        raise _incorrect(f"these topics need the same number of partitions: {listed}")
    return next(iter(counts.values()))


def _incorrect(detail: str) -> TopicsProblem:
    return TopicsProblem(StatusCode.INCORRECTLY_PARTITIONED_TOPICS, detail)
