"""FindCoordinator (key 10, v0-6).

Names the broker that coordinates a group, which is this one. The first request for a group creates
`__consumer_offsets`, all of it, before the answer leaves.
v1 key types, messages · v4 several keys (KIP-699) · v6 share coordinators (KIP-932).
Not done: share groups, whose keys are refused as invalid, and transactions, refused as in
InitProducerId: so that a client gives up with a clear error instead of asking for ever."""

from collections.abc import Awaitable

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.offsets_topic import respond_with_topic
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    FindCoordinatorResult,
)

GROUP, TRANSACTION = 0, 1
KEY_TYPES = {GROUP: "group", TRANSACTION: "transaction", 2: "share"}
FIRST_WITH_SEVERAL_KEYS = 4


def handle(
    context: RequestContext, request: FindCoordinatorRequest
) -> FindCoordinatorResponse | Awaitable[FindCoordinatorResponse]:
    if request.key_type == GROUP:
        return respond_with_topic(context, request, respond)
    return respond(context, request)


def respond(context: RequestContext, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    if context.api_version >= FIRST_WITH_SEVERAL_KEYS:
        results = [find(context, request.key_type, key) for key in request.coordinator_keys]
        return FindCoordinatorResponse(coordinators=results)
    found = find(context, request.key_type, request.key)
    return FindCoordinatorResponse(
        error_code=found.error_code,
        error_message=found.error_message or ErrorCode.NONE.name,
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


def find(context: RequestContext, key_type: int, key: str) -> FindCoordinatorResult:
    try:
        check(context, key_type, key)
    except ApiError as error:
        return FindCoordinatorResult(
            key=key,
            node_id=-1,
            host="",
            port=-1,
            error_code=error.code,
            error_message=error.message,
        )
    host, port = context.advertised()
    return FindCoordinatorResult(
        key=key, node_id=context.broker.node_id, host=host, port=port, error_message=""
    )


def check(context: RequestContext, key_type: int, key: str) -> None:
    if key_type != GROUP:
        name = KEY_TYPES.get(key_type, f"type {key_type}")
        code = (
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
            if key_type == TRANSACTION
            else ErrorCode.INVALID_REQUEST
        )
        raise ApiError(code, f"{name} coordinators are not served, so none for {key!r}")
    if not context.broker.groups.shards.is_served(key):
        raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"group {key!r} has no coordinator")
