"""The client's side of SCRAM (RFC 5802), without channel binding."""

import base64
import binascii
import hashlib
import hmac
import secrets

# By mechanism: the hash, and the number that stands for the mechanism in requests.
MECHANISMS = {"SCRAM-SHA-256": ("sha256", 1), "SCRAM-SHA-512": ("sha512", 2)}
MIN_ITERATIONS = 4_096
MAX_ITERATIONS = 1_000_000  # a server that asks for more wants to keep the client busy
_NO_CHANNEL_BINDING = b"n,,"


class ScramError(Exception):
    """The server refuses the login, or does not prove that it knows the password."""


class ScramClient:
    """One login: `first` is sent, then `final` of the answer; `check` gets the last answer."""

    def __init__(self, mechanism: str, user: str, password: str, nonce: str | None = None) -> None:
        """`nonce` is for tests. The mechanism must be one of MECHANISMS."""
        self._hash = MECHANISMS[mechanism][0]
        self._password = password.encode()
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
        salted = salted_password(self._hash, self._password, salt, iterations)
        without_proof = b"c=%s,r=%s" % (base64.b64encode(_NO_CHANNEL_BINDING), nonce)
        message = b",".join((self._bare, server_first, without_proof))
        client_key = hmac.digest(salted, b"Client Key", self._hash)
        stored_key = hashlib.new(self._hash, client_key).digest()
        signature = hmac.digest(stored_key, message, self._hash)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        server_key = hmac.digest(salted, b"Server Key", self._hash)
        self._signature = hmac.digest(server_key, message, self._hash)
        return without_proof + b",p=" + base64.b64encode(proof)

    def check(self, server_final: bytes) -> None:
        """Raise ScramError unless the server knows the password, too."""
        fields = _fields(server_final)
        if b"e" in fields:
            raise ScramError(fields[b"e"].decode(errors="replace"))
        shown = fields.get(b"v", b"")
        if not hmac.compare_digest(shown, base64.b64encode(self._signature)):
            raise ScramError("the server does not prove that it knows the password")


def salted_password(hash_name: str, password: bytes, salt: bytes, iterations: int) -> bytes:
    """The key that a password is hashed to."""
    return hashlib.pbkdf2_hmac(hash_name, password, salt, iterations)


def _fields(message: bytes) -> dict[bytes, bytes]:
    pairs = (part.partition(b"=") for part in message.split(b","))
    return {name: value for name, _, value in pairs}
