"""SCRAM credentials of delegation tokens: the name is the token's id, the password its HMAC.

The HMAC is written in base64. A credential is derived when its token is created, in another thread,
because it takes milliseconds; after a restart, when a client first logs in with the token.
Kafka: DelegationTokenManager.prepareScramCredentials, DelegationTokenCache.
"""

import base64
import secrets
from collections.abc import Callable
from typing import NamedTuple

from odradek.broker.security.principal import parse_principal
from odradek.coordinator.metadata.delegation_tokens import DelegationTokens
from odradek.coordinator.metadata.scram_mechanisms import (
    MIN_ITERATIONS,
    ScramKeys,
    ScramMechanism,
    keys_of,
    salt_of,
    salted,
)
from odradek.coordinator.metadata.token_changes import is_expired
from odradek.coordinator.metadata.token_hmacs import TokenHmacs
from odradek.coordinator.runtime.steps import Step, no_step, stepping

from .exchange import Login
from .scram_credential import ScramCredential


class _Derived(NamedTuple):
    salt: bytes
    keys: ScramKeys


class TokenCredentials:
    """The credentials of all tokens. Without `hmacs` (no secret key) there are none."""

    def __init__(
        self, tokens: DelegationTokens, hmacs: TokenHmacs | None, now_ms: Callable[[], int]
    ) -> None:
        """`now_ms` is the wall clock."""
        self._tokens = tokens
        self._hmacs = hmacs
        self._now_ms = now_ms
        self._derived: dict[tuple[ScramMechanism, str], _Derived] = {}

    def credential_of(self, mechanism: ScramMechanism, token_id: str) -> ScramCredential | None:
        """Return the credential of a token; None if there is no such token, or it has expired."""
        token = self._tokens.by_id.get(token_id)
        if token is None or self._hmacs is None or is_expired(token, self._now_ms()):
            return None
        derived = self._derived.get((mechanism, token_id))
        if derived is None:
            derived = self._derive(self._hmacs, mechanism, token_id)
        login = Login(
            parse_principal(token.owner).name,
            expires_at_ms=token.expiration_timestamp,
            by_token=True,
        )
        return ScramCredential(derived.salt, *derived.keys, MIN_ITERATIONS, login)

    def prepare(self, token_id: str) -> None:
        """Derive the credentials of a new token. May be called in another thread."""
        assert self._hmacs is not None, "there is a new token"
        for mechanism in ScramMechanism:
            self._derive(self._hmacs, mechanism, token_id)

    def _derive(self, hmacs: TokenHmacs, mechanism: ScramMechanism, token_id: str) -> _Derived:
        password = base64.b64encode(hmacs.of(token_id)).decode()
        salt = salt_of(secrets.randbits(130))
        keys = keys_of(mechanism, salted(mechanism, password, salt, MIN_ITERATIONS))
        return self._derived.setdefault((mechanism, token_id), _Derived(salt, keys))

    def forget_removed(self, step: Step = no_step) -> None:
        """Free the credentials of tokens that no longer exist."""
        for mechanism, token_id in stepping(list(self._derived), step):
            if token_id not in self._tokens.by_id:
                self._derived.pop((mechanism, token_id), None)
