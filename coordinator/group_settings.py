"""What the group coordinator is told: the keys of server.properties that concern classic groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..protocol.compression import CompressionType

if TYPE_CHECKING:
    from ..config.broker_config import BrokerConfig

MINUTE_MS = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    """Kafka's GroupCoordinatorConfig, with its defaults."""

    min_session_timeout_ms: int = 6_000
    max_session_timeout_ms: int = 1_800_000
    initial_rebalance_delay_ms: int = 3_000
    max_size: int = 2**31 - 1
    # How long a join of a member that nobody knows yet may stay parked. Not a key of Kafka's.
    new_member_join_timeout_ms: int = 5 * MINUTE_MS
    offset_metadata_max_units: int = 4_096
    offsets_retention_ms: int = 7 * 24 * 60 * MINUTE_MS
    offsets_retention_check_interval_ms: int = 10 * MINUTE_MS
    offsets_topic_compression: CompressionType = CompressionType.NONE

    @classmethod
    def of(cls, config: BrokerConfig) -> GroupSettings:
        """The settings that a broker's configuration says."""
        return cls(
            min_session_timeout_ms=config.group_min_session_timeout_ms,
            max_session_timeout_ms=config.group_max_session_timeout_ms,
            initial_rebalance_delay_ms=config.group_initial_rebalance_delay_ms,
            max_size=config.group_max_size,
            offset_metadata_max_units=config.offset_metadata_max_bytes,
            offsets_retention_ms=config.offsets_retention_minutes * MINUTE_MS,
            offsets_retention_check_interval_ms=config.offsets_retention_check_interval_ms,
            offsets_topic_compression=CompressionType(config.offsets_topic_compression_codec),
        )
