"""What the APIs of delegation tokens have in common: who may use them, and changes of the expiry.

A token says who its owner is. So its requester must be authenticated, and not by a token: else one
that is stolen could be replaced by a new one again and again. Kafka: KafkaApis.allowTokenRequests.
"""

from collections.abc import Callable
from typing import NamedTuple

from odradek.broker.security.principal import ANONYMOUS
from odradek.config.listeners import SecurityProtocol
from odradek.protocol.errors import ApiError, ErrorCode

from .context import RequestContext

ERROR_TIMESTAMP = -1


class ChangedExpiry(NamedTuple):
    """When a token expires, or an error: ERROR_TIMESTAMP if the broker refuses, else 0."""

    error_code: ErrorCode
    expiry_timestamp_ms: int


def check_token_requests(context: RequestContext) -> None:
    """Raise DELEGATION_TOKEN_REQUEST_NOT_ALLOWED."""
    protocol = context.session.listener.security_protocol
    is_anonymous = protocol is SecurityProtocol.SSL and context.principal == ANONYMOUS
    is_plaintext = protocol is SecurityProtocol.PLAINTEXT
    if context.session.token_authenticated or is_plaintext or is_anonymous:
        raise ApiError(
            ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
            "Delegation Token requests are not allowed on PLAINTEXT/1-way SSL channels and on"
            " delegation token authenticated channels.",
        )


async def change_expiry(context: RequestContext, change: Callable[[], int]) -> ChangedExpiry:
    """Let the controller change when a token expires. `change` returns the new time."""
    try:
        check_token_requests(context)
    except ApiError as error:
        return ChangedExpiry(error.code, ERROR_TIMESTAMP)
    try:
        hmacs = context.broker.security.token_rules.hmacs
        if hmacs is not None:
            hmacs.update(context.step)
        expiry_ms = change()
        await context.broker.metadata_log.sync()
    except ApiError as error:
        return ChangedExpiry(error.code, 0)
    return ChangedExpiry(ErrorCode.NONE, expiry_ms)
