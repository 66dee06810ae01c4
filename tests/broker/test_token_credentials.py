"""The SCRAM credentials of delegation tokens, and a client that logs in with one."""

import base64
import hashlib
import hmac

import pytest

from odradek.broker.security.principal import Principal
from odradek.broker.security.token_credentials import TokenCredential, TokenCredentials
from odradek.coordinator.metadata.delegation_tokens import DelegationTokens
from odradek.coordinator.metadata.token_hmacs import TokenHmacs
from odradek.protocol.records.cluster_metadata import (
    DelegationTokenRecord,
    RemoveDelegationTokenRecord,
)

TOKEN = DelegationTokenRecord(
    owner="User:alice",
    requester="User:carol",
    renewers=[],
    issue_timestamp=1_000,
    max_timestamp=9_000,
    expiration_timestamp=2_000,
    token_id="token",
)


class Rig:
    def __init__(self) -> None:
        self.tokens = DelegationTokens()
        self.tokens.replay(TOKEN)
        self.hmacs = TokenHmacs("secret", self.tokens)
        self.credentials = TokenCredentials(self.tokens, self.hmacs)


def accepts(credential: TokenCredential, hash_name: str, password: bytes) -> bool:
    """What the two sides of SCRAM find out, written after RFC 5802 without the code under test."""

    def hashed(key: bytes, text: bytes) -> bytes:
        return hmac.new(key, text, hash_name).digest()

    salted = hashlib.pbkdf2_hmac(hash_name, password, credential.salt, credential.iterations)
    message = b"the authentication message"
    client_key = hashed(salted, b"Client Key")
    signature = hashed(hashlib.new(hash_name, client_key).digest(), message)
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    expected = hashed(credential.stored_key, message)
    recovered = bytes(a ^ b for a, b in zip(proof, expected, strict=True))
    server_is_known = credential.server_key == hashed(salted, b"Server Key")
    return server_is_known and hashlib.new(hash_name, recovered).digest() == credential.stored_key


@pytest.mark.parametrize(
    ("mechanism", "hash_name"), [("SCRAM-SHA-256", "sha256"), ("SCRAM-SHA-512", "sha512")]
)
def test_the_password_is_the_hmac_in_base64(mechanism: str, hash_name: str) -> None:
    rig = Rig()
    credential = rig.credentials.credential(mechanism, "token", 2_000)
    assert credential is not None
    assert accepts(credential, hash_name, base64.b64encode(rig.hmacs.of("token")))
    assert not accepts(credential, hash_name, rig.hmacs.of("token"))
    assert (credential.owner, credential.expires_at_ms) == (Principal("User", "alice"), 2_000)


def test_a_renewed_token_keeps_its_credential_and_expires_later() -> None:
    rig = Rig()
    before = rig.credentials.credential("SCRAM-SHA-256", "token", 2_000)
    renewed = DelegationTokenRecord(
        owner="User:alice",
        requester="User:carol",
        renewers=[],
        issue_timestamp=1_000,
        max_timestamp=9_000,
        expiration_timestamp=3_000,
        token_id="token",
    )
    rig.tokens.replay(renewed)
    assert before is not None
    after = rig.credentials.credential("SCRAM-SHA-256", "token", 2_000)
    assert after == before._replace(expires_at_ms=3_000)


def test_nobody_logs_in_with_a_token_that_is_expired_or_removed_or_unknown() -> None:
    rig = Rig()
    assert rig.credentials.credential("SCRAM-SHA-256", "token", 2_000)
    assert rig.credentials.credential("SCRAM-SHA-256", "token", 2_001) is None
    assert rig.credentials.credential("SCRAM-SHA-256", "other", 1_500) is None
    rig.tokens.replay_removal(RemoveDelegationTokenRecord(token_id="token"))
    assert rig.credentials.credential("SCRAM-SHA-256", "token", 1_500) is None


def test_tokens_log_in_by_scram_only_and_not_without_a_secret_key() -> None:
    rig = Rig()
    assert rig.credentials.credential("PLAIN", "token", 1_500) is None
    assert TokenCredentials(rig.tokens, None).credential("SCRAM-SHA-256", "token", 1_500) is None
