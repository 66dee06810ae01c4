"""Computes the records that create topics and partitions.

The checks have Kafka's order, so that a request with several faults gets Kafka's error: name,
collision, existence, configs, then assignment or counts. When one topic of a request is refused,
the others are still created. Kafka: ReplicationControlManager.createTopics and createPartitions.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from operator import attrgetter

from msgspec import Struct, field

from odradek.coordinator.runtime.outcome import JournalRecord, Outcome
from odradek.coordinator.runtime.steps import Step, free, no_step, stepping
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.primitives import random_uuid
from odradek.protocol.records.cluster_metadata import ConfigRecord, TopicRecord
from odradek.storage.topic_names import CLUSTER_METADATA_TOPIC, why_illegal

from .cluster_metadata import ClusterMetadata
from .configs import ConfigResourceType
from .placement import Placer
from .record_limit import MAX_RECORDS, check_record_count, limited_outcome
from .topics import Partition, Topic

MAX_CONFIG_VALUE_LENGTH = 32767
DEFAULT = -1

# Called with the number of partitions before they are created or deleted. Raises ApiError if the
# client may not do that now (KIP-599).
Permits = Callable[[int], object]


def unlimited(_partition_count: int) -> None:
    """Permit everything."""


class NewTopic(Struct, frozen=True, kw_only=True):
    """A topic to create. -1: the default. `assignments` pairs an index with its replicas."""

    name: str
    partition_count: int = DEFAULT
    replication_factor: int = DEFAULT
    assignments: Sequence[tuple[int, Sequence[int]]] = ()
    configs: Mapping[str, str | None] = field(default_factory=dict)


class TopicRules(Struct, frozen=True, kw_only=True):
    """The defaults and checks of new topics, from the broker's configuration and directories.

    `directories`: the directory.id of each log directory that is online. Those that are `cordoned`
    get no new partitions; if all are, only a request with a manual assignment gets them.
    `replica_ids`: the nodes that a request may name, if there are more than this one, and
    `live_ids` those that live. `factor_of` returns the replication factor of a topic, as clients
    see it.
    `check_configs` gets a new topic's overrides and raises INVALID_CONFIG if one is illegal.
    """

    node_id: int
    directories: Sequence[bytes]
    default_partitions: int
    default_replication_factor: int
    check_configs: Callable[[Mapping[str, str]], object]
    cordoned: Collection[bytes] = ()
    replica_ids: Sequence[int] = ()
    live_ids: Collection[int] = ()
    factor_of: Callable[[Topic], int] = attrgetter("replication_factor")

    def partition_count(self, request: NewTopic) -> int:
        """Return the number of partitions that the request asks for."""
        asked = request.partition_count
        return self.default_partitions if asked == DEFAULT else asked

    def replication_factor(self, request: NewTopic) -> int:
        """Return the number of replicas that the request asks for."""
        if request.assignments:
            return len(request.assignments[0][1])
        asked = request.replication_factor
        return self.default_replication_factor if asked == DEFAULT else asked

    def placer(self, metadata: ClusterMetadata, step: Step) -> Placer:
        """Return what places the new partitions of a decision."""
        return Placer(
            metadata,
            self.node_id,
            self.directories,
            self.cordoned,
            step,
            replica_ids=self.replica_ids,
            live_ids=self.live_ids,
        )


class CreatedTopic(Struct, frozen=True, kw_only=True):
    """A topic that was created."""

    name: str
    topic_id: bytes
    partition_count: int
    replication_factor: int


class MorePartitions(Struct, frozen=True, kw_only=True):
    """A topic to give `count` partitions; `assignments`: the replicas of the added ones."""

    name: str
    count: int
    assignments: Sequence[Sequence[int]] | None = None


def create_topics(
    metadata: ClusterMetadata,
    requests: Sequence[NewTopic],
    rules: TopicRules,
    *,
    validate_only: bool = False,
    permits: Permits = unlimited,
    step: Step = no_step,
) -> Outcome[dict[str, CreatedTopic | ApiError]]:
    """Create topics. The reply has an error for each that is refused, as are repeated names.

    Raises POLICY_VIOLATION when the request is too large for one operation.
    """
    repeated = _repeated(requests, step)
    _check_total(stepping(requests, step), rules, repeated)
    placer = rules.placer(metadata, step)
    reply: dict[str, CreatedTopic | ApiError] = {}
    records: list[JournalRecord] = []
    for request in stepping(requests, step):
        try:
            _check_name(metadata, request.name, repeated)
            configs = _checked_configs(request, rules, step)
            partitions = _checked_partitions(request, rules, placer, step)
            permits(len(partitions))
        except ApiError as refusal:
            reply[request.name] = refusal.with_traceback(None)
            continue
        topic = Topic(request.name, random_uuid(), partitions)
        records += _new_topic_records(metadata, topic, configs, step)
        reply[request.name] = CreatedTopic(
            name=topic.name,
            topic_id=topic.id,
            partition_count=len(partitions),
            replication_factor=rules.replication_factor(request),
        )
    return limited_outcome(reply, records, validate_only)


def create_partitions(
    metadata: ClusterMetadata,
    requests: Sequence[MorePartitions],
    rules: TopicRules,
    *,
    validate_only: bool = False,
    permits: Permits = unlimited,
    step: Step = no_step,
) -> Outcome[dict[str, ApiError | None]]:
    """Add partitions to topics. The reply has an error for each topic that is refused.

    Raises POLICY_VIOLATION when the request is too large for one operation.
    """
    placer = rules.placer(metadata, step)
    repeated = _repeated(requests, step)
    reply: dict[str, ApiError | None] = {}
    records: list[JournalRecord] = []
    for request in stepping(requests, step):
        try:
            if request.name in repeated:
                raise ApiError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            topic = metadata.topics.get(request.name)
            if topic is None:
                raise ApiError(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic {request.name}."
                )
            _check_growth(topic, request)
            # As in Kafka, a wrong assignment has taken permits, too.
            permits(request.count - len(topic.partitions))
            _check_added_assignments(topic, request, rules, placer, step)
        except ApiError as refusal:
            reply[request.name] = refusal.with_traceback(None)
            continue
        reply[request.name] = None
        check_record_count(len(records) + request.count - len(topic.partitions))
        records += [
            metadata.features.versioned(placer.new_partition(index).to_record(topic.id))
            for index in stepping(range(len(topic.partitions), request.count), step)
        ]
    return limited_outcome(reply, records, validate_only)


# -- topics ---------------------------------------------------------------------------------------


def _check_total(requests: Iterable[NewTopic], rules: TopicRules, repeated: set[str]) -> None:
    total = 0
    for request in requests:
        if request.name not in repeated and request.name != CLUSTER_METADATA_TOPIC:
            total += len(request.assignments) or max(0, rules.partition_count(request))
    if total > MAX_RECORDS:
        raise ApiError(
            ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request."
        )


def _check_name(metadata: ClusterMetadata, name: str, repeated: set[str]) -> None:
    if name in repeated:
        raise ApiError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    if name == CLUSTER_METADATA_TOPIC:
        raise ApiError(
            ErrorCode.INVALID_REQUEST, f"Creation of internal topic {name} is prohibited."
        )
    if name in metadata.topics:
        raise ApiError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    problem = why_illegal(name)
    if problem:
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {problem}")
    colliding = metadata.topics.colliding_with(name)
    if colliding is not None:
        raise ApiError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"Topic '{name}' collides with existing topic: {colliding}",
        )


def _checked_configs(request: NewTopic, rules: TopicRules, step: Step) -> dict[str, str]:
    configs: dict[str, str] = {}
    nulls: list[str] = []
    for key, value in stepping(iter(request.configs.items()), step):
        if value is None:
            nulls.append(key)
        else:
            configs[key] = value
    if nulls:
        raise ApiError(
            ErrorCode.INVALID_CONFIG,
            f"Null value not supported for topic configs: {','.join(nulls)}",
        )
    for key, value in stepping(iter(configs.items()), step):
        if len(value) > MAX_CONFIG_VALUE_LENGTH:
            raise ApiError(
                ErrorCode.INVALID_CONFIG,
                f"The value of {key} cannot be added because it exceeds the maximum value size "
                f"of {MAX_CONFIG_VALUE_LENGTH} bytes.",
            )
    rules.check_configs(configs)
    return configs


def _checked_partitions(
    request: NewTopic, rules: TopicRules, placer: Placer, step: Step
) -> list[Partition]:
    if request.assignments:
        _check_assignments(request, placer, step)
        return [
            placer.new_partition(index) for index in stepping(range(len(request.assignments)), step)
        ]
    if request.replication_factor < DEFAULT or request.replication_factor == 0:
        raise ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value: "
            f"the replication factor given is {request.replication_factor}.",
        )
    if request.partition_count < DEFAULT or request.partition_count == 0:
        raise ApiError(
            ErrorCode.INVALID_PARTITIONS,
            f"Number of partitions was set to an invalid non-positive value: "
            f"{request.partition_count}.",
        )
    placer.check_replication_factor(rules.replication_factor(request))
    return [
        placer.new_partition(index)
        for index in stepping(range(rules.partition_count(request)), step)
    ]


def _check_assignments(request: NewTopic, placer: Placer, step: Step) -> None:
    if request.replication_factor != DEFAULT or request.partition_count != DEFAULT:
        what = "replication factor" if request.replication_factor != DEFAULT else "numPartitions"
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"A manual partition assignment was specified, but {what} was not set to -1.",
        )
    replication_factor = None
    seen: set[int] = set()
    for index, broker_ids in stepping(request.assignments, step):
        if index in seen:
            raise ApiError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Found multiple manual partition assignments for partition {index}",
            )
        placer.check_assignment(broker_ids, replication_factor, step)
        replication_factor = len(broker_ids)
        seen.add(index)
    if seen != set(range(len(seen))):
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        )


def _new_topic_records(
    metadata: ClusterMetadata, topic: Topic, configs: Mapping[str, str], step: Step
) -> list[JournalRecord]:
    """Return the records of a topic, its configs and its partitions, in Kafka's order."""
    messages = [
        TopicRecord(name=topic.name, topic_id=topic.id),
        *(
            ConfigRecord(
                resource_type=ConfigResourceType.TOPIC,
                resource_name=topic.name,
                name=key,
                value=value,
            )
            for key, value in configs.items()
        ),
        *(partition.to_record(topic.id) for partition in stepping(topic.partitions.values(), step)),
    ]
    return [metadata.features.versioned(message) for message in stepping(messages, step)]


# -- partitions -----------------------------------------------------------------------------------


def _check_growth(topic: Topic, request: MorePartitions) -> None:
    now = len(topic.partitions)
    if request.count == now:
        raise ApiError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {now} partition(s).")
    if request.count < now:
        raise ApiError(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {topic.name} currently has {now} partition(s); "
            f"{request.count} would not be an increase.",
        )
    added = request.count - now
    if added > MAX_RECORDS:
        raise ApiError(
            ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request."
        )
    if request.assignments is not None and len(request.assignments) != added:
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Attempted to add {added} additional partition(s), but only "
            f"{len(request.assignments)} assignment(s) were specified.",
        )


def _check_added_assignments(
    topic: Topic, request: MorePartitions, rules: TopicRules, placer: Placer, step: Step
) -> None:
    replication_factor = rules.factor_of(topic)
    if request.assignments is None:
        placer.check_replication_factor(replication_factor)
        return
    for broker_ids in stepping(request.assignments, step):
        placer.check_assignment(broker_ids, replication_factor, step)


# -- both -----------------------------------------------------------------------------------------


def _repeated(requests: Sequence[NewTopic | MorePartitions], step: Step) -> set[str]:
    """Return the names that more than one of the requests has."""
    counts = Counter(request.name for request in stepping(requests, step))
    repeated = {name for name, times in stepping(iter(counts.items()), step) if times > 1}
    free(step, counts)
    return repeated
