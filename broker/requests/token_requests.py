"""Decides whether a connection may use the APIs of delegation tokens.

A token says who its owner is. So its requester must be authenticated, and not by a token: else one
that is stolen could be replaced by a new one again and again. Kafka: KafkaApis.allowTokenRequests.
"""

from odradek.broker.security.principal import ANONYMOUS
from odradek.config.listeners import SecurityProtocol
from odradek.protocol.errors import ApiError, ErrorCode

from .context import RequestContext

ERROR_TIMESTAMP = -1


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
