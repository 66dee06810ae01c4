"""Builds the SASL mechanisms of each listener from its configuration."""

from collections.abc import Callable, Mapping
from functools import partial

from odradek.config.sasl import OAUTHBEARER, PLAIN, SaslListener, SaslMechanism
from odradek.coordinator.metadata.scram_mechanisms import SCRAM_MECHANISMS
from odradek.coordinator.runtime.timers import Now

from .authenticator import LoginListener, LoginMechanism
from .exchange import NewExchange
from .oauthbearer import OAuthBearerExchange, Tokens
from .plain import PlainExchange, passwords_of
from .scram import DecoyCredentials, ScramExchange
from .scram_credential import CredentialOf, DecoyIterations
from .token_settings import IssuerKeys, KeySource, expected_claims, key_source
from .unsecured_tokens import UnsecuredTokens


class LoginMechanisms:
    """Builds the mechanisms, again after a change of the configuration.

    They share the decoys that unknown names get (scram.py), also with those that are built later.
    """

    def __init__(
        self,
        credential_of: CredentialOf,
        decoy_iterations: DecoyIterations,
        clock: Callable[[], Now],
    ) -> None:
        self._credential_of = credential_of
        self._clock = clock
        self._decoys = DecoyCredentials(decoy_iterations)

    def listener(
        self,
        listener: SaslListener,
        max_request_bytes: int,
        issuers: dict[KeySource, IssuerKeys],
        *,
        wait_for_keys: bool,
    ) -> LoginListener:
        """What a listener's logins need. Raises ConfigError.

        `issuers` are the keys that are known; those of new sources are added. With `wait_for_keys`
        these are fetched before this returns, otherwise later by their `refresh_if_due`.
        """
        mechanisms = {}
        used = {}
        for mechanism in listener.mechanisms:
            keys = None
            if mechanism.verifies_signatures:
                source = key_source(listener, mechanism)
                if source not in issuers:
                    issuers[source] = self._open(source, issuers, wait=wait_for_keys)
                keys = used[source] = issuers[source]
            exchange = self._exchange_of(listener, mechanism, keys)
            mechanisms[mechanism.name] = LoginMechanism(exchange, mechanism.max_reauth_ms)
        return LoginListener(
            name=listener.name,
            mechanisms=mechanisms,
            max_receive_bytes=listener.max_receive_bytes,
            max_request_bytes=max_request_bytes,
            issuers=used,
        )

    def _open(
        self, source: KeySource, issuers: Mapping[KeySource, IssuerKeys], *, wait: bool
    ) -> IssuerKeys:
        # Imported here: most brokers do not need what it imports.
        from .issuer_keys import open_keys

        # Where only the intervals are new, the keys are still valid.
        same = (issuers[each].keys for each in issuers if each.is_same_place(source))
        return open_keys(source, lambda: self._clock().timer_ms, next(same, ()), wait=wait)

    def _exchange_of(
        self, listener: SaslListener, mechanism: SaslMechanism, keys: IssuerKeys | None
    ) -> NewExchange:
        if mechanism.name == PLAIN:
            return partial(PlainExchange, passwords_of(mechanism.jaas.options))
        if mechanism.name == OAUTHBEARER:
            return partial(OAuthBearerExchange, self._tokens(listener, mechanism, keys))
        scram = SCRAM_MECHANISMS[mechanism.name]
        return partial(ScramExchange, scram, self._credential_of, self._decoys)

    def _tokens(
        self, listener: SaslListener, mechanism: SaslMechanism, keys: IssuerKeys | None
    ) -> Tokens:
        """What checks the tokens of a listener. Without `keys`, tokens are not signed."""
        if keys is None:
            return UnsecuredTokens(mechanism.jaas.options, self._wall_ms)
        # Imported here, because it takes a tenth of a second, and most brokers do not need it.
        from .signed_tokens import SignedTokens

        return SignedTokens(keys, expected_claims(listener), self._wall_ms)

    def _wall_ms(self) -> int:
        return self._clock().wall_ms
