"""RenewDelegationToken (key 39, v1-2).

Lets a token expire later, at most at its max timestamp. Its owner and its renewers may.
Kafka: KafkaApis.handleRenewTokenRequest, DelegationTokenControlManager."""

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.token_requests import ERROR_TIMESTAMP, check_token_requests
from odradek.protocol.errors import ApiError
from odradek.protocol.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)


async def handle(
    context: RequestContext, request: RenewDelegationTokenRequest
) -> RenewDelegationTokenResponse:
    broker = context.broker
    try:
        check_token_requests(context)
    except ApiError as error:
        return RenewDelegationTokenResponse(
            error_code=error.code, expiry_timestamp_ms=ERROR_TIMESTAMP
        )
    try:
        expiry_ms = broker.controller.renew_token(
            bytes(request.hmac),
            request.renew_period_ms,
            str(context.principal),
            broker.token_rules,
            context.now_ms,
        )
        await broker.metadata_sync.sync()
    except ApiError as error:
        return RenewDelegationTokenResponse(error_code=error.code)
    return RenewDelegationTokenResponse(expiry_timestamp_ms=expiry_ms)
