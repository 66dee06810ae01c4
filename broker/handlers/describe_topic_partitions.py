"""DescribeTopicPartitions (key 75, v0).

Describes topics in the order of their names, in pages (KIP-966). A page ends with a cursor when it
has as many partitions as the request and max.request.partition.size.limit allow; the next request
returns the cursor. A request without topics asks for all topics."""

from collections.abc import Iterable
from itertools import islice

from odradek.broker.requests.context import RequestContext
from odradek.broker.security.operations import NOT_REQUESTED, AclOperation, ResourceType
from odradek.coordinator.metadata.topics import NO_LEADER, Partition
from odradek.coordinator.runtime.steps import free, sorted_in_steps
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsCursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from odradek.protocol.primitives import ZERO_UUID
from odradek.storage.topic_names import why_illegal


def handle(
    context: RequestContext, request: DescribeTopicPartitionsRequest
) -> DescribeTopicPartitionsResponse:
    try:
        names = wanted_topics(context, request)
    except ApiError as error:
        return DescribeTopicPartitionsResponse(
            topics=[
                error_topic(topic.name, error.code, NOT_REQUESTED)
                for topic in context.sliced(request.topics)
            ]
        )
    # Nothing of a topic that the client may not describe is shown, not even whether it exists.
    visible = dict.fromkeys(
        name
        for name in context.sliced(names)
        if context.authorize(AclOperation.DESCRIBE, ResourceType.TOPIC, name)
    )
    response = describe_page(context, request, iter(visible))
    if request.topics:
        response.topics.extend(
            error_topic(name, ErrorCode.TOPIC_AUTHORIZATION_FAILED, NOT_REQUESTED)
            for name in context.sliced(names)
            if name not in visible
        )
    free(context.step, names, visible)
    return response


def describe_page(
    context: RequestContext, request: DescribeTopicPartitionsRequest, names: Iterable[str]
) -> DescribeTopicPartitionsResponse:
    """Describe topics until the limit of partitions is reached."""
    limit = context.broker.config.max_request_partition_size_limit
    left = max(1, min(limit, request.response_partition_limit))
    topics: list[DescribeTopicPartitionsResponseTopic] = []
    next_cursor = None
    for name in context.sliced(names):
        if left == 0:
            next_cursor = DescribeTopicPartitionsCursor(topic_name=name, partition_index=0)
            break
        cursor = request.cursor
        start = cursor.partition_index if cursor and cursor.topic_name == name else 0
        topic = describe(context, name, range(start, start + left))
        topics.append(topic)
        left -= len(topic.partitions)
        end = start + len(topic.partitions)
        known = context.broker.metadata.topics.get(name)
        if known is not None and end < len(known.partitions):
            next_cursor = DescribeTopicPartitionsCursor(topic_name=name, partition_index=end)
            break
    return DescribeTopicPartitionsResponse(topics=topics, next_cursor=next_cursor)


def wanted_topics(context: RequestContext, request: DescribeTopicPartitionsRequest) -> list[str]:
    """The names of the requested topics from the cursor on, sorted, each once."""
    topics, cursor = request.topics, request.cursor
    if cursor is not None:
        check_cursor(context, request, cursor)
    first = "" if cursor is None else cursor.topic_name
    asked = (topic.name for topic in topics) if topics else context.broker.metadata.topics
    names = dict.fromkeys(name for name in context.sliced(asked) if name >= first)
    in_order = sorted_in_steps(context.sliced(iter(names)), context.step)
    free(context.step, names)
    return in_order


def check_cursor(
    context: RequestContext,
    request: DescribeTopicPartitionsRequest,
    cursor: DescribeTopicPartitionsCursor,
) -> None:
    """Raise INVALID_REQUEST unless the request may begin at its cursor."""
    name, topics = cursor.topic_name, request.topics
    if topics and all(topic.name != name for topic in context.sliced(topics)):
        raise ApiError(ErrorCode.INVALID_REQUEST, f"the cursor's topic {name} is not asked for")
    if cursor.partition_index < 0:
        raise ApiError(
            ErrorCode.INVALID_REQUEST, f"the cursor's partition is {cursor.partition_index}"
        )


def describe(
    context: RequestContext, name: str, wanted: range
) -> DescribeTopicPartitionsResponseTopic:
    operations = context.authorized_operations(ResourceType.TOPIC, name)
    topic = context.broker.metadata.topics.get(name)
    if topic is None:
        unknown, invalid = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION
        return error_topic(name, unknown if why_illegal(name) is None else invalid, operations)
    return DescribeTopicPartitionsResponseTopic(
        name=name,
        topic_id=topic.id,
        is_internal=topic.is_internal,
        partitions=[
            describe_partition(context, name, partition)
            for partition in context.sliced(
                list(islice(topic.partitions.values(), wanted.start, wanted.stop))
            )
        ],
        topic_authorized_operations=operations,
    )


def describe_partition(
    context: RequestContext, topic: str, partition: Partition
) -> DescribeTopicPartitionsResponsePartition:
    """Describe a partition. The topic may have been deleted since the request was begun."""
    nodes, index = context.broker.nodes, partition.index
    served = context.broker.is_served(topic, index)
    return DescribeTopicPartitionsResponsePartition(
        error_code=ErrorCode.NONE,
        partition_index=index,
        leader_id=nodes.leader(partition.leader, topic, index) if served else NO_LEADER,
        leader_epoch=partition.leader_epoch,
        replica_nodes=nodes.replicas(partition.replicas, topic, index),
        isr_nodes=nodes.isr(partition.isr, topic, index),
        eligible_leader_replicas=nodes.eligible(partition.eligible_leader_replicas, topic, index),
        last_known_elr=nodes.last_known(partition.last_known_elr, topic, index),
        offline_replicas=nodes.offline(topic, index, is_served=served),
    )


def error_topic(
    name: str, code: ErrorCode, operations: int
) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        error_code=code,
        name=name,
        topic_id=ZERO_UUID,
        partitions=[],
        topic_authorized_operations=operations,
    )
