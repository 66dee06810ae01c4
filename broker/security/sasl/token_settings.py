"""The settings of OAUTHBEARER with signed tokens: `sasl.oauthbearer.*`, and JAAS options for TLS.

Kafka: BrokerJwtValidator.configure, VerificationKeyResolverFactory, JaasOptionsUtils.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from odradek.config.errors import ConfigError
from odradek.config.sasl import OAUTHBEARER, SaslListener, SaslMechanism

_TRUST = ("ssl.truststore.type", "ssl.truststore.location")


Keys = tuple[Mapping[str, Any], ...]


class IssuerKeys(Protocol):
    """The keys of an issuer."""

    keys: Keys  # the newest

    def note_missing(self, key_id: str) -> None:
        """Note that a token names a key that is not in the set."""

    def refresh_if_due(self) -> None:
        """Read or fetch the keys, if that is due. A disk thread calls this every second."""


class KeySource(NamedTuple):
    """Where an issuer's keys are, and how often they are fetched.

    `ca_file` has the authorities that sign the certificate of the server.
    """

    url: str
    refresh_ms: int
    retry_ms: int
    retry_max_ms: int
    ca_file: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedClaims:
    """What a token must contain. An audience or issuer is expected unless it is empty or None."""

    audiences: tuple[str, ...]
    issuer: str | None
    user_claim: str
    scope_claim: str
    skew_s: int


def key_source(listener: SaslListener, mechanism: SaslMechanism) -> KeySource:
    """Where the keys are that verify the tokens of a listener. Raises ConfigError."""
    return KeySource(
        url=_value(listener, "jwks.endpoint.url").strip(),
        refresh_ms=_value(listener, "jwks.endpoint.refresh.ms"),
        retry_ms=_value(listener, "jwks.endpoint.retry.backoff.ms"),
        retry_max_ms=_value(listener, "jwks.endpoint.retry.backoff.max.ms"),
        ca_file=_authorities(mechanism.jaas.options),
    )


def expected_claims(listener: SaslListener) -> ExpectedClaims:
    """What the signed tokens of a listener must contain. Raises ConfigError."""
    return ExpectedClaims(
        audiences=_value(listener, "expected.audience"),
        issuer=(_value(listener, "expected.issuer") or "").strip() or None,
        user_claim=_value(listener, "sub.claim.name").strip(),
        scope_claim=_value(listener, "scope.claim.name").strip(),
        skew_s=_value(listener, "clock.skew.seconds"),
    )


def _value(listener: SaslListener, name: str) -> Any:
    return listener.settings.mechanism_value(OAUTHBEARER, f"sasl.oauthbearer.{name}")


def _authorities(options: Mapping[str, str]) -> str | None:
    """The file of the authorities that sign the certificate of the issuer's server."""
    file, kind = options.get("ssl.truststore.location"), options.get("ssl.truststore.type")
    others = [name for name in options if name.startswith("ssl.") and name not in _TRUST]
    if others or (file is not None and kind != "PEM"):
        raise ConfigError(
            f"the JAAS options of {OAUTHBEARER} may have ssl.truststore.location with"
            " ssl.truststore.type=PEM, and no other option of TLS"
        )
    return file
