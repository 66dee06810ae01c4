"""Metadata (key 3, v0-13).

Describes topics by name, by id (v12), or all. A topic that does not exist is created if broker and
request allow it, and the response describes the new topic. (Kafka's response has
LEADER_NOT_AVAILABLE, and the client must ask again.) One that was deleted a moment ago is unknown.
v8 can ask for the authorized operations · v10 adds topic ids to the response."""

from collections.abc import Awaitable, Iterable

from odradek.broker.requests.context import RequestContext
from odradek.broker.security.operations import NOT_REQUESTED, AclOperation, ResourceType
from odradek.broker.turns.seen import distinct
from odradek.coordinator.metadata.topics import NO_LEADER, Partition
from odradek.coordinator.runtime.steps import free
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from odradek.protocol.primitives import ZERO_UUID
from odradek.storage.topic_names import is_internal, why_illegal

FIRST_VERSION_BY_ID = 12


def handle(
    context: RequestContext, request: MetadataRequest
) -> MetadataResponse | Awaitable[MetadataResponse]:
    metadata = context.broker.metadata
    if asks_for_all(context, request):
        described = [
            describe(context, request, name)
            for name in context.sliced(metadata.topics)
            # It may have been deleted since the request was begun.
            if name in metadata.topics and may_describe(context, name, is_logged=False)
        ]
        return respond(context, request, described)
    if asks_by_id_too_early(context, request):
        return refuse_all(context, request)
    topics = request.topics or []
    asked_ids = (topic.topic_id for topic in context.sliced(topics))
    ids = list(distinct(topic_id for topic_id in asked_ids if topic_id != ZERO_UUID))
    if ids:
        by_id = [describe_by_id(context, request, topic_id) for topic_id in context.sliced(ids)]
        return respond(context, request, by_id)
    # Nothing of a topic that the client may not describe is shown, not even whether it exists.
    visible: list[str] = []
    unauthorized: list[MetadataResponseTopic] = []
    asked_names = (topic.name for topic in context.sliced(topics))
    for name in distinct(name for name in asked_names if name is not None):
        if may_describe(context, name):
            visible.append(name)
        else:
            unauthorized.append(error_topic(ErrorCode.TOPIC_AUTHORIZATION_FAILED, name))
    missing = [name for name in context.sliced(visible) if name not in metadata.topics]
    creates = request.allow_auto_topic_creation and context.broker.config.auto_create_topics_enable
    if missing and creates:
        return create_and_respond(context, request, visible, missing, unauthorized)
    described = [describe(context, request, name) for name in context.sliced(visible)]
    return respond(context, request, [*described, *unauthorized])


async def create_and_respond(
    context: RequestContext,
    request: MetadataRequest,
    names: Iterable[str],
    missing: list[str],
    unauthorized: list[MetadataResponseTopic],
) -> MetadataResponse:
    may_create_all = context.authorize_cluster(AclOperation.CREATE, is_logged=False)
    creatable: list[str] = []
    not_creatable: set[str] = set()
    for name in context.sliced(missing):
        if may_create_all or context.authorize(AclOperation.CREATE, ResourceType.TOPIC, name):
            creatable.append(name)
        else:
            not_creatable.add(name)
    admin = context.broker.admin.topics
    errors: dict[str, ApiError] = {}
    if creatable:
        errors = await admin.create_for_client(creatable, context.permits, context.step)
    topics = [
        topic_with_error(context, request, name, creation_code(errors[name].code))
        if name in errors
        else describe(context, request, name)
        for name in context.sliced(names)
        if name not in not_creatable
    ]
    topics += [
        error_topic(ErrorCode.TOPIC_AUTHORIZATION_FAILED, name, internal=is_internal(name))
        for name in context.sliced(missing)
        if name in not_creatable
    ]
    free(context.step, errors)
    return respond(context, request, [*topics, *unauthorized])


def may_describe(context: RequestContext, name: str, *, is_logged: bool = True) -> bool:
    return context.authorize(AclOperation.DESCRIBE, ResourceType.TOPIC, name, is_logged=is_logged)


def error_topic(
    code: ErrorCode,
    name: str | None,
    topic_id: bytes = ZERO_UUID,
    *,
    internal: bool = False,
    operations: int = NOT_REQUESTED,
) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=code,
        name=name,
        topic_id=topic_id,
        is_internal=internal,
        partitions=[],
        topic_authorized_operations=operations,
    )


def asks_for_all(context: RequestContext, request: MetadataRequest) -> bool:
    """Whether the list of topics is null. v0 has no null: there an empty list means all topics."""
    return request.topics is None or (context.api_version == 0 and not request.topics)


def asks_by_id_too_early(context: RequestContext, request: MetadataRequest) -> bool:
    """Whether the request has a topic id, or a topic without a name, before v12.

    v10 and v11 have a field for ids, which brokers of that time did not read (KAFKA-12701).
    """
    return context.api_version < FIRST_VERSION_BY_ID and any(
        topic.name is None or topic.topic_id != ZERO_UUID
        for topic in context.sliced(request.topics or [])
    )


def refuse_all(context: RequestContext, request: MetadataRequest) -> MetadataResponse:
    """A response without brokers, with INVALID_REQUEST for each topic."""
    return MetadataResponse(
        topics=[
            error_topic(ErrorCode.INVALID_REQUEST, topic.name or "", topic.topic_id)
            for topic in context.sliced(request.topics or [])
        ]
    )


def describe_by_id(
    context: RequestContext, request: MetadataRequest, topic_id: bytes
) -> MetadataResponseTopic:
    try:
        name = context.broker.topic_name(topic_id)
    except ApiError as error:
        return error_topic(error.code, None, topic_id)
    if not may_describe(context, name):
        return error_topic(ErrorCode.TOPIC_AUTHORIZATION_FAILED, None, topic_id)
    return describe(context, request, name)


def describe(context: RequestContext, request: MetadataRequest, name: str) -> MetadataResponseTopic:
    topic = context.broker.metadata.topics.get(name)
    if topic is None:
        unknown, invalid = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION
        return topic_with_error(
            context, request, name, unknown if why_illegal(name) is None else invalid
        )
    return MetadataResponseTopic(
        name=name,
        topic_id=topic.id,
        is_internal=topic.is_internal,
        partitions=[
            describe_partition(context, name, partition)
            for partition in context.sliced(topic.partitions.values())
        ],
        topic_authorized_operations=topic_operations(context, request, name),
    )


def describe_partition(
    context: RequestContext, topic: str, partition: Partition
) -> MetadataResponsePartition:
    """Describe a partition. If its log directory has failed, it is offline and has no leader."""
    served = context.broker.is_served(topic, partition.index)
    nodes, index = context.broker.nodes, partition.index
    return MetadataResponsePartition(
        error_code=ErrorCode.NONE if served else ErrorCode.LEADER_NOT_AVAILABLE,
        partition_index=partition.index,
        leader_id=nodes.leader(partition.leader, topic, index) if served else NO_LEADER,
        leader_epoch=partition.leader_epoch,
        replica_nodes=nodes.replicas(partition.replicas, topic, index),
        isr_nodes=nodes.isr(partition.isr, topic, index),
        offline_replicas=nodes.offline(topic, index, is_served=served),
    )


def topic_with_error(
    context: RequestContext, request: MetadataRequest, name: str, code: ErrorCode
) -> MetadataResponseTopic:
    operations = topic_operations(context, request, name)
    return error_topic(code, name, internal=is_internal(name), operations=operations)


def creation_code(code: ErrorCode) -> ErrorCode:
    """The code of a topic that was not created. A client does not expect those of limits here."""
    is_limit = code in (ErrorCode.THROTTLING_QUOTA_EXCEEDED, ErrorCode.POLICY_VIOLATION)
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_limit else code


def topic_operations(context: RequestContext, request: MetadataRequest, name: str) -> int:
    if not request.include_topic_authorized_operations:
        return NOT_REQUESTED
    return context.authorized_operations(ResourceType.TOPIC, name)


def respond(
    context: RequestContext, request: MetadataRequest, topics: list[MetadataResponseTopic]
) -> MetadataResponse:
    broker = context.broker
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=node.id, host=node.host, port=node.port, rack=node.rack)
            for node in context.nodes()
        ],
        cluster_id=broker.log_manager.cluster_id,
        controller_id=broker.nodes.controller_id,
        topics=topics,
        cluster_authorized_operations=context.authorized_cluster_operations()
        if request.include_cluster_authorized_operations
        else NOT_REQUESTED,
    )
