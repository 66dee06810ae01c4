"""ExpireDelegationToken (key 40, v1-2).

Lets a token expire at another time, or removes it (a negative period). Its owner and its renewers
may. Kafka: KafkaApis.handleExpireTokenRequest, DelegationTokenControlManager."""

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.token_requests import change_expiry
from odradek.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)


async def handle(
    context: RequestContext, request: ExpireDelegationTokenRequest
) -> ExpireDelegationTokenResponse:
    broker = context.broker
    changed = await change_expiry(
        context,
        lambda: broker.controller.expire_token(
            bytes(request.hmac),
            request.expiry_time_period_ms,
            str(context.principal),
            broker.security.token_rules,
            context.now_ms,
        ),
    )
    return ExpireDelegationTokenResponse(
        error_code=changed.error_code, expiry_timestamp_ms=changed.expiry_timestamp_ms
    )
