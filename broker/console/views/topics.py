"""The topics: a list, and what creates one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal

from msgspec import field

from odradek.broker.console.calls import Call
from odradek.broker.console.config_words import source_name
from odradek.broker.console.endpoints import Endpoint, View
from odradek.broker.console.paging import PageRequest, page_of
from odradek.broker.console.refusals import check_code
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.coordinator.metadata.topics import Topic
from odradek.protocol.messages.create_topics import (
    CreateTopicsConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
    CreateTopicsTopic,
)
from odradek.protocol.primitives import ZERO_UUID, uuid_text
from odradek.storage.log import PartitionLog

EVERY_S = 2.0
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
    retention and compaction, such as `delete`.
    """

    name: str
    topic_id: str
    is_internal: bool
    partitions: int
    replication_factor: int
    size_bytes: int
    records: int
    cleanup_policy: str
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
    found = [
        topic
        for topic in call.sliced(call.observed.broker.metadata.topics.values())
        if (request.internal or not topic.is_internal)
        and request.matches(topic.name)
        and call.may(AclOperation.DESCRIBE, ResourceType.TOPIC, topic.name)
    ]
    if request.sort == "name":
        page = page_of(call, found, _by_name, request, descending=request.descending)
    else:
        measured = [(_measure(call, topic, request.sort), topic.name, topic) for topic in found]
        sign = -1 if request.descending else 1
        page = [
            topic
            for _, _, topic in page_of(
                call, measured, lambda each: (sign * each[0], each[1]), request
            )
        ]
    return TopicList(total=len(found), topics=[_summary(call, each) for each in call.sliced(page)])


def _by_name(topic: Topic) -> str:
    return topic.name


def logs_of(call: Call, topic: str) -> Iterable[PartitionLog]:
    """The open logs of a topic."""
    return call.sliced(call.observed.broker.log_manager.of_topic(topic).values())


def size_bytes(logs: Iterable[PartitionLog]) -> int:
    """The bytes of the segments of logs."""
    return sum(log.size_bytes for log in logs)


def _records(logs: Iterable[PartitionLog]) -> int:
    return sum(log.log_end_offset - log.log_start_offset for log in logs)


def _measure(call: Call, topic: Topic, what: str) -> int:
    """The number by which topics are sorted."""
    if what == "partitions":
        return len(topic.partitions)
    logs = logs_of(call, topic.name)
    if what == "messagesIn":
        traffic = call.observed.traffic
        traffic.count_appends(logs)
        return traffic.topics[topic.name].messages_in if topic.name in traffic.topics else 0
    measure: Callable[[Iterable[PartitionLog]], int] = size_bytes if what == "size" else _records
    return measure(logs)


def _summary(call: Call, topic: Topic) -> TopicSummary:
    broker, traffic = call.observed.broker, call.observed.traffic
    logs = list(logs_of(call, topic.name))
    traffic.count_appends(call.sliced(logs))
    counts = traffic.topics.get(topic.name)
    stored = broker.metadata.configs.of_topic(topic.name)
    config = logs[0].config if logs else broker.config.stored_topic_config(stored)
    return TopicSummary(
        name=topic.name,
        topic_id=uuid_text(topic.id),
        is_internal=topic.is_internal,
        partitions=len(topic.partitions),
        replication_factor=topic.replication_factor,
        size_bytes=size_bytes(call.sliced(logs)),
        records=_records(call.sliced(logs)),
        cleanup_policy=",".join(config.cleanup_policy),
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
        topic_id=None if result.topic_id == ZERO_UUID else uuid_text(result.topic_id),
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
