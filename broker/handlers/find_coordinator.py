"""FindCoordinator (key 10, v0-6).

Returns the broker that coordinates a group or a transactional id, which is this one. The first
request for a group creates `__consumer_offsets` with all its partitions before the response is
sent, the first one for a transactional id `__transaction_state`, the first one for a
share-partition `__share_group_state`.
v1 adds key types and error messages · v4 takes several keys (KIP-699) · v6 adds the coordinators of
share-partitions (KIP-932)."""

from collections.abc import Awaitable, Mapping
from functools import partial
from typing import Any

from odradek.broker.common.nodes import Node
from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.internal_topic import respond_with_topic
from odradek.broker.security.authorizer import refusal
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.broker.turns.seen import distinct
from odradek.coordinator.runtime.shards import CoordinatorShards
from odradek.coordinator.share_state.share_partition_key import SharePartitionKey
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    FindCoordinatorResult,
)

GROUP, TRANSACTION, SHARE = 0, 1, 2
KEY_TYPES = {GROUP: "group", TRANSACTION: "transaction", SHARE: "share"}
# The type of the resource that a client must be authorized for, by key type.
RESOURCE_TYPES = {
    GROUP: ResourceType.GROUP,
    TRANSACTION: ResourceType.TRANSACTIONAL_ID,
    SHARE: ResourceType.CLUSTER,
}
FIRST_VERSION_WITH_SEVERAL_KEYS = 4
FIRST_VERSION_WITH_SHARE = 6


def handle(
    context: RequestContext, request: FindCoordinatorRequest
) -> FindCoordinatorResponse | Awaitable[FindCoordinatorResponse]:
    has_several = context.api_version >= FIRST_VERSION_WITH_SEVERAL_KEYS
    keys = request.coordinator_keys if has_several else [request.key]
    refusals = {
        key: error
        for key in distinct(context.sliced(keys))
        if (error := why_refused(context, request.key_type, key)) is not None
    }
    respond_to_allowed = partial(respond, refusals=refusals)
    shards = shards_of(context, request.key_type)
    if shards is not None and any(key not in refusals for key in context.sliced(keys)):
        return respond_with_topic(context, shards, request, respond_to_allowed)
    return respond_to_allowed(context, request)


def why_refused(context: RequestContext, key_type: int, key: str) -> ApiError | None:
    """Return why a key is refused before its coordinator is looked up; None: it is not."""
    if not is_allowed(context, key_type, key):
        return refusal(RESOURCE_TYPES[key_type])
    if key_type == SHARE and context.api_version >= FIRST_VERSION_WITH_SHARE:
        try:
            SharePartitionKey.parse(key)
        except ValueError as error:
            return ApiError(ErrorCode.INVALID_REQUEST, str(error))
    return None


def is_allowed(context: RequestContext, key_type: int, key: str) -> bool:
    if key_type == GROUP:
        return context.authorize(AclOperation.DESCRIBE, ResourceType.GROUP, key)
    if key_type == TRANSACTION:
        return context.authorize(AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, key)
    if key_type == SHARE and context.api_version >= FIRST_VERSION_WITH_SHARE:
        return context.authorize_cluster(AclOperation.CLUSTER_ACTION)
    return True


def respond(
    context: RequestContext, request: FindCoordinatorRequest, refusals: Mapping[str, ApiError]
) -> FindCoordinatorResponse:
    coordinator_of = partial(find, context, request.key_type, refusals=refusals)
    if context.api_version >= FIRST_VERSION_WITH_SEVERAL_KEYS:
        return FindCoordinatorResponse(
            coordinators=[coordinator_of(key) for key in context.sliced(request.coordinator_keys)]
        )
    result = coordinator_of(request.key)
    # In Kafka, the message of the error code NONE is its name.
    return FindCoordinatorResponse(
        error_code=result.error_code,
        error_message=result.error_message or ErrorCode.NONE.name,
        node_id=result.node_id,
        host=result.host,
        port=result.port,
    )


def find(
    context: RequestContext, key_type: int, key: str, refusals: Mapping[str, ApiError]
) -> FindCoordinatorResult:
    refused = refusals.get(key)  # not raised: each raise of one error lengthens its traceback
    if refused is not None:
        return result_with_error(key, refused)
    try:
        node = coordinator(context, key_type, key)
    except ApiError as error:
        return result_with_error(key, error)
    return FindCoordinatorResult(
        key=key, node_id=node.id, host=node.host, port=node.port, error_message=""
    )


def result_with_error(key: str, error: ApiError) -> FindCoordinatorResult:
    return FindCoordinatorResult(
        key=key,
        node_id=-1,
        host="",
        port=-1,
        error_code=error.code,
        error_message=error.message,
    )


def coordinator(context: RequestContext, key_type: int, key: str) -> Node:
    """The node that coordinates a key. Raises INVALID_REQUEST, COORDINATOR_NOT_AVAILABLE."""
    name = KEY_TYPES.get(key_type, f"type {key_type}")
    shards = shards_of(context, key_type)
    if shards is None:
        text = f"{name} coordinators are not served, so none for {key!r}"
        raise ApiError(ErrorCode.INVALID_REQUEST, text)
    if shards.is_served(key):
        node = context.leader_of(shards.topic, shards.partition_of(key))
        if node is not None:
            return node
    raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{name} {key!r} has no coordinator")


def shards_of(context: RequestContext, key_type: int) -> CoordinatorShards[Any] | None:
    """The shards of the coordinator that serves keys of a type; None if none does."""
    if key_type == GROUP:
        return context.broker.coordinators.groups.shards
    if key_type == SHARE and context.api_version >= FIRST_VERSION_WITH_SHARE:
        return context.broker.coordinators.share_states.shards
    return context.broker.coordinators.transactions.shards if key_type == TRANSACTION else None
