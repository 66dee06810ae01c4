"""SCRAM credentials of delegation tokens: user name is the token's id, password its HMAC in base64.

A credential is derived when a client first logs in with the token, and kept: it takes milliseconds,
because it hashes 4,096 times. `credential` may be called in another thread.
Kafka: DelegationTokenManager.prepareScramCredentials, ScramServerCallbackHandler.
"""

import base64
import hashlib
import hmac
import secrets
from typing import NamedTuple

from odradek.coordinator.metadata.delegation_tokens import DelegationTokens
from odradek.coordinator.metadata.token_changes import is_expired
from odradek.coordinator.metadata.token_hmacs import TokenHmacs

from .principal import Principal, parse_principal

ITERATIONS = 4_096  # the least that clients accept
_HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}


class TokenCredential(NamedTuple):
    """The credential of a token for one mechanism, and whom it stands for until `expires_at_ms`."""

    salt: bytes
    iterations: int
    stored_key: bytes
    server_key: bytes
    owner: Principal
    expires_at_ms: int


class _Keys(NamedTuple):
    salt: bytes
    stored_key: bytes
    server_key: bytes


class TokenCredentials:
    """The credentials of all tokens. Without `hmacs` (no secret key) there are none."""

    def __init__(self, tokens: DelegationTokens, hmacs: TokenHmacs | None) -> None:
        self._tokens = tokens
        self._hmacs = hmacs
        self._keys: dict[tuple[str, str], _Keys] = {}

    def credential(self, mechanism: str, token_id: str, now_ms: int) -> TokenCredential | None:
        """The credential by which a client logs in; None if no token of this id is valid now."""
        token = self._tokens.by_id.get(token_id)
        hash_name = _HASHES.get(mechanism)
        if token is None or hash_name is None or self._hmacs is None or is_expired(token, now_ms):
            return None
        keys = self._keys.get((mechanism, token_id))
        if keys is None:
            self._forget_removed()
            keys = _derive(hash_name, base64.b64encode(self._hmacs.of(token_id)))
            self._keys[mechanism, token_id] = keys
        return TokenCredential(
            salt=keys.salt,
            iterations=ITERATIONS,
            stored_key=keys.stored_key,
            server_key=keys.server_key,
            owner=parse_principal(token.owner),
            expires_at_ms=token.expiration_timestamp,
        )

    def _forget_removed(self) -> None:
        for mechanism, token_id in list(self._keys):
            if token_id not in self._tokens.by_id:
                self._keys.pop((mechanism, token_id), None)


def _derive(hash_name: str, password: bytes) -> _Keys:
    """Derive the keys of a password (RFC 5802, section 3)."""
    salt = secrets.token_bytes(32)
    salted = hashlib.pbkdf2_hmac(hash_name, password, salt, ITERATIONS)
    client_key = hmac.digest(salted, b"Client Key", hash_name)
    stored_key = hashlib.new(hash_name, client_key).digest()
    return _Keys(salt, stored_key, hmac.digest(salted, b"Server Key", hash_name))
