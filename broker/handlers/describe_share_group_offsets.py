"""DescribeShareGroupOffsets (key 90, v0-1).

Returns the start offsets of share groups (KIP-932): of the named partitions, or of all that the
group has begun to read. A partition whose start is not decided yet has -1.
v1 adds the lag: how many records are not done."""

from collections.abc import Iterable, Mapping

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.share_requests import check_enabled
from odradek.broker.security.authorizer import refusal
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.coordinator.share_state.batches import NO_OFFSET
from odradek.coordinator.share_state.share_partition_key import SharePartitionKey
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)
from odradek.protocol.primitives import ZERO_UUID

NO_LAG = -1


def handle(
    context: RequestContext, request: DescribeShareGroupOffsetsRequest
) -> DescribeShareGroupOffsetsResponse:
    return DescribeShareGroupOffsetsResponse(
        groups=[describe(context, group) for group in context.sliced(request.groups)]
    )


def describe(
    context: RequestContext, wanted: DescribeShareGroupOffsetsRequestGroup
) -> DescribeShareGroupOffsetsResponseGroup:
    try:
        check_enabled(context)
        context.check_group(AclOperation.DESCRIBE, wanted.group_id)
        if wanted.topics is None:
            topics = describe_all(context, wanted.group_id)
        else:
            topics = describe_named(context, wanted.group_id, wanted.topics)
    except ApiError as error:
        return DescribeShareGroupOffsetsResponseGroup(
            group_id=wanted.group_id,
            topics=[],
            error_code=error.code,
            error_message=error.message,
        )
    return DescribeShareGroupOffsetsResponseGroup(group_id=wanted.group_id, topics=topics)


def describe_all(
    context: RequestContext, group_id: str
) -> list[DescribeShareGroupOffsetsResponseTopic]:
    """Describe the initialized partitions; topics that the client may not describe are left out."""
    initialized = initialized_partitions(context, group_id)
    described = []
    for topic_id, partitions in context.sliced(iter(initialized.items())):
        name = context.broker.find_topic_name(topic_id)
        if name is not None and context.authorize(
            AclOperation.DESCRIBE, ResourceType.TOPIC, name, is_logged=False
        ):
            described.append(described_topic(context, group_id, topic_id, name, partitions))
    return described


def initialized_partitions(context: RequestContext, group_id: str) -> Mapping[bytes, Iterable[int]]:
    """The partitions with stored state; none if there is no such group."""
    try:
        group = context.broker.coordinators.groups.admin.share_group(group_id)
    except ApiError as error:
        if error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        return {}
    initialized = group.state_partitions.initialized
    return {
        topic_id: sorted(topic.partitions)
        for topic_id, topic in context.sliced(initialized.items())
    }


def describe_named(
    context: RequestContext, group_id: str, wanted: list[DescribeShareGroupOffsetsRequestTopic]
) -> list[DescribeShareGroupOffsetsResponseTopic]:
    described, missing, refused = [], [], []
    for topic in context.sliced(wanted):
        name = topic.topic_name
        known = context.broker.metadata.topics.get(name)
        if not context.authorize(AclOperation.DESCRIBE, ResourceType.TOPIC, name):
            refused.append(without_offsets(context, topic, refusal(ResourceType.TOPIC)))
        elif known is None:
            missing.append(without_offsets(context, topic))
        else:
            described.append(described_topic(context, group_id, known.id, name, topic.partitions))
    return [*described, *missing, *refused]


def described_topic(
    context: RequestContext,
    group_id: str,
    topic_id: bytes,
    name: str,
    partitions: Iterable[int],
) -> DescribeShareGroupOffsetsResponseTopic:
    return DescribeShareGroupOffsetsResponseTopic(
        topic_name=name,
        topic_id=topic_id,
        partitions=[
            described_partition(context, SharePartitionKey(group_id, topic_id, partition), name)
            for partition in context.sliced(partitions)
        ],
    )


def described_partition(
    context: RequestContext, key: SharePartitionKey, topic: str
) -> DescribeShareGroupOffsetsResponsePartition:
    try:
        state = context.broker.coordinators.share_states.read_summary(key)
    except ApiError:  # as in Kafka, the error is not shown
        return DescribeShareGroupOffsetsResponsePartition(
            partition_index=key.partition, start_offset=NO_OFFSET, leader_epoch=0
        )
    lag = NO_LAG
    if state.done_count is not None:
        try:
            log = context.broker.log_manager.get(topic, key.partition)
            log.check_online()
        except ApiError as error:
            return DescribeShareGroupOffsetsResponsePartition(
                partition_index=key.partition,
                start_offset=0,
                leader_epoch=0,
                lag=0,
                error_code=error.code,
                error_message=error.message,
            )
        lag = log.high_watermark - state.done_count
    return DescribeShareGroupOffsetsResponsePartition(
        partition_index=key.partition,
        start_offset=state.start_offset,
        leader_epoch=state.leader_epoch,
        lag=lag,
    )


def without_offsets(
    context: RequestContext,
    topic: DescribeShareGroupOffsetsRequestTopic,
    error: ApiError | None = None,
) -> DescribeShareGroupOffsetsResponseTopic:
    return DescribeShareGroupOffsetsResponseTopic(
        topic_name=topic.topic_name,
        topic_id=ZERO_UUID,
        partitions=[
            DescribeShareGroupOffsetsResponsePartition(
                partition_index=partition,
                start_offset=NO_OFFSET,
                leader_epoch=0,
                error_code=ErrorCode.NONE if error is None else error.code,
                error_message=None if error is None else error.message,
            )
            for partition in context.sliced(topic.partitions)
        ],
    )
