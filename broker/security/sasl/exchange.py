"""The exchange of one login: a mechanism evaluates the client's tokens, one after another.

Kafka: javax.security.sasl.SaslServer.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol


class SaslError(Exception):
    """A login has failed. The message may be logged; the client gets a text without details."""


class SaslAuthenticationError(SaslError):
    """A login has failed, and the client gets the message."""


class Login(NamedTuple):
    """Who a client is.

    `expires_at_ms` is the end of its credential on the wall clock; None: it has no end.
    `by_token` is set if the credential is a delegation token.
    """

    user: str
    expires_at_ms: int | None = None
    by_token: bool = False


class Step(NamedTuple):
    """The token for the client, and its login if the exchange is complete."""

    token: bytes
    login: Login | None = None


class Exchange(Protocol):
    """One login with one mechanism."""

    def evaluate(self, token: bytes) -> Step:
        """Evaluate the client's next token. Raises SaslError."""


NewExchange = Callable[[], Exchange]

# A name in a message (RFC 5802, saslname): without NUL; comma and equals sign are escaped.
NAME = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"


def check_authorization_id(wanted: str | None, user: str) -> None:
    """Refuse a client that wants to act as another user. Raises SaslAuthenticationError."""
    if wanted and wanted != user:
        raise SaslAuthenticationError(
            "Authentication failed: Client requested an authorization id that is different from"
            " username"
        )
