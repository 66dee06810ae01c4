"""The topics: a list, and what creates one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Literal

from msgspec import field

from odradek.broker.console.calls import Call
from odradek.broker.console.config_words import source_name
from odradek.broker.console.endpoints import Endpoint
from odradek.broker.console.paging import PageRequest
from odradek.broker.console.refusals import check_code
from odradek.broker.console.sorted_topics import PART
from odradek.broker.console.view import View
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.coordinator.metadata.topics import Topic
from odradek.protocol.messages.create_topics import (
    CreateTopicsConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
    CreateTopicsTopic,
)
from odradek.protocol.primitives import uuid_text
from odradek.storage.log import PartitionLog

EVERY_S = 2.0
MANY_LOGS = 50  # of a topic take so long that others are served in between
BROKER_DEFAULT = -1  # the number of partitions or replicas that the broker's settings say


class TopicsRequest(PageRequest):
    """`internal`: Kafka's own topics too. The numbers are sorted from the smallest on."""

    internal: bool = False
    sort: Literal["name", "size", "records", "partitions", "messagesIn"] = "name"
    descending: bool = False


class TopicSummary(View):
    """A topic of the list.

    `records` counts the offsets from the log start to the end. Where compaction or transactions
    have removed or added some, there are fewer records. `messages_in` to `bytes_out` count since
    the broker's start. `offline_partitions` are not served now. `cleanup_policy` is that of
    retention and compaction, such as `delete`; null if the client may not DESCRIBE_CONFIGS on the
    topic.
    """

    name: str
    topic_id: str
    is_internal: bool
    partitions: int
    replication_factor: int
    size_bytes: int
    records: int
    cleanup_policy: str | None
    messages_in: int
    bytes_in: int
    bytes_out: int
    offline_partitions: int


class TopicList(View):
    """A page of the topics; `total` is how many there are without paging."""

    total: int
    topics: list[TopicSummary]


class NewTopicRequest(View):
    """A topic to create; what is left out has the broker's default.

    `validate_only`: it is checked, and not created.
    """

    name: str
    partitions: int | None = None
    replication_factor: int | None = None
    config: dict[str, str] = field(default_factory=dict)
    validate_only: bool = False


class NewTopicConfig(View):
    """A setting of a new topic, and where its value is from."""

    name: str
    value: str | None
    source: str


class NewTopicResult(View):
    """A topic that was created or validated.

    A client that may not describe the topic's settings does not learn the numbers.
    """

    name: str
    topic_id: str | None
    partitions: int | None
    replication_factor: int | None
    config: list[NewTopicConfig]


def topics(call: Call, request: TopicsRequest) -> TopicList:
    """Make a page. Has the topics that the client may describe."""
    names = call.topics.matching(call.slices, request.search, internal=request.internal)
    if call.authorizer.has_rules:
        names = [
            name
            for name in call.sliced(names)
            if call.may(AclOperation.DESCRIBE, ResourceType.TOPIC, name)
        ]
    known = call.observed.broker.metadata.topics
    if request.sort != "name":
        names = _ordered(call, names, request.sort)
    if request.descending:
        names.reverse()
    page = (known.get(name) for name in names[request.first : request.first + request.limit])
    return TopicList(
        total=len(names),
        topics=[_summary(call, topic) for topic in call.sliced(page) if topic is not None],
    )


def _ordered(call: Call, names: list[str], by: str) -> list[str]:
    """The names in the order of a number of the topics, the smallest first."""
    measure, clock = partial(_MEASURES[by], call), call.observed.broker.clock
    order = call.topics.ordered(call.slices, by, measure, clock.timer_ms())
    wanted = frozenset(names)
    found: list[str] = []
    for start in range(0, len(order), PART):
        call.slices.step()
        found += [name for name in order[start : start + PART] if name in wanted]
    return found


def logs_of(call: Call, topic: str) -> Iterable[PartitionLog]:
    """The open logs of a topic."""
    logs = call.observed.broker.log_manager.of_topic(topic).values()
    return call.sliced(logs) if len(logs) > MANY_LOGS else tuple(logs)


def size_bytes(logs: Iterable[PartitionLog]) -> int:
    """The bytes of the segments of logs."""
    return sum([log.size_bytes for log in logs])


def _records(logs: Iterable[PartitionLog]) -> int:
    return sum([log.log_end_offset - log.log_start_offset for log in logs])


def _partition_count(call: Call, topic: str) -> int:
    known = call.observed.broker.metadata.topics.get(topic)
    return 0 if known is None else len(known.partitions)


def _messages_in(call: Call, topic: str) -> int:
    traffic = call.observed.traffic
    traffic.count_appends(logs_of(call, topic))
    counts = traffic.topics.get(topic)
    return 0 if counts is None else counts.messages_in


# The number by which topics are sorted.
_MEASURES: Mapping[str, Callable[[Call, str], int]] = MappingProxyType(
    {
        "size": lambda call, topic: size_bytes(logs_of(call, topic)),
        "records": lambda call, topic: _records(logs_of(call, topic)),
        "partitions": _partition_count,
        "messagesIn": _messages_in,
    }
)


def _summary(call: Call, topic: Topic) -> TopicSummary:
    broker, traffic = call.observed.broker, call.observed.traffic
    logs = list(logs_of(call, topic.name))
    traffic.count_appends(call.sliced(logs))
    counts = traffic.topics.get(topic.name)
    stored = broker.metadata.configs.of_topic(topic.name)
    config = logs[0].config if logs else broker.config.stored_topic_config(stored)
    may_see = call.may_see_settings(ResourceType.TOPIC, topic.name)
    return TopicSummary(
        name=topic.name,
        topic_id=uuid_text(topic.id),
        is_internal=topic.is_internal,
        partitions=len(topic.partitions),
        replication_factor=topic.replication_factor,
        size_bytes=size_bytes(call.sliced(logs)),
        records=_records(call.sliced(logs)),
        cleanup_policy=",".join(config.cleanup_policy) if may_see else None,
        messages_in=counts.messages_in if counts else 0,
        bytes_in=counts.bytes_in if counts else 0,
        bytes_out=counts.bytes_out if counts else 0,
        offline_partitions=len(topic.partitions) - sum(log.is_online for log in logs),
    )


async def create_topic(call: Call, request: NewTopicRequest) -> NewTopicResult:
    """Create a topic, or only validate it. Raises ApiError."""
    wanted = CreateTopicsTopic(
        name=request.name,
        num_partitions=BROKER_DEFAULT if request.partitions is None else request.partitions,
        replication_factor=(
            BROKER_DEFAULT if request.replication_factor is None else request.replication_factor
        ),
        assignments=[],
        configs=[
            CreateTopicsConfig(name=name, value=text) for name, text in request.config.items()
        ],
    )
    answer = await call.ask(
        CreateTopicsRequest(topics=[wanted], validate_only=request.validate_only),
        CreateTopicsResponse,
    )
    (result,) = answer.topics
    check_code(result.error_code, result.error_message)
    return NewTopicResult(
        name=result.name,
        topic_id=None if request.validate_only else uuid_text(result.topic_id),
        partitions=None if result.num_partitions < 0 else result.num_partitions,
        replication_factor=None if result.replication_factor < 0 else result.replication_factor,
        config=[
            NewTopicConfig(name=each.name, value=each.value, source=source_name(each.config_source))
            for each in call.sliced(result.configs or [])
        ],
    )


ENDPOINTS = (
    Endpoint(
        method="GET",
        template="/topics",
        summary="The topics, with their sizes and counts.",
        handle=topics,
        request=TopicsRequest,
        response=TopicList,
        every_s=EVERY_S,
    ),
    Endpoint(
        method="POST",
        template="/topics",
        summary="Create a topic, or only validate it.",
        handle=create_topic,
        request=NewTopicRequest,
        response=NewTopicResult,
    ),
)
