"""What says who a client is: logins, the certificates of TLS listeners, and delegation tokens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from odradek.config.broker_config import BrokerConfig
from odradek.coordinator.metadata.delegation_tokens import DelegationTokens
from odradek.coordinator.metadata.token_changes import TokenRules
from odradek.coordinator.metadata.token_hmacs import TokenHmacs

from .sasl.login_listeners import LoginListeners
from .sasl.token_credentials import TokenCredentials

if TYPE_CHECKING:
    from .tls.tls_listeners import TlsListeners  # imported only if used


@dataclass(frozen=True, slots=True)
class Authentication:
    """`tls` is None without TLS listeners."""

    logins: LoginListeners
    tls: TlsListeners | None
    token_rules: TokenRules
    token_credentials: TokenCredentials

    @classmethod
    def of(
        cls,
        config: BrokerConfig,
        logins: LoginListeners,
        tls: TlsListeners | None,
        tokens: DelegationTokens,
        now_ms: Callable[[], int],
    ) -> Authentication:
        """`now_ms` is the wall clock."""
        secret_key = config.delegation_token_secret_key
        hmacs = TokenHmacs(secret_key, tokens) if secret_key else None
        token_rules = TokenRules(
            hmacs=hmacs,
            max_lifetime_ms=config.delegation_token_max_lifetime_ms,
            expiry_time_ms=config.delegation_token_expiry_time_ms,
        )
        return cls(logins, tls, token_rules, TokenCredentials(tokens, hmacs, now_ms))
