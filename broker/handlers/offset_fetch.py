"""OffsetFetch (key 9, v0-10; advertised from 1).

The committed offsets of groups, for given topics or (null) for all; -1 if there is none. v0 is for
clients of Kafka 0.8: it reports a partition without a committed offset as unknown.
v2 all topics, errors of a group as a whole · v5 leader epochs · v7 stable offsets: an offset that
an open transaction may change is UNSTABLE_OFFSET_COMMIT (KIP-447) · v8 several groups (KIP-709) ·
v9 member epochs (KIP-848) · v10 topic ids"""

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

FIRST_VERSION_WITH_GROUP_ERRORS = 2
FIRST_VERSION_WITH_SEVERAL_GROUPS = 8
FIRST_VERSION_WITH_TOPIC_IDS = 10
NO_OFFSET = -1


def handle(
    context: RequestContext, request: OffsetFetchRequest
) -> OffsetFetchResponse | Awaitable[OffsetFetchResponse]:
    if context.api_version:
        return respond(context, request)
    # A client of v0 does not look for a coordinator, so the topic may not exist yet.
    return respond_with_topic(context, context.broker.groups.shards, request, respond)


def respond(context: RequestContext, request: OffsetFetchRequest) -> OffsetFetchResponse:
    stable = request.require_stable
    if context.api_version >= FIRST_VERSION_WITH_SEVERAL_GROUPS:
        groups = [fetch_group(context, group, stable=stable) for group in request.groups]
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
        return refuse(context, wanted, error.code)
    return OffsetFetchResponseGroup(group_id=wanted.group_id, topics=topics)


def fetch_all(
    context: RequestContext, wanted: OffsetFetchRequestGroup, *, stable: bool
) -> list[OffsetFetchResponseTopic]:
    topics = [
        topic
        for topic in context.broker.groups.offsets.fetch(wanted, None, stable=stable)
        if context.authorize(AclOperation.DESCRIBE, ResourceType.TOPIC, topic.name)
    ]
    if context.api_version < FIRST_VERSION_WITH_TOPIC_IDS:
        return topics
    # A deleted topic has no id, and cannot be named in this version.
    known = context.broker.metadata.topics
    return [
        OffsetFetchResponseTopic(topic_id=known[topic.name].id, partitions=topic.partitions)
        for topic in topics
        if topic.name in known
    ]


def fetch_topics(
    context: RequestContext,
    wanted: OffsetFetchRequestGroup,
    topics: list[OffsetFetchRequestTopic],
    *,
    stable: bool,
) -> list[OffsetFetchResponseTopic]:
    found: list[OffsetFetchRequestTopic] = []
    refused: list[OffsetFetchResponseTopic] = []
    for topic in topics:
        try:
            found.append(find(context, topic))
        except ApiError as error:
            refused.append(unread(topic, error.code))
    fetched = context.broker.groups.offsets.fetch(wanted, found, stable=stable)
    if not context.api_version:
        fetched = [as_in_zookeeper(topic) for topic in fetched]
    return [*fetched, *refused]


def find(context: RequestContext, wanted: OffsetFetchRequestTopic) -> OffsetFetchRequestTopic:
    """The topic with its name. Raises UNKNOWN_TOPIC_ID, TOPIC_AUTHORIZATION_FAILED."""
    has_id = context.api_version >= FIRST_VERSION_WITH_TOPIC_IDS
    name = context.broker.topic_name(wanted.topic_id) if has_id else wanted.name
    context.check_topic(AclOperation.DESCRIBE, name)
    return OffsetFetchRequestTopic(
        name=name, topic_id=wanted.topic_id, partition_indexes=wanted.partition_indexes
    )


def as_in_zookeeper(topic: OffsetFetchResponseTopic) -> OffsetFetchResponseTopic:
    """As v0 reported it: in ZooKeeper, a partition without a committed offset had no node."""
    missing = [one.partition_index for one in topic.partitions if one.committed_offset < 0]
    unknown = unread(
        OffsetFetchRequestTopic(name=topic.name, partition_indexes=missing),
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    )
    found = [one for one in topic.partitions if one.committed_offset >= 0]
    return OffsetFetchResponseTopic(name=topic.name, partitions=[*found, *unknown.partitions])


def refuse(
    context: RequestContext, wanted: OffsetFetchRequestGroup, error: ErrorCode
) -> OffsetFetchResponseGroup:
    if context.api_version >= FIRST_VERSION_WITH_GROUP_ERRORS:
        return OffsetFetchResponseGroup(group_id=wanted.group_id, topics=[], error_code=error)
    topics = [unread(topic, error) for topic in wanted.topics or []]
    return OffsetFetchResponseGroup(group_id=wanted.group_id, topics=topics)


def unread(topic: OffsetFetchRequestTopic, error: ErrorCode) -> OffsetFetchResponseTopic:
    return OffsetFetchResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            OffsetFetchResponsePartition(
                partition_index=index, committed_offset=NO_OFFSET, metadata="", error_code=error
            )
            for index in topic.partition_indexes
        ],
    )
