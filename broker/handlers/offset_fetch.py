"""OffsetFetch (key 9, v0-10; advertised from 1).

Returns the committed offsets of groups, in the topics of the request or, if these are null, in all
topics. The offset of a partition without a committed offset is -1.
v0 is not advertised, as in Apache Kafka since 4.0, but is served, for clients of Kafka 0.8. It
reports a partition without a committed offset as unknown.
v2 adds requests for all topics, and an error for the whole group · v5 adds leader epochs · v7 can
ask for stable offsets: a partition whose offset an open transaction may change gets
UNSTABLE_OFFSET_COMMIT (KIP-447) · v8 takes several groups (KIP-709) · v9 adds member epochs
(KIP-848) · v10 names topics by id."""

from collections.abc import Awaitable

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.internal_topic import respond_with_topic
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)
from odradek.protocol.schema import replace

FIRST_VERSION_WITH_GROUP_ERRORS = 2
FIRST_VERSION_WITH_SEVERAL_GROUPS = 8
FIRST_VERSION_WITH_TOPIC_IDS = 10
NO_OFFSET = -1


def handle(
    context: RequestContext, request: OffsetFetchRequest
) -> OffsetFetchResponse | Awaitable[OffsetFetchResponse]:
    if context.api_version > 0:
        return respond(context, request)
    # Normally a client first looks up the coordinator, which creates `__consumer_offsets`. A client
    # of v0 does not look it up, so the topic may have to be created here.
    return respond_with_topic(context, context.broker.coordinators.groups.shards, request, respond)


def respond(context: RequestContext, request: OffsetFetchRequest) -> OffsetFetchResponse:
    stable = request.require_stable
    if context.api_version >= FIRST_VERSION_WITH_SEVERAL_GROUPS:
        groups = [
            fetch_group(context, group, stable=stable) for group in context.sliced(request.groups)
        ]
        return OffsetFetchResponse(groups=groups)
    wanted = OffsetFetchRequestGroup(group_id=request.group_id, topics=request.topics)
    group = fetch_group(context, wanted, stable=stable)
    return OffsetFetchResponse(topics=group.topics, error_code=group.error_code)


def fetch_group(
    context: RequestContext, wanted: OffsetFetchRequestGroup, *, stable: bool
) -> OffsetFetchResponseGroup:
    try:
        context.check_group(AclOperation.DESCRIBE, wanted.group_id)
        if wanted.topics is None:
            topics = fetch_all(context, wanted, stable=stable)
        else:
            topics = fetch_topics(context, wanted, wanted.topics, stable=stable)
    except ApiError as error:
        return group_with_error(context, wanted, error.code)
    return OffsetFetchResponseGroup(group_id=wanted.group_id, topics=topics)


def fetch_all(
    context: RequestContext, wanted: OffsetFetchRequestGroup, *, stable: bool
) -> list[OffsetFetchResponseTopic]:
    offsets = context.broker.coordinators.groups.offsets
    topics = [
        topic
        for topic in context.sliced(offsets.fetch(wanted, None, stable=stable, step=context.step))
        if context.authorize(AclOperation.DESCRIBE, ResourceType.TOPIC, topic.name)
    ]
    if context.api_version < FIRST_VERSION_WITH_TOPIC_IDS:
        return topics
    # This version names topics by id, and a deleted topic has none.
    known = context.broker.metadata.topics
    return [
        OffsetFetchResponseTopic(topic_id=known[topic.name].id, partitions=topic.partitions)
        for topic in context.sliced(topics)
        if topic.name in known
    ]


def fetch_topics(
    context: RequestContext,
    wanted: OffsetFetchRequestGroup,
    topics: list[OffsetFetchRequestTopic],
    *,
    stable: bool,
) -> list[OffsetFetchResponseTopic]:
    resolved: list[OffsetFetchRequestTopic] = []
    refused: list[OffsetFetchResponseTopic] = []
    for topic in context.sliced(topics):
        try:
            resolved.append(resolve_topic(context, topic))
        except ApiError as error:
            refused.append(topic_with_error(context, topic, error.code))
    offsets = context.broker.coordinators.groups.offsets
    fetched = offsets.fetch(wanted, resolved, stable=stable, step=context.step)
    if context.api_version == 0:
        fetched = [
            report_uncommitted_as_unknown(context, topic) for topic in context.sliced(fetched)
        ]
    return [*fetched, *refused]


def resolve_topic(
    context: RequestContext, wanted: OffsetFetchRequestTopic
) -> OffsetFetchRequestTopic:
    """Return the topic with its name. Raises UNKNOWN_TOPIC_ID, TOPIC_AUTHORIZATION_FAILED."""
    has_id = context.api_version >= FIRST_VERSION_WITH_TOPIC_IDS
    name = context.broker.topic_name(wanted.topic_id) if has_id else wanted.name
    context.check_topic(AclOperation.DESCRIBE, name)
    return OffsetFetchRequestTopic(
        name=name, topic_id=wanted.topic_id, partition_indexes=wanted.partition_indexes
    )


def report_uncommitted_as_unknown(
    context: RequestContext, topic: OffsetFetchResponseTopic
) -> OffsetFetchResponseTopic:
    """Report partitions without a committed offset as unknown.

    v0 read the offsets from ZooKeeper, where such a partition had no node.
    """
    error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return OffsetFetchResponseTopic(
        name=topic.name,
        partitions=[
            replace(each, error_code=error) if each.committed_offset < 0 else each
            for each in context.sliced(topic.partitions)
        ],
    )


def group_with_error(
    context: RequestContext, wanted: OffsetFetchRequestGroup, error: ErrorCode
) -> OffsetFetchResponseGroup:
    if context.api_version >= FIRST_VERSION_WITH_GROUP_ERRORS:
        return OffsetFetchResponseGroup(group_id=wanted.group_id, topics=[], error_code=error)
    topics = [
        topic_with_error(context, topic, error) for topic in context.sliced(wanted.topics or [])
    ]
    return OffsetFetchResponseGroup(group_id=wanted.group_id, topics=topics)


def topic_with_error(
    context: RequestContext, topic: OffsetFetchRequestTopic, error: ErrorCode
) -> OffsetFetchResponseTopic:
    return OffsetFetchResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            OffsetFetchResponsePartition(
                partition_index=index, committed_offset=NO_OFFSET, metadata="", error_code=error
            )
            for index in context.sliced(topic.partition_indexes)
        ],
    )
