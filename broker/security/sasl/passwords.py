"""Logins by a name and a password, for what is not Kafka's protocol: HTTP.

The users are those of PLAIN of all listeners, and those of SCRAM, of each mechanism that a listener
has enabled. Comparing a password with a SCRAM credential takes milliseconds, in a thread, one at a
time, so that clients that guess cannot hold up others. So a password that was right is remembered,
as a digest, as long as the credential is the same.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
from collections.abc import Callable, Mapping

from odradek.config.broker_config import BrokerConfig
from odradek.config.sasl import PLAIN, sasl_listeners
from odradek.coordinator.metadata.scram_mechanisms import (
    SCRAM_MECHANISMS,
    ScramMechanism,
    keys_of,
    salted,
)

from .plain import encoded, passwords_of
from .scram import DecoyCredentials
from .scram_credential import CredentialOf, DecoyIterations, ScramCredential

_MAX_KNOWN = 1000
_MAX_BYTES = 1024


class Passwords:
    """Checks names and passwords."""

    def __init__(
        self,
        config: Callable[[], BrokerConfig],
        credential_of: CredentialOf,
        decoy_iterations: DecoyIterations,
    ) -> None:
        """`config` returns the configuration that is in force."""
        self._config = config
        self._credential_of = credential_of
        self._decoys = DecoyCredentials(decoy_iterations)
        self._read: BrokerConfig | None = None
        self._are_required = False
        self._plain: list[Mapping[str, bytes]] = []  # of each listener with PLAIN
        self._scram: list[ScramMechanism] = []
        self._secret = secrets.token_bytes(32)
        self._known: dict[str, tuple[ScramCredential, bytes]] = {}
        self._lock = asyncio.Lock()

    @property
    def are_required(self) -> bool:
        """Whether clients of a listener log in. Raises ConfigError."""
        self._read_config()
        return self._are_required

    async def are_right(self, name: str, password: str) -> bool:
        """Whether the user has this password. Raises ConfigError."""
        if not name or not password or max(len(name), len(password)) > _MAX_BYTES:
            return False
        self._read_config()
        given = encoded(password)
        if any(hmac.compare_digest(given, users.get(name, b"")) for users in self._plain):
            return True
        return await self._is_of_scram(name, password)

    def _read_config(self) -> None:
        config = self._config()
        if config is self._read:
            return
        enabled = [each for listener in sasl_listeners(config) for each in listener.mechanisms]
        names = {each.name for each in enabled}
        self._are_required = bool(enabled)
        self._plain = [passwords_of(each.jaas.options) for each in enabled if each.name == PLAIN]
        self._scram = [scram for name, scram in SCRAM_MECHANISMS.items() if name in names]
        self._read = config

    async def _is_of_scram(self, name: str, password: str) -> bool:
        digest = hmac.digest(self._secret, encoded(password), "sha256")
        found = [(each, self._credential_of(each, name, False)) for each in self._scram]
        known, known_digest = self._known.get(name, (None, b""))
        is_same = any(credential == known for _, credential in found if credential is not None)
        if is_same and hmac.compare_digest(known_digest, digest):
            return True
        async with self._lock:
            for mechanism, credential in found:
                # An unknown user takes as long as a known one.
                expected = credential or self._decoys.credential_of(mechanism, name, False)
                is_right = await asyncio.to_thread(_is_right, mechanism, expected, password)
                if is_right and credential is not None:
                    if len(self._known) >= _MAX_KNOWN:
                        self._known.clear()
                    self._known[name] = credential, digest
                    return True
        return False


def _is_right(mechanism: ScramMechanism, credential: ScramCredential, password: str) -> bool:
    salted_password = salted(mechanism, password, credential.salt, credential.iterations)
    return hmac.compare_digest(
        keys_of(mechanism, salted_password).stored_key, credential.stored_key
    )
