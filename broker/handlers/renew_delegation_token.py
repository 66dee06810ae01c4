"""RenewDelegationToken (key 39, v1-2).

Lets a token expire later, at most at its max timestamp. Its owner and its renewers may.
Kafka: KafkaApis.handleRenewTokenRequest, DelegationTokenControlManager."""

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.token_requests import change_expiry
from odradek.protocol.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)


async def handle(
    context: RequestContext, request: RenewDelegationTokenRequest
) -> RenewDelegationTokenResponse:
    broker = context.broker
    changed = await change_expiry(
        context,
        lambda: broker.controller.renew_token(
            bytes(request.hmac),
            request.renew_period_ms,
            str(context.principal),
            broker.security.token_rules,
            context.now_ms,
        ),
    )
    return RenewDelegationTokenResponse(
        error_code=changed.error_code, expiry_timestamp_ms=changed.expiry_timestamp_ms
    )
