"""PLAIN (RFC 4616): the client sends its name and password, as [authzid] NUL name NUL password.

The passwords are options of the login module, `user_NAME="PASSWORD"`.

Kafka: PlainSaslServer, PlainServerCallbackHandler.
"""

import hmac
from collections.abc import Mapping

from .exchange import Login, SaslAuthenticationError, Step, check_authorization_id

USER_PREFIX = "user_"


def passwords_of(options: Mapping[str, str]) -> dict[str, bytes]:
    """The users' passwords, from the options of the login module."""
    return {
        name.removeprefix(USER_PREFIX): encoded(password)
        for name, password in options.items()
        if name.startswith(USER_PREFIX)
    }


class PlainExchange:
    """A login by password."""

    def __init__(self, passwords: Mapping[str, bytes]) -> None:
        self._passwords = passwords

    def evaluate(self, token: bytes) -> Step:
        """Check the only token. Raises SaslAuthenticationError."""
        parts = token.decode("utf-8", "replace").split("\0")
        if len(parts) != 3:
            raise SaslAuthenticationError(
                f"Invalid SASL/PLAIN response: expected 3 tokens, got {min(len(parts), 4)}"
            )
        authorization_id, user, password = parts
        if not user:
            raise SaslAuthenticationError("Authentication failed: username not specified")
        if not password:
            raise SaslAuthenticationError("Authentication failed: password not specified")
        # An unknown user takes the same time as a known one.
        expected = self._passwords.get(user, b"")
        if not hmac.compare_digest(encoded(password), expected):
            raise SaslAuthenticationError("Authentication failed: Invalid username or password")
        check_authorization_id(authorization_id, user)
        return Step(b"", Login(user))


def encoded(text: str) -> bytes:
    """A password as it is compared."""
    return text.encode("utf-8", "surrogatepass")
