"""Logins by a name and a password, for what is not Kafka's protocol: HTTP.

The users are those of PLAIN and SCRAM, of each mechanism that a listener has enabled. To compare a
password with a SCRAM credential takes milliseconds, in a thread, one at a time, so that clients
that guess cannot hold up others. So a password that was right is remembered, as a digest, as long
as the credential is the same.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
from collections.abc import Callable, Iterable

from odradek.config.broker_config import BrokerConfig
from odradek.config.sasl import PLAIN, SaslMechanism, sasl_listeners
from odradek.coordinator.metadata.scram_mechanisms import (
    MIN_ITERATIONS,
    SCRAM_MECHANISMS,
    ScramMechanism,
    keys_of,
    salted,
)

from .plain import passwords_of
from .scram_credential import CredentialOf, ScramCredential

_MOST_KNOWN = 1000
_MOST_BYTES = 1024


class Passwords:
    """Checks names and passwords."""

    def __init__(self, config: Callable[[], BrokerConfig], credential_of: CredentialOf) -> None:
        """`config` returns the configuration that is in force."""
        self._config = config
        self._credential_of = credential_of
        self._read: BrokerConfig | None = None
        self._mechanisms: dict[str, SaslMechanism] = {}
        self._secret = secrets.token_bytes(32)
        self._known: dict[str, tuple[ScramCredential, bytes]] = {}
        self._lock = asyncio.Lock()

    @property
    def are_required(self) -> bool:
        """Whether clients of a listener log in. Raises ConfigError."""
        return bool(self._enabled())

    async def are_right(self, name: str, password: str) -> bool:
        """Whether the user has this password. Raises ConfigError."""
        if not name or not password or max(len(name), len(password)) > _MOST_BYTES:
            return False
        mechanisms = self._enabled()
        plain = mechanisms.get(PLAIN)
        if plain is not None:
            expected = passwords_of(plain.jaas.options).get(name, b"")
            if hmac.compare_digest(_encoded(password), expected):
                return True
        scram = [SCRAM_MECHANISMS[each] for each in mechanisms if each in SCRAM_MECHANISMS]
        return bool(scram) and await self._is_of_scram(scram, name, password)

    def _enabled(self) -> dict[str, SaslMechanism]:
        config = self._config()
        if config is not self._read:
            self._mechanisms = {
                mechanism.name: mechanism
                for listener in sasl_listeners(config)
                for mechanism in listener.mechanisms
            }
            self._read = config
        return self._mechanisms

    async def _is_of_scram(
        self, mechanisms: Iterable[ScramMechanism], name: str, password: str
    ) -> bool:
        digest = hmac.digest(self._secret, _encoded(password), "sha256")
        found = [(each, self._credential_of(each, name, False)) for each in mechanisms]
        known, known_digest = self._known.get(name, (None, b""))
        is_same = any(credential == known for _, credential in found if credential is not None)
        if is_same and hmac.compare_digest(known_digest, digest):
            return True
        async with self._lock:
            for mechanism, credential in found:
                if await asyncio.to_thread(_is_right, mechanism, credential, password):
                    if len(self._known) >= _MOST_KNOWN:
                        self._known.clear()
                    assert credential is not None
                    self._known[name] = credential, digest
                    return True
        return False


def _is_right(mechanism: ScramMechanism, credential: ScramCredential | None, password: str) -> bool:
    if credential is None:  # an unknown user takes as long as a known one
        salted(mechanism, password, b"salt", MIN_ITERATIONS)
        return False
    salted_password = salted(mechanism, password, credential.salt, credential.iterations)
    return hmac.compare_digest(
        keys_of(mechanism, salted_password).stored_key, credential.stored_key
    )


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
