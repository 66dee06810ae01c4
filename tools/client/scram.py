"""The client's side of SCRAM (RFC 5802), without channel binding."""

import base64
import binascii
import hmac
import secrets

from odradek.coordinator.metadata.scram_mechanisms import (
    MIN_ITERATIONS,
    SCRAM_MECHANISMS,
    client_key_of,
    keys_of,
    salted,
)

MAX_ITERATIONS = 1_000_000  # a server that asks for more wants to keep the client busy
_NO_CHANNEL_BINDING = b"n,,"


class ScramError(Exception):
    """The server refuses the login, or does not prove that it knows the password."""


class ScramClient:
    """One login: send first(); send final(answer); give the next answer to check()."""

    def __init__(self, mechanism: str, user: str, password: str, nonce: str | None = None) -> None:
        """`nonce` is for tests. The mechanism must be one of SCRAM_MECHANISMS."""
        self._mechanism = SCRAM_MECHANISMS[mechanism]
        self._password = password
        self._nonce = (nonce or secrets.token_urlsafe(24)).encode()
        name = user.replace("=", "=3D").replace(",", "=2C").encode()
        self._bare = b"n=%s,r=%s" % (name, self._nonce)
        self._signature = b""

    def first(self) -> bytes:
        """The first message."""
        return _NO_CHANNEL_BINDING + self._bare

    def final(self, server_first: bytes) -> bytes:
        """The message with the proof. Raises ScramError."""
        fields = _fields(server_first)
        try:
            nonce, iterations = fields[b"r"], int(fields[b"i"])
            salt = base64.b64decode(fields[b"s"], validate=True)
        except (KeyError, ValueError, binascii.Error):
            raise ScramError("the server's message is not one of SCRAM") from None
        if not nonce.startswith(self._nonce) or len(nonce) == len(self._nonce):
            raise ScramError("the server's nonce does not begin with the client's")
        if not MIN_ITERATIONS <= iterations <= MAX_ITERATIONS:
            raise ScramError(f"the server asks for {iterations} iterations")
        mechanism = self._mechanism
        salted_password = salted(mechanism, self._password, salt, iterations)
        keys = keys_of(mechanism, salted_password)
        without_proof = b"c=%s,r=%s" % (base64.b64encode(_NO_CHANNEL_BINDING), nonce)
        message = b",".join((self._bare, server_first, without_proof))
        client_key = client_key_of(mechanism, salted_password)
        signature = hmac.digest(keys.stored_key, message, mechanism.hash_name)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        self._signature = hmac.digest(keys.server_key, message, mechanism.hash_name)
        return without_proof + b",p=" + base64.b64encode(proof)

    def check(self, server_final: bytes) -> None:
        """Raise ScramError unless the server knows the password, too."""
        fields = _fields(server_final)
        if b"e" in fields:
            raise ScramError(fields[b"e"].decode(errors="replace"))
        shown = fields.get(b"v", b"")
        if not shown or not hmac.compare_digest(shown, base64.b64encode(self._signature)):
            raise ScramError("the server does not prove that it knows the password")


def _fields(message: bytes) -> dict[bytes, bytes]:
    pairs = (part.partition(b"=") for part in message.split(b","))
    return {name: value for name, _, value in pairs}
