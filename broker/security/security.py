"""Groups the objects that decide who a client is and what it may do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from odradek.config.broker_config import BrokerConfig
from odradek.coordinator.metadata.cluster_metadata import ClusterMetadata
from odradek.coordinator.metadata.token_changes import TokenRules
from odradek.coordinator.metadata.token_hmacs import TokenHmacs

from .authorizer import AclAuthorizer, Authorizer
from .sasl.login_listeners import LoginListeners
from .sasl.token_credentials import TokenCredentials

if TYPE_CHECKING:
    from .tls.tls_listeners import TlsListeners  # imported only if used


@dataclass(slots=True)
class Security:
    """Logins by SASL, the certificates of TLS listeners, delegation tokens, and ACLs.

    `tls` is None without TLS listeners.
    """

    authorizer: Authorizer
    logins: LoginListeners
    tls: TlsListeners | None
    token_rules: TokenRules
    token_credentials: TokenCredentials

    @classmethod
    def of(
        cls,
        config: BrokerConfig,
        metadata: ClusterMetadata,
        logins: LoginListeners,
        tls: TlsListeners | None,
        now_ms: Callable[[], int],
    ) -> Security:
        """`now_ms` is the wall clock."""
        rules = config.authorizer
        tokens, secret_key = metadata.delegation_tokens, config.delegation_token_secret_key
        hmacs = TokenHmacs(secret_key, tokens) if secret_key else None
        return cls(
            authorizer=Authorizer() if rules is None else AclAuthorizer(metadata.acls, rules),
            logins=logins,
            tls=tls,
            token_rules=TokenRules(
                hmacs=hmacs,
                max_lifetime_ms=config.delegation_token_max_lifetime_ms,
                expiry_time_ms=config.delegation_token_expiry_time_ms,
            ),
            token_credentials=TokenCredentials(tokens, hmacs, now_ms),
        )
