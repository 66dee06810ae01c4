"""The keys of server.properties that concern groups.

Keys that can be set on a single group are in modern_groups/group_configs.py.
"""

from enum import StrEnum
from typing import Any, ClassVar, NamedTuple, Self

from msgspec import Struct

from odradek.config.broker_config import BrokerConfig
from odradek.config.keys_consumer_group import assignor_name
from odradek.config.keys_share_group import QUEUE_WRITER
from odradek.protocol.compression import CompressionType

MINUTE_MS = 60_000
# The shortest wait of a group that was empty for more members. Consumers that start together join
# within a few milliseconds. Without a wait the first one gets all partitions, and the second one
# nothing before the next heartbeat of the first, which is three seconds later. In Kafka, without a
# delay, the first join and sync take about as long.
MIN_INITIAL_DELAY_MS = 10


class GroupSettings(Struct, frozen=True, kw_only=True):
    """Kafka's GroupCoordinatorConfig, with its defaults."""

    min_session_timeout_ms: int = 6_000
    max_session_timeout_ms: int = 1_800_000
    initial_rebalance_delay_ms: int = 3_000
    max_size: int = 2**31 - 1
    # How long the first join of a new member may stay parked. Kafka has this as a constant.
    new_member_join_timeout_ms: int = 5 * MINUTE_MS
    offset_metadata_max_units: int = 4_096
    offsets_retention_ms: int = 7 * 24 * 60 * MINUTE_MS
    offsets_retention_check_interval_ms: int = 10 * MINUTE_MS
    offsets_topic_compression: CompressionType = CompressionType.NONE

    @classmethod
    def of(cls, config: BrokerConfig) -> Self:
        """Make the settings of a broker's configuration."""
        return cls(
            min_session_timeout_ms=config.group_min_session_timeout_ms,
            max_session_timeout_ms=config.group_max_session_timeout_ms,
            initial_rebalance_delay_ms=max(
                config.group_initial_rebalance_delay_ms, MIN_INITIAL_DELAY_MS
            ),
            max_size=config.group_max_size,
            offset_metadata_max_units=config.offset_metadata_max_bytes,
            offsets_retention_ms=config.offsets_retention_minutes * MINUTE_MS,
            offsets_retention_check_interval_ms=config.offsets_retention_check_interval_ms,
            offsets_topic_compression=CompressionType(config.offsets_topic_compression_codec),
        )


class MigrationPolicy(StrEnum):
    """Whether a group with members may change its protocol (ConsumerGroupMigrationPolicy)."""

    BIDIRECTIONAL = "bidirectional"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    DISABLED = "disabled"

    @property
    def allows_upgrade(self) -> bool:
        """From the classic protocol to the consumer protocol."""
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.UPGRADE)

    @property
    def allows_downgrade(self) -> bool:
        """From the consumer protocol to the classic protocol."""
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.DOWNGRADE)


class Bounds(NamedTuple):
    """The range of a value, both ends included."""

    min: int
    max: int

    def nearest(self, value: int) -> int:
        """Return the value, or the bound that it exceeds."""
        return max(self.min, min(value, self.max))


_SESSION_TIMEOUT = Bounds(45_000, 60_000)
_HEARTBEAT_INTERVAL = Bounds(5_000, 15_000)
_ASSIGNMENT_INTERVAL = Bounds(0, 15_000)


class ModernGroupSettings(Struct, frozen=True, kw_only=True):
    """The keys group.TYPE.* that consumer, share and streams groups have, with Kafka's defaults."""

    session_timeout_ms: int = 45_000
    session_timeout_bounds: Bounds = _SESSION_TIMEOUT
    heartbeat_interval_ms: int = 5_000
    heartbeat_interval_bounds: Bounds = _HEARTBEAT_INTERVAL
    assignment_interval_ms: int = 1_000
    assignment_interval_bounds: Bounds = _ASSIGNMENT_INTERVAL
    max_size: int = 2**31 - 1

    kind: ClassVar[str]
    """The type of group, as the keys name it."""

    def bounds(self) -> dict[str, Bounds]:
        """Return the bounds of what can be set on a group, by key without the type."""
        return {
            "session.timeout.ms": self.session_timeout_bounds,
            "heartbeat.interval.ms": self.heartbeat_interval_bounds,
            "assignment.interval.ms": self.assignment_interval_bounds,
        }


def _modern_settings(config: BrokerConfig, kind: str) -> dict[str, Any]:
    """Return the values of ModernGroupSettings for a type of group."""

    def number(name: str) -> int:
        value = getattr(config, f"group_{kind}_{name}")
        assert isinstance(value, int)
        return value

    def bounds(name: str) -> Bounds:
        return Bounds(number(f"min_{name}"), number(f"max_{name}"))

    return {
        "session_timeout_ms": number("session_timeout_ms"),
        "session_timeout_bounds": bounds("session_timeout_ms"),
        "heartbeat_interval_ms": number("heartbeat_interval_ms"),
        "heartbeat_interval_bounds": bounds("heartbeat_interval_ms"),
        "assignment_interval_ms": number("assignment_interval_ms"),
        "assignment_interval_bounds": bounds("assignment_interval_ms"),
        "max_size": number("max_size"),
    }


class ShareGroupSettings(ModernGroupSettings, frozen=True, kw_only=True):
    """The keys group.share.*, with Kafka's defaults, which apply to all share groups."""

    kind: ClassVar[str] = "share"

    max_size: int = 200
    initialize_retry_interval_ms: int = 30_000
    max_share_sessions: int = 2_000
    record_lock_duration_ms: int = 30_000
    record_lock_duration_bounds: Bounds = Bounds(15_000, 60_000)
    delivery_count_limit: int = 5
    delivery_count_bounds: Bounds = Bounds(2, 10)
    partition_max_record_locks: int = 2_000
    record_locks_bounds: Bounds = Bounds(100, 4_000)
    writes_queues: bool = True
    """Whether dead-letter queues are written; without, their records are archived only."""
    creates_queues: bool = False
    """Whether missing topics of dead-letter queues are created."""
    queue_prefix: str = "dlq."
    """What the name of such a topic begins with."""

    def bounds(self) -> dict[str, Bounds]:
        """See ModernGroupSettings."""
        return {
            **super().bounds(),
            "record.lock.duration.ms": self.record_lock_duration_bounds,
            "delivery.count.limit": self.delivery_count_bounds,
            "partition.max.record.locks": self.record_locks_bounds,
        }

    @classmethod
    def of(cls, config: BrokerConfig) -> Self:
        """Make the settings of a broker's configuration."""
        return cls(
            **_modern_settings(config, "share"),
            initialize_retry_interval_ms=config.group_share_initialize_retry_interval_ms,
            max_share_sessions=config.group_share_max_share_sessions,
            record_lock_duration_ms=config.group_share_record_lock_duration_ms,
            record_lock_duration_bounds=Bounds(
                config.group_share_min_record_lock_duration_ms,
                config.group_share_max_record_lock_duration_ms,
            ),
            delivery_count_limit=config.group_share_delivery_count_limit,
            delivery_count_bounds=Bounds(
                config.group_share_min_delivery_count_limit,
                config.group_share_max_delivery_count_limit,
            ),
            partition_max_record_locks=config.group_share_partition_max_record_locks,
            record_locks_bounds=Bounds(
                config.group_share_min_partition_max_record_locks,
                config.group_share_max_partition_max_record_locks,
            ),
            writes_queues=config.group_share_dlq_manager_class_name == QUEUE_WRITER,
            creates_queues=config.errors_deadletterqueue_auto_create_topics_enable,
            queue_prefix=config.errors_deadletterqueue_topic_name_prefix,
        )


class ConsumerGroupSettings(ModernGroupSettings, frozen=True, kw_only=True):
    """The keys group.consumer.*, with Kafka's defaults, which apply to all consumer groups."""

    kind: ClassVar[str] = "consumer"

    is_enabled: bool = True
    """Whether the protocol is served at all (group.coordinator.rebalance.protocols)."""
    assignors: tuple[str, ...] = ("uniform", "range")
    """Names; the first is used if no member asks for another."""
    migration_policy: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL
    regex_refresh_interval_ms: int = 10 * MINUTE_MS

    @classmethod
    def of(cls, config: BrokerConfig) -> Self:
        """Make the settings of a broker's configuration."""
        return cls(
            **_modern_settings(config, "consumer"),
            is_enabled="consumer" in config.group_coordinator_rebalance_protocols,
            assignors=tuple(map(assignor_name, config.group_consumer_assignors)),
            migration_policy=MigrationPolicy(config.group_consumer_migration_policy),
            regex_refresh_interval_ms=config.group_consumer_regex_refresh_interval_ms,
        )


class StreamsGroupSettings(ModernGroupSettings, frozen=True, kw_only=True):
    """The keys group.streams.*, with Kafka's defaults, which apply to all streams groups."""

    kind: ClassVar[str] = "streams"

    is_enabled: bool = True
    """Whether the protocol is served at all (group.coordinator.rebalance.protocols)."""
    num_standby_replicas: int = 0
    max_standby_replicas: int = 2
    initial_rebalance_delay_ms: int = 3_000
    task_offset_interval_ms: int = MINUTE_MS
    min_task_offset_interval_ms: int = 15_000
    acceptable_recovery_lag: int = 10_000
    rack_aware_assignment_tags: tuple[str, ...] = ()

    @classmethod
    def of(cls, config: BrokerConfig) -> Self:
        """Make the settings of a broker's configuration."""
        return cls(
            **_modern_settings(config, "streams"),
            is_enabled="streams" in config.group_coordinator_rebalance_protocols,
            num_standby_replicas=config.group_streams_num_standby_replicas,
            max_standby_replicas=config.group_streams_max_standby_replicas,
            initial_rebalance_delay_ms=config.group_streams_initial_rebalance_delay_ms,
            task_offset_interval_ms=config.group_streams_task_offset_interval_ms,
            min_task_offset_interval_ms=config.group_streams_min_task_offset_interval_ms,
            acceptable_recovery_lag=config.group_streams_acceptable_recovery_lag,
            rack_aware_assignment_tags=config.group_streams_rack_aware_assignment_tags,
        )

    def bounds(self) -> dict[str, Bounds]:
        return super().bounds() | {
            "num.standby.replicas": Bounds(0, self.max_standby_replicas),
            "initial.rebalance.delay.ms": Bounds(0, 2**31 - 1),
            "task.offset.interval.ms": Bounds(self.min_task_offset_interval_ms, 2**31 - 1),
            "acceptable.recovery.lag": Bounds(0, 2**63 - 1),
        }
