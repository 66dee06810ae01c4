"""OffsetCommit (key 8, v0-10; advertised from 2).

Stores the committed offsets of a group in `__consumer_offsets`, all partitions of a request in one
batch. Topics and partitions must exist.
Apache Kafka serves v2 and above, and so these are advertised. v0, which stored the offsets in
ZooKeeper, and v1 are also served, for clients of Kafka 0.8.
v2-4 have a retention time · v6 adds leader epochs (KIP-320) · v7 adds static members (KIP-345) · v9
adds member epochs, and GROUP_ID_NOT_FOUND (KIP-848) · v10 names topics by id (KIP-848)."""

from collections.abc import Awaitable
from functools import partial

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.internal_topic import respond_with_topic
from odradek.broker.requests.offset_commits import commit_existing, topic_with_error
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponseTopic,
)

FIRST_VERSION_WITH_TOPIC_IDS = 10


def handle(
    context: RequestContext, request: OffsetCommitRequest
) -> OffsetCommitResponse | Awaitable[OffsetCommitResponse]:
    if not context.authorize(AclOperation.READ, ResourceType.GROUP, request.group_id):
        error = ErrorCode.GROUP_AUTHORIZATION_FAILED
        topics = [
            topic_with_error(context, topic, error) for topic in context.sliced(request.topics)
        ]
        return OffsetCommitResponse(topics=topics)
    if context.api_version:
        return respond(context, request)
    # Normally a client first looks up the coordinator, which creates `__consumer_offsets`. A client
    # of v0 does not look it up, so the topic may have to be created here.
    return respond_with_topic(context, context.broker.coordinators.groups.shards, request, respond)


def respond(context: RequestContext, request: OffsetCommitRequest) -> OffsetCommitResponse:
    has_ids = context.api_version >= FIRST_VERSION_WITH_TOPIC_IDS
    committed = commit_existing(
        context, request.topics, partial(commit, context, request), has_ids=has_ids
    )
    return OffsetCommitResponse(topics=committed)


def commit(
    context: RequestContext, request: OffsetCommitRequest, topics: list[OffsetCommitRequestTopic]
) -> list[OffsetCommitResponseTopic]:
    try:
        offsets = context.broker.coordinators.groups.offsets
        return offsets.commit(request, topics, context.api_version, context.step)
    except ApiError as error:
        return [topic_with_error(context, topic, error.code) for topic in context.sliced(topics)]
