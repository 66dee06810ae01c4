"""SASL for the raw client: logins as Kafka's clients make them, written from the RFCs."""

import base64
import hashlib
import hmac
import json
import os
from collections.abc import Mapping
from typing import Any

from odradek.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsUpsertion,
)
from odradek.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from tests.support.wire import WireClient

HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
SECURITY = "org.apache.kafka.common.security"
PLAIN_MODULE = f"{SECURITY}.plain.PlainLoginModule"
SCRAM_MODULE = f"{SECURITY}.scram.ScramLoginModule"
SIGNED_TOKENS = f"{SECURITY}.oauthbearer.OAuthBearerValidatorCallbackHandler"
OAUTH_MODULE = f"{SECURITY}.oauthbearer.OAuthBearerLoginModule"


class LoginRefusedError(Exception):
    """The broker has refused a login: the error code, and the message."""

    def __init__(self, code: int, message: str | None) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message


def handshake(client: WireClient, mechanism: str, version: int = 1) -> SaslHandshakeResponse:
    """Choose a mechanism."""
    return client.ask(SaslHandshakeRequest(mechanism=mechanism), SaslHandshakeResponse, version)


def authenticate(client: WireClient, token: bytes, version: int = 2) -> SaslAuthenticateResponse:
    """Send a token."""
    request = SaslAuthenticateRequest(auth_bytes=token)
    return client.ask(request, SaslAuthenticateResponse, version)


def step(client: WireClient, token: bytes) -> SaslAuthenticateResponse:
    """Send a token. Raises LoginRefusedError."""
    answer = authenticate(client, token)
    if answer.error_code:
        raise LoginRefusedError(answer.error_code, answer.error_message)
    return answer


def choose(client: WireClient, mechanism: str) -> None:
    """Choose a mechanism. Raises LoginRefusedError."""
    answer = handshake(client, mechanism)
    if answer.error_code:
        raise LoginRefusedError(answer.error_code, None)


def log_in_by_plain(client: WireClient, user: str, password: str, authzid: str = "") -> int:
    """Log in; returns the lifetime of the login in ms. Raises LoginRefusedError."""
    choose(client, "PLAIN")
    return step(client, f"{authzid}\0{user}\0{password}".encode()).session_lifetime_ms


def log_in_by_token(client: WireClient, token: str, extensions: str = "") -> int:
    """Log in with OAUTHBEARER; returns the lifetime of the login in ms."""
    choose(client, "OAUTHBEARER")
    answer = step(client, f"n,,\x01auth=Bearer {token}\x01{extensions}\x01".encode())
    if answer.auth_bytes:
        step(client, b"\x01")
    return answer.session_lifetime_ms


def add_scram_user(
    client: WireClient,
    user: str,
    password: str,
    mechanism: str = "SCRAM-SHA-256",
    iterations: int = 4096,
) -> None:
    """Set a user's credential, as an admin client does."""
    salt = os.urandom(16)
    wish = AlterUserScramCredentialsUpsertion(
        name=user,
        mechanism=list(HASHES).index(mechanism) + 1,
        iterations=iterations,
        salt=salt,
        salted_password=hashlib.pbkdf2_hmac(HASHES[mechanism], password.encode(), salt, iterations),
    )
    request = AlterUserScramCredentialsRequest(deletions=[], upsertions=[wish])
    (result,) = client.ask(request, AlterUserScramCredentialsResponse, 0).results
    assert result.error_code == 0, result


class ScramClient:
    """The client's side of SCRAM."""

    def __init__(self, mechanism: str, user: str, password: str, extensions: str = "") -> None:
        self._hash = HASHES[mechanism]
        self._password = password.encode()
        self.nonce = base64.b64encode(os.urandom(12)).decode()
        name = user.replace("=", "=3D").replace(",", "=2C")
        self._bare = f"n={name},r={self.nonce}{extensions}"

    def first(self) -> bytes:
        """The first message."""
        return f"n,,{self._bare}".encode()

    def final(self, server_first: bytes, *, nonce: str | None = None) -> bytes:
        """The final message, which has the proof; `nonce` in place of the right one."""
        parts = dict(part.split("=", 1) for part in server_first.decode().split(","))
        assert parts["r"].startswith(self.nonce)
        assert len(parts["r"]) > len(self.nonce)
        salted = hashlib.pbkdf2_hmac(
            self._hash, self._password, base64.b64decode(parts["s"]), int(parts["i"])
        )
        client_key = hmac.digest(salted, b"Client Key", self._hash)
        stored_key = hashlib.new(self._hash, client_key).digest()
        without_proof = f"c=biws,r={nonce or parts['r']}"
        self._signed = f"{self._bare},{server_first.decode()},{without_proof}".encode()
        self._server_key = hmac.digest(salted, b"Server Key", self._hash)
        signature = hmac.digest(stored_key, self._signed, self._hash)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()

    def check(self, server_final: bytes) -> None:
        """Check the server's signature."""
        expected = hmac.digest(self._server_key, self._signed, self._hash)
        assert server_final == b"v=" + base64.b64encode(expected)


def log_in_by_scram(
    client: WireClient, mechanism: str, user: str, password: str, extensions: str = ""
) -> int:
    """Log in; returns the lifetime of the login in ms. Raises LoginRefusedError."""
    scram = ScramClient(mechanism, user, password, extensions)
    choose(client, mechanism)
    server_first = step(client, scram.first()).auth_bytes
    last = step(client, scram.final(server_first))
    scram.check(last.auth_bytes)
    return last.session_lifetime_ms


def unsecured_token(claims: Mapping[str, Any], header: Mapping[str, Any] | None = None) -> str:
    """A token without a signature."""
    return f"{_part(header or {'alg': 'none'})}.{_part(claims)}."


def _part(value: Mapping[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()
