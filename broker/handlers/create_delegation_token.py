"""CreateDelegationToken (key 38, v1-3).

Creates a token for the client, or (v3) for another owner whom the client may create tokens for.
The HMAC in the response is the token's secret. A refusal by the broker has the timestamps -1, one
by the controller 0, as in Kafka. Unlike in Kafka, a token has at most 1,000 renewers: a token is
described, encoded and renewed in one turn.
Kafka: KafkaApis.handleCreateTokenRequest, DelegationTokenControlManager."""

from typing import Any

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.token_requests import ERROR_TIMESTAMP, check_token_requests
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.broker.security.principal import ANONYMOUS, USER, Principal
from odradek.coordinator.metadata.token_changes import NewToken
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from odradek.protocol.primitives import random_uuid, uuid_text

MAX_RENEWERS = 1_000


async def handle(
    context: RequestContext, request: CreateDelegationTokenRequest
) -> CreateDelegationTokenResponse:
    if request.owner_principal_name and request.owner_principal_type is None:
        return response_with_error(
            context, ANONYMOUS, ErrorCode.UNKNOWN_SERVER_ERROR, ERROR_TIMESTAMP
        )
    owner = owner_of(context, request)
    try:
        check(context, request, owner)
    except ApiError as error:
        return response_with_error(context, owner, error.code, ERROR_TIMESTAMP)
    broker = context.broker
    wanted = NewToken(
        token_id=uuid_text(random_uuid()),
        owner=str(owner),
        requester=str(context.principal),
        renewers=[f"{USER}:{renewer.principal_name}" for renewer in request.renewers],
        max_lifetime_ms=request.max_lifetime_ms,
    )
    try:
        token = broker.controller.create_token(wanted, broker.security.token_rules, context.now_ms)
        await broker.disk.run(broker.security.token_credentials.prepare, token.token_id)
        await broker.metadata_log.sync()
    except ApiError as error:
        return response_with_error(context, owner, error.code, 0)
    assert broker.security.token_rules.hmacs is not None, "the controller has checked it"
    return CreateDelegationTokenResponse(
        **principals(context, owner),
        issue_timestamp_ms=token.issue_timestamp,
        expiry_timestamp_ms=token.expiration_timestamp,
        max_timestamp_ms=token.max_timestamp,
        token_id=token.token_id,
        hmac=broker.security.token_rules.hmacs.of(token.token_id),
    )


def owner_of(context: RequestContext, request: CreateDelegationTokenRequest) -> Principal:
    if not request.owner_principal_name:
        return context.principal
    return Principal(request.owner_principal_type or "", request.owner_principal_name)


def check(context: RequestContext, request: CreateDelegationTokenRequest, owner: Principal) -> None:
    check_token_requests(context)
    if owner != context.principal and not context.authorize(
        AclOperation.CREATE_TOKENS, ResourceType.USER, str(owner)
    ):
        text = "Delegation Token authorization failed."
        raise ApiError(ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED, text)
    if len(request.renewers) > MAX_RENEWERS:
        text = f"A token has at most {MAX_RENEWERS} renewers."
        raise ApiError(ErrorCode.INVALID_REQUEST, text)
    if any(renewer.principal_type != USER for renewer in request.renewers):
        text = "Supplied principalType is not supported."
        raise ApiError(ErrorCode.INVALID_PRINCIPAL_TYPE, text)


def response_with_error(
    context: RequestContext, owner: Principal, code: ErrorCode, timestamp_ms: int
) -> CreateDelegationTokenResponse:
    return CreateDelegationTokenResponse(
        **principals(context, owner),
        error_code=code,
        issue_timestamp_ms=timestamp_ms,
        expiry_timestamp_ms=timestamp_ms,
        max_timestamp_ms=timestamp_ms,
    )


def principals(context: RequestContext, owner: Principal) -> dict[str, Any]:
    shown = {"principal_type": owner.kind, "principal_name": owner.name}
    if context.api_version >= 3:
        shown["token_requester_principal_type"] = context.principal.kind
        shown["token_requester_principal_name"] = context.principal.name
    return shown
