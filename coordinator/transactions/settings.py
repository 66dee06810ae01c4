"""The settings of transactions, from the broker's configuration.

Kafka: TransactionStateManagerConfig.
"""

from typing import Self

from msgspec import Struct

from odradek.config.broker_config import BrokerConfig


class TransactionSettings(Struct, frozen=True, kw_only=True):
    """Durations are in milliseconds."""

    max_timeout_ms: int
    abort_interval_ms: int
    expiration_ms: int
    expiration_interval_ms: int
    two_phase_commit: bool

    @classmethod
    def of(cls, config: BrokerConfig) -> Self:
        return cls(
            max_timeout_ms=config.transaction_max_timeout_ms,
            abort_interval_ms=config.transaction_abort_timed_out_transaction_cleanup_interval_ms,
            expiration_ms=config.transactional_id_expiration_ms,
            expiration_interval_ms=(
                config.transaction_remove_expired_transaction_cleanup_interval_ms
            ),
            two_phase_commit=config.transaction_two_phase_commit_enable,
        )
