"""SaslAuthenticate (key 36, v0-2).

One step of a login: the client's token in, the server's token out. A failed login is answered
after connection.failed.authentication.delay.ms, and the connection is closed.
v1 adds the lifetime of the login, after which the client must log in again (KIP-368).
Kafka: SaslServerAuthenticator.handleSaslToken, KafkaApis.handleSaslAuthenticateRequest."""

from collections.abc import Awaitable

from odradek.broker.requests.context import RequestContext
from odradek.broker.security.sasl.authenticator import IllegalSaslStateError, LoginFailedError
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)


def handle(
    context: RequestContext, request: SaslAuthenticateRequest
) -> SaslAuthenticateResponse | Awaitable[SaslAuthenticateResponse]:
    session = context.session
    if session.guard is None:
        return out_of_turn()
    try:
        token, session_lifetime_ms = session.guard.evaluate(session, request.auth_bytes)
    except IllegalSaslStateError:
        return out_of_turn()
    except LoginFailedError as error:
        response = SaslAuthenticateResponse(
            error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=str(error)
        )
        return context.broker.security.logins.delayed(session, response)
    # As in Kafka, the message of a step without an error is empty.
    return SaslAuthenticateResponse(
        error_message="", auth_bytes=token, session_lifetime_ms=session_lifetime_ms
    )


def out_of_turn() -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(
        error_code=ErrorCode.ILLEGAL_SASL_STATE,
        error_message="SaslAuthenticate request received after successful authentication",
    )
