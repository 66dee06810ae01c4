"""ExpireDelegationToken (key 40, v1-2).

Lets a token expire at another time, or removes it (a negative period). Its owner and its renewers
may. Kafka: KafkaApis.handleExpireTokenRequest, DelegationTokenControlManager."""

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.token_requests import ERROR_TIMESTAMP, check_token_requests
from odradek.protocol.errors import ApiError
from odradek.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)


async def handle(
    context: RequestContext, request: ExpireDelegationTokenRequest
) -> ExpireDelegationTokenResponse:
    broker = context.broker
    try:
        check_token_requests(context)
    except ApiError as error:
        return ExpireDelegationTokenResponse(
            error_code=error.code, expiry_timestamp_ms=ERROR_TIMESTAMP
        )
    try:
        expiry_ms = broker.controller.expire_token(
            bytes(request.hmac),
            request.expiry_time_period_ms,
            str(context.principal),
            broker.token_rules,
            context.now_ms,
        )
        await broker.metadata_sync.sync()
    except ApiError as error:
        return ExpireDelegationTokenResponse(error_code=error.code)
    return ExpireDelegationTokenResponse(expiry_timestamp_ms=expiry_ms)
