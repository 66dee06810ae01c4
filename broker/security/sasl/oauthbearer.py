"""OAUTHBEARER (RFC 7628): the client sends a token of an authorization server.

    client     n,[a=authzid],^A auth=Bearer TOKEN ^A [key=value ^A …] ^A
    server     nothing, or {"status":"invalid_token"}
    client     ^A, after such an error; then the login has failed

The extensions (key=value) are accepted and not used.

Kafka: OAuthBearerSaslServer, OAuthBearerClientInitialResponse.
"""

import re
from typing import Protocol

from .exchange import NAME, Login, SaslAuthenticationError, SaslError, Step
from .unsecured_tokens import InvalidTokenError

# A response is parsed on the event loop, 100 ns a byte, before anybody is logged in.
MAX_RESPONSE_BYTES = 64 << 10
_VALUE = r"[\x21-\x7e \t\r\n]+"
_INITIAL_RESPONSE = re.compile(
    f"n,(?:a=(?P<authzid>{NAME}))?,\x01(?P<pairs>(?:[A-Za-z]+={_VALUE}\x01)*)\x01"
)
_AUTH = re.compile(r"(?P<scheme>[A-Za-z0-9_]+)[ ]+(?P<token>[-_~+/.a-zA-Z0-9]+=*)")
_ERROR_SEEN = b"\x01"


class Tokens(Protocol):
    """Validates tokens."""

    def validate(self, token: str) -> Login:
        """Return who the token's owner is. Raises InvalidTokenError."""


class OAuthBearerExchange:
    """A login by token."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens
        self._error: str | None = None

    def evaluate(self, token: bytes) -> Step:
        """Evaluate the initial response, or the answer to an error. Raises SaslError."""
        if self._error is not None and token == _ERROR_SEEN:
            raise SaslAuthenticationError(self._error)
        self._error = None
        authorization_id, bearer = _parse(token)
        try:
            login = self._tokens.validate(bearer)
        except InvalidTokenError as error:
            self._error = _json_error(error)
            return Step(self._error.encode())
        if authorization_id not in (None, login.user):
            raise SaslAuthenticationError(
                f"Authentication failed: Client requested an authorization id ({authorization_id})"
                f" that is different from the token's principal name ({login.user})"
            )
        return Step(b"", login)


def _parse(response: bytes) -> tuple[str | None, str]:
    if len(response) > MAX_RESPONSE_BYTES:
        raise SaslError(f"an OAUTHBEARER message of {len(response)} bytes is too long")
    match = _INITIAL_RESPONSE.fullmatch(response.decode("utf-8", "replace"))
    if match is None:
        raise SaslError("Invalid OAUTHBEARER client first message")
    pairs = dict(pair.split("=", 1) for pair in match["pairs"].split("\x01")[:-1])
    auth = _AUTH.fullmatch(pairs.get("auth", ""))
    if auth is None or auth["scheme"].lower() != "bearer":
        raise SaslError("Invalid OAUTHBEARER client first message: no auth=Bearer")
    return match["authzid"], auth["token"]


def _json_error(error: InvalidTokenError) -> str:
    if error.missing_scope is None:
        return '{"status":"invalid_token"}'
    return f'{{"status":"insufficient_scope", "scope":"{error.missing_scope}"}}'
