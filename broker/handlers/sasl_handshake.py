"""SaslHandshake (key 17, v0-1).

Chooses the mechanism of a login. After v0, the tokens come in frames without a request's header;
after v1, in SaslAuthenticate requests. On a connection that needs no login, or no other one yet,
the answer is ILLEGAL_SASL_STATE. An unknown mechanism closes the connection.
Kafka: SaslServerAuthenticator.handleHandshakeRequest, KafkaApis.handleSaslHandshakeRequest."""

from collections.abc import Awaitable

from odradek.broker.requests.context import RequestContext
from odradek.broker.security.sasl.authenticator import (
    IllegalSaslStateError,
    UnsupportedMechanismError,
)
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

RAW_TOKENS_VERSION = 0


def handle(
    context: RequestContext, request: SaslHandshakeRequest
) -> SaslHandshakeResponse | Awaitable[SaslHandshakeResponse]:
    session = context.session
    if session.guard is None:
        return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
    raw_tokens = context.api_version == RAW_TOKENS_VERSION
    try:
        mechanisms = session.guard.choose(session, request.mechanism, raw_tokens=raw_tokens)
    except UnsupportedMechanismError:
        response = SaslHandshakeResponse(
            error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=session.guard.mechanisms
        )
    except IllegalSaslStateError as error:
        response = SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
        if not error.is_final:
            return response
    else:
        return SaslHandshakeResponse(mechanisms=mechanisms)
    return context.broker.security.logins.delayed(session, response)
