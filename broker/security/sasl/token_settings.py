"""The settings of OAUTHBEARER with signed tokens: `sasl.oauthbearer.*`, and JAAS options for TLS.

Kafka: BrokerJwtValidator.configure, VerificationKeyResolverFactory, JaasOptionsUtils.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from msgspec import Struct

from odradek.config.errors import ConfigError
from odradek.config.sasl import OAUTHBEARER, SaslListener, SaslMechanism

_TRUST = "ssl.truststore."


Keys = tuple[Mapping[str, Any], ...]


class IssuerKeys(Protocol):
    """The keys of an issuer."""

    keys: Keys  # as they were read last

    def note_missing(self, key_id: str) -> None:
        """Note that a token names a key that is not in the set."""

    def refresh_if_due(self) -> None:
        """Read or fetch the keys, if that is due. A disk thread calls this every second."""


class KeySource(NamedTuple):
    """Where an issuer's keys are, and how often they are fetched.

    `trust` has the settings of a trust store (ssl.truststore.*) with the authorities that sign the
    certificate of the server; without any, those of the system do.
    """

    url: str
    refresh_ms: int
    retry_ms: int
    retry_max_ms: int
    trust: tuple[tuple[str, str], ...] = ()

    def is_same_place(self, other: "KeySource") -> bool:
        """Whether both have the same keys, though perhaps at other intervals."""
        return (self.url, self.trust) == (other.url, other.trust)

    def __repr__(self) -> str:
        return f"KeySource({self.url})"


class ExpectedClaims(Struct, frozen=True, kw_only=True):
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
        trust=_trust(mechanism.jaas.options),
    )


def expected_claims(listener: SaslListener) -> ExpectedClaims:
    """What the signed tokens of a listener must contain. Raises ConfigError.

    The audience and the issuer are checked unless sasl.oauthbearer.allow.unverified.* turns that
    off. Kafka: BrokerJwtValidator.
    """
    for name in ("audience", "issuer"):
        expected, permit = f"expected.{name}", f"allow.unverified.{name}"
        if not _value(listener, expected) and not _value(listener, permit):
            raise ConfigError(
                f"sasl.oauthbearer.{expected} must be set, or sasl.oauthbearer.{permit}=true, which"
                f" accepts tokens regardless of their {name}"
            )
    return ExpectedClaims(
        audiences=_value(listener, "expected.audience"),
        issuer=(_value(listener, "expected.issuer") or "").strip() or None,
        user_claim=_value(listener, "sub.claim.name").strip(),
        scope_claim=_value(listener, "scope.claim.name").strip(),
        skew_s=_value(listener, "clock.skew.seconds"),
    )


def _value(listener: SaslListener, name: str) -> Any:
    return listener.settings.mechanism_value(OAUTHBEARER, f"sasl.oauthbearer.{name}")


def _trust(options: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """The options of the login module that name a trust store."""
    others = [name for name in options if name.startswith("ssl.") and not name.startswith(_TRUST)]
    if others:
        raise ConfigError(
            f"the JAAS options of {OAUTHBEARER} may have a trust store ({_TRUST}*), and no other"
            f" options of TLS: {', '.join(sorted(others))}"
        )
    return tuple(sorted(pair for pair in options.items() if pair[0].startswith(_TRUST)))
