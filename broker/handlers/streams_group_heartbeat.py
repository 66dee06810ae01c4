"""StreamsGroupHeartbeat (key 88, v0-1).

With this request, a member of a streams group joins, sends its topology, reports its tasks, gets
its assignment, and leaves (KIP-1071). Internal topics that are missing are created before the
response is sent, which still says that they are missing: the next heartbeat finds them. Kafka
creates them after the response, and a failure is in a later one.
v1 asks for a readable topology, which is not kept here (KIP-1331)."""

from collections.abc import Awaitable, Iterator, Mapping
from functools import partial
from itertools import islice

from odradek.broker.requests.context import RequestContext
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.broker.turns.slices import Slices
from odradek.coordinator.any_group.caller import Caller
from odradek.coordinator.metadata.topic_creation import NewTopic
from odradek.coordinator.streams_groups.configuration import InternalTopic
from odradek.coordinator.streams_groups.heartbeat import HeartbeatReply
from odradek.coordinator.streams_groups.status import StatusCode
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    StreamsGroupHeartbeatTopology,
)
from odradek.protocol.schema import replace
from odradek.storage.topic_names import is_internal, why_illegal

DEFAULT_REPLICATION_FACTOR = -1
MAX_ERRORS_IN_DETAIL = 3


def handle(
    context: RequestContext, request: StreamsGroupHeartbeatRequest
) -> StreamsGroupHeartbeatResponse | Awaitable[StreamsGroupHeartbeatResponse]:
    if not context.broker.coordinators.serves_streams_groups:
        return response_with_error(
            ErrorCode.UNSUPPORTED_VERSION,
            "streams groups are not enabled: see streams.version and "
            "group.coordinator.rebalance.protocols",
        )
    if not context.authorize(AclOperation.READ, ResourceType.GROUP, request.group_id):
        return response_with_error(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if request.topology is not None:
        try:
            check_topics(context, request.topology)
        except ApiError as error:
            return response_with_error(error.code, error.message or None)
    caller = Caller(context.client_id or "", context.client_host, context.api_version)
    reply = context.broker.coordinators.groups.members.streams_group_heartbeat(request, caller)
    if not isinstance(reply, HeartbeatReply):
        return respond_later(context, reply)
    return create_and_respond(context, reply) if reply.missing_topics else reply.response


async def respond_later(
    context: RequestContext, pending: Awaitable[HeartbeatReply]
) -> StreamsGroupHeartbeatResponse:
    reply = await pending
    return await create_and_respond(context, reply) if reply.missing_topics else reply.response


def response_with_error(
    code: ErrorCode, message: str | None = None
) -> StreamsGroupHeartbeatResponse:
    return StreamsGroupHeartbeatResponse(error_code=code, error_message=message)


def check_topics(context: RequestContext, topology: StreamsGroupHeartbeatTopology) -> None:
    """Raises STREAMS_INVALID_TOPOLOGY, TOPIC_AUTHORIZATION_FAILED."""
    names = dict.fromkeys(context.sliced(topics_of(context, topology)))
    prohibited = [name for name in context.sliced(names) if is_internal(name)]
    if prohibited:
        text = f"a topology must not use Kafka's own topics: {', '.join(prohibited)}"
        raise ApiError(ErrorCode.STREAMS_INVALID_TOPOLOGY, text)
    illegal = [name for name in context.sliced(names) if why_illegal(name) is not None]
    if illegal:
        text = f"these are not names of topics: {', '.join(illegal)}"
        raise ApiError(ErrorCode.STREAMS_INVALID_TOPOLOGY, text)
    for name in context.sliced(names):
        if not context.authorize(AclOperation.DESCRIBE, ResourceType.TOPIC, name):
            raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "")


def topics_of(context: RequestContext, topology: StreamsGroupHeartbeatTopology) -> Iterator[str]:
    for subtopology in context.sliced(topology.subtopologies):
        yield from subtopology.source_topics
        yield from subtopology.repartition_sink_topics
        yield from (topic.name for topic in subtopology.repartition_source_topics)
        yield from (topic.name for topic in subtopology.state_changelog_topics)


async def create_and_respond(
    context: RequestContext, reply: HeartbeatReply
) -> StreamsGroupHeartbeatResponse:
    """Create the missing topics, in slices: a short request may need very many of them."""
    creating = partial(create_in_slices, context, reply)
    return await context.broker.turns.slices.run(creating)


async def create_in_slices(
    context: RequestContext, reply: HeartbeatReply, slices: Slices
) -> StreamsGroupHeartbeatResponse:
    missing = reply.missing_topics
    may_create_all = context.authorize_cluster(AclOperation.CREATE, is_logged=False)
    denied = [
        name
        for name in slices.of(missing)
        if not (may_create_all or context.authorize(AclOperation.CREATE, ResourceType.TOPIC, name))
    ]
    if denied:
        text = f"Unauthorized to CREATE on topics {', '.join(denied)}."
        return with_detail(reply.response, text)
    failures = await create(context, missing, slices)
    if not failures:
        return reply.response
    listed = ", ".join(
        f"{name} ({error.message or error.code.name})"
        for name, error in islice(failures.items(), MAX_ERRORS_IN_DETAIL)
    )
    others = len(failures) - MAX_ERRORS_IN_DETAIL
    text = f"{listed} and {others} more" if others > 0 else listed
    return with_detail(reply.response, f"Creation failed: {text}.")


async def create(
    context: RequestContext, topics: Mapping[str, InternalTopic], slices: Slices
) -> dict[str, ApiError]:
    """Create topics. Returns the errors of those that could not be created, by name."""
    new = [
        NewTopic(
            name=topic.name,
            partition_count=topic.partition_count,
            replication_factor=topic.replication_factor or DEFAULT_REPLICATION_FACTOR,
            configs=topic.configs,
        )
        for topic in slices.of(topics.values())
    ]
    try:
        results = await context.broker.admin.topics.create(new, permits=context.permits)
    except ApiError as error:
        return dict.fromkeys(topics, error)
    return {
        name: result
        for name, result in slices.of(iter(results.items()))
        if isinstance(result, ApiError) and result.code is not ErrorCode.TOPIC_ALREADY_EXISTS
    }


def with_detail(
    response: StreamsGroupHeartbeatResponse, text: str
) -> StreamsGroupHeartbeatResponse:
    """Add a text to the status that says that internal topics are missing."""
    status = [
        replace(entry, status_detail=f"{entry.status_detail}; {text}")
        if entry.status_code == StatusCode.MISSING_INTERNAL_TOPICS
        else entry
        for entry in response.status or ()
    ]
    return replace(response, status=status)
