"""The SCRAM credentials of delegation tokens, and a client that logs in with one."""

import base64
import hashlib
import hmac

import msgspec
import pytest

from odradek.broker.security.sasl.exchange import Login
from odradek.broker.security.sasl.scram_credential import ScramCredential
from odradek.broker.security.sasl.token_credentials import TokenCredentials
from odradek.coordinator.metadata.delegation_tokens import DelegationTokens
from odradek.coordinator.metadata.scram_mechanisms import ScramMechanism
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
    def __init__(self, now_ms: int = 2_000) -> None:
        self.now_ms = now_ms
        self.tokens = DelegationTokens()
        self.tokens.replay(TOKEN)
        self.hmacs = TokenHmacs("secret", self.tokens)
        self.credentials = TokenCredentials(self.tokens, self.hmacs, lambda: self.now_ms)


def accepts(credential: ScramCredential, hash_name: str, password: bytes) -> bool:
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


@pytest.mark.parametrize("mechanism", ScramMechanism)
@pytest.mark.parametrize("prepared", [False, True])
def test_the_password_is_the_hmac_in_base64(mechanism: ScramMechanism, prepared: bool) -> None:
    rig = Rig()
    if prepared:
        rig.credentials.prepare("token")
    credential = rig.credentials.credential_of(mechanism, "token")
    assert credential is not None
    assert accepts(credential, mechanism.hash_name, base64.b64encode(rig.hmacs.of("token")))
    assert not accepts(credential, mechanism.hash_name, rig.hmacs.of("token"))
    assert credential.login == Login("alice", expires_at_ms=2_000, by_token=True)


def test_a_renewed_token_keeps_its_credential_and_expires_later() -> None:
    rig = Rig()
    before = rig.credentials.credential_of(ScramMechanism.SHA_256, "token")
    rig.tokens.replay(msgspec.structs.replace(TOKEN, expiration_timestamp=3_000))
    after = rig.credentials.credential_of(ScramMechanism.SHA_256, "token")
    assert before is not None
    assert after == before._replace(login=before.login._replace(expires_at_ms=3_000))


def test_nobody_logs_in_with_a_token_that_is_expired_or_removed_or_unknown() -> None:
    rig = Rig()
    mechanism = ScramMechanism.SHA_256
    assert rig.credentials.credential_of(mechanism, "token")
    assert rig.credentials.credential_of(mechanism, "other") is None
    rig.now_ms = 2_001
    assert rig.credentials.credential_of(mechanism, "token") is None
    rig.now_ms = 1_500
    rig.tokens.replay_removal(RemoveDelegationTokenRecord(token_id="token"))
    assert rig.credentials.credential_of(mechanism, "token") is None


def test_credentials_of_removed_tokens_are_freed() -> None:
    rig = Rig()
    rig.credentials.prepare("token")
    rig.credentials.forget_removed()
    assert len(rig.credentials._derived) == len(ScramMechanism)
    rig.tokens.replay_removal(RemoveDelegationTokenRecord(token_id="token"))
    rig.credentials.forget_removed()
    assert not rig.credentials._derived


def test_nobody_logs_in_with_a_token_without_the_secret_key() -> None:
    credentials = TokenCredentials(Rig().tokens, None, lambda: 1_500)
    assert credentials.credential_of(ScramMechanism.SHA_256, "token") is None
