"""The settings of the share coordinator. Kafka: ShareCoordinatorConfig."""

from typing import Self

from msgspec import Struct

from odradek.config.broker_config import BrokerConfig
from odradek.protocol.compression import CompressionType


class ShareCoordinatorSettings(Struct, frozen=True, kw_only=True):
    """Durations are in milliseconds."""

    updates_per_snapshot: int = 500
    cold_snapshot_interval_ms: int = 300_000
    prune_interval_ms: int = 300_000
    compression: CompressionType = CompressionType.NONE

    @classmethod
    def of(cls, config: BrokerConfig) -> Self:
        return cls(
            updates_per_snapshot=config.share_coordinator_snapshot_update_records_per_snapshot,
            cold_snapshot_interval_ms=config.share_coordinator_cold_partition_snapshot_interval_ms,
            prune_interval_ms=config.share_coordinator_state_topic_prune_interval_ms,
            compression=CompressionType(config.share_coordinator_state_topic_compression_codec),
        )
