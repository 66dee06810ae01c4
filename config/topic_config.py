"""The configuration keys of a topic, and how a topic inherits values from its broker.

A topic's value is the first of these that exists: the value set on the topic, the value of the
corresponding broker key, Kafka's default. Some settings have several broker keys: log.retention.ms
overrides log.retention.minutes, which overrides log.retention.hours.

Kafka: LogConfig, TopicConfig, ServerTopicConfigSynonyms, KafkaConfig.extractLogConfigMap.
"""

from collections.abc import Mapping
from typing import Any

from .errors import ConfigError
from .key import (
    LONG_MAX,
    Bool,
    Csv,
    Double,
    Int,
    KeyModel,
    Long,
    OptionalInt,
    field_name,
    key,
    parse_all,
)
from .keys_log import (
    MAX_ARRAY_BYTES,
    CleanupPolicies,
    CompressionName,
    GzipLevel,
    LogKeys,
    TimestampType,
)


class TopicConfig(KeyModel):
    """The configuration of one topic, complete. Kafka: LogConfig."""

    segment_bytes: Int = key(
        1_073_741_824, "The active segment is rolled before it grows beyond this.", ge=1_048_576
    )
    segment_ms: Long = key(
        604_800_000, "The active segment is rolled when its first record is this old.", ge=1
    )
    segment_jitter_ms: Long = key(
        0, "Maximum random time that is subtracted from segment.ms, per segment.", ge=0
    )
    segment_index_bytes: Int = key(
        10_485_760, "Size an index is preallocated to; a full index rolls the segment.", ge=4
    )
    flush_messages: Long = key(
        LONG_MAX, "fsync after this many records; 1: before each acknowledgement.", ge=1
    )
    flush_ms: Long = key(LONG_MAX, "fsync when the oldest unsynced record is this old.", ge=0)
    retention_bytes: Long = key(
        -1, "Oldest segments are deleted while the partition is larger; -1: never."
    )
    retention_ms: Long = key(
        604_800_000, "Segments are deleted when their newest record is this old; -1: never.", ge=-1
    )
    max_message_bytes: Int = key(1_048_588, "The largest record batch that is accepted.", ge=0)
    max_decompressed_message_bytes: Int = key(
        MAX_ARRAY_BYTES,
        "The largest record of a compressed batch, in bytes.",
        ge=1,
        le=MAX_ARRAY_BYTES,
    )
    index_interval_bytes: Int = key(4_096, "Bytes of records between two index entries.", ge=0)
    delete_retention_ms: Long = key(86_400_000, "How long compaction keeps tombstones.", ge=0)
    min_compaction_lag_ms: Long = key(0, "A record younger than this is not compacted away.", ge=0)
    max_compaction_lag_ms: Long = key(
        LONG_MAX, "A record older than this makes the log due for compaction.", ge=1
    )
    file_delete_delay_ms: Long = key(
        60_000, "A deleted file keeps its name plus .deleted for this long.", ge=0
    )
    min_cleanable_dirty_ratio: Double = key(
        0.5, "The log is cleaned when this share of its bytes is not clean.", ge=0, le=1
    )
    cleanup_policy: CleanupPolicies = key(
        ("delete",), "What happens to old records: delete, compact, both, or neither."
    )
    unclean_leader_election_enable: Bool = key(
        False, "Whether a replica outside the ISR may become leader when the ISR is empty."
    )
    min_insync_replicas: Int = key(
        1, "Number of replicas that acks=all needs; capped by those of the partition.", ge=1
    )
    compression_type: CompressionName = key(
        "producer", "Codec that batches are stored with; producer: the producer's."
    )
    compression_gzip_level: GzipLevel = key(
        -1, "Level if compression.type is gzip; -1: zlib's default."
    )
    compression_lz4_level: Int = key(9, "Level if compression.type is lz4.", ge=1, le=17)
    compression_zstd_level: Int = key(3, "Level if compression.type is zstd.", ge=-131_072, le=22)
    preallocate: Bool = key(False, "Whether a new segment file gets its full size at once.")
    message_timestamp_type: TimestampType = key(
        "CreateTime", "Who sets the timestamp: the producer, or the broker (LogAppendTime)."
    )
    message_timestamp_before_max_ms: Long = key(
        LONG_MAX, "How far a record's timestamp may be in the past.", ge=0
    )
    message_timestamp_after_max_ms: Long = key(
        3_600_000, "How far a record's timestamp may be in the future.", ge=0
    )
    leader_replication_throttled_replicas: Csv = key(
        (), "Replicas that are throttled as leaders, as partition:broker, or *."
    )
    follower_replication_throttled_replicas: Csv = key(
        (), "Replicas that are throttled as followers, as partition:broker, or *."
    )
    remote_storage_enable: Bool = key(
        False, "Whether segments are copied to remote storage: not served."
    )
    local_retention_ms: Long = key(
        -2, "Time that tiered segments stay local; -2: as retention.ms.", ge=-2
    )
    local_retention_bytes: Long = key(
        -2, "Bytes that a tiered partition keeps local; -2: as retention.bytes.", ge=-2
    )
    remote_log_copy_disable: Bool = key(False, "Whether copying to remote storage has stopped.")
    remote_log_delete_on_disable: Bool = key(
        False, "Whether disabling remote storage deletes the segments in it."
    )
    remote_copy_lag_ms: Long = key(
        0, "Age before a segment is copied to remote storage; -1: as local.retention.ms.", ge=-1
    )
    remote_copy_lag_bytes: Long = key(
        -1, "Size before a segment is copied to remote storage; -1: no limit.", ge=-1
    )
    errors_deadletterqueue_group_enable: Bool = key(
        False, "Whether share groups may use the topic as a dead-letter queue."
    )
    internal_segment_bytes: OptionalInt = key(
        None, "segment.bytes without its lower bound, for tests.", internal=True
    )

    @property
    def compact(self) -> bool:
        """Whether old values of a key are removed."""
        return "compact" in self.cleanup_policy

    @property
    def delete(self) -> bool:
        """Whether old segments are deleted by age and size."""
        return "delete" in self.cleanup_policy

    @property
    def segment_size_bytes(self) -> int:
        """The size at which a segment is rolled; internal.segment.bytes is for tests only."""
        return (
            self.segment_bytes
            if self.internal_segment_bytes is None
            else self.internal_segment_bytes
        )

    @property
    def max_segment_ms(self) -> int:
        """The age at which a segment is rolled.

        A compacted log rolls after max.compaction.lag.ms at the latest, because records in the
        active segment are not compacted.
        """
        if self.compact:
            return min(self.segment_ms, self.max_compaction_lag_ms)
        return self.segment_ms


TOPIC_KEYS = TopicConfig.keys

_HOUR_MS = 3_600_000

# topic key -> the broker keys that it inherits from, in order, each with a factor for its unit
BROKER_SYNONYMS: dict[str, tuple[tuple[str, int], ...]] = {
    "segment.bytes": (("log.segment.bytes", 1),),
    "segment.ms": (("log.roll.ms", 1), ("log.roll.hours", _HOUR_MS)),
    "segment.jitter.ms": (("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", _HOUR_MS)),
    "segment.index.bytes": (("log.index.size.max.bytes", 1),),
    "flush.messages": (("log.flush.interval.messages", 1),),
    "flush.ms": (("log.flush.interval.ms", 1), ("log.flush.scheduler.interval.ms", 1)),
    "retention.bytes": (("log.retention.bytes", 1),),
    "retention.ms": (
        ("log.retention.ms", 1),
        ("log.retention.minutes", 60_000),
        ("log.retention.hours", _HOUR_MS),
    ),
    "max.message.bytes": (("message.max.bytes", 1),),
    "max.decompressed.message.bytes": (("max.decompressed.message.bytes", 1),),
    "index.interval.bytes": (("log.index.interval.bytes", 1),),
    "delete.retention.ms": (("log.cleaner.delete.retention.ms", 1),),
    "min.compaction.lag.ms": (("log.cleaner.min.compaction.lag.ms", 1),),
    "max.compaction.lag.ms": (("log.cleaner.max.compaction.lag.ms", 1),),
    "file.delete.delay.ms": (("log.segment.delete.delay.ms", 1),),
    "min.cleanable.dirty.ratio": (("log.cleaner.min.cleanable.ratio", 1),),
    "cleanup.policy": (("log.cleanup.policy", 1),),
    "unclean.leader.election.enable": (("unclean.leader.election.enable", 1),),
    "min.insync.replicas": (("min.insync.replicas", 1),),
    "compression.type": (("compression.type", 1),),
    "compression.gzip.level": (("compression.gzip.level", 1),),
    "compression.lz4.level": (("compression.lz4.level", 1),),
    "compression.zstd.level": (("compression.zstd.level", 1),),
    "preallocate": (("log.preallocate", 1),),
    "message.timestamp.type": (("log.message.timestamp.type", 1),),
    "message.timestamp.before.max.ms": (("log.message.timestamp.before.max.ms", 1),),
    "message.timestamp.after.max.ms": (("log.message.timestamp.after.max.ms", 1),),
    "local.retention.ms": (("log.local.retention.ms", 1),),
    "local.retention.bytes": (("log.local.retention.bytes", 1),),
    "remote.copy.lag.ms": (("log.remote.copy.lag.ms", 1),),
    "remote.copy.lag.bytes": (("log.remote.copy.lag.bytes", 1),),
}


def inherited_topic_config(broker: LogKeys) -> TopicConfig:
    """The configuration of a topic without settings of its own."""
    values: dict[str, Any] = {
        field_name(name): _inherited(broker, synonyms) for name, synonyms in BROKER_SYNONYMS.items()
    }
    values["retention_ms"] = max(values["retention_ms"], -1)
    return TopicConfig(**values)


def _inherited(broker: LogKeys, synonyms: tuple[tuple[str, int], ...]) -> Any:
    for name, factor in synonyms:
        value = getattr(broker, field_name(name))
        if value is not None:
            return value if factor == 1 else value * factor
    raise AssertionError(f"the last of {synonyms} always has a value")


def with_overrides(inherited: TopicConfig, overrides: Mapping[str, str]) -> TopicConfig:
    """The configuration of a topic with stored `overrides`.

    Unknown names are ignored: the data directory may come from a newer Kafka.
    """
    if not overrides:
        return inherited
    values = parse_all(TOPIC_KEYS, overrides)
    return inherited.replace(**{field_name(name): value for name, value in values.items()})


def check_names(overrides: Mapping[str, str]) -> None:
    """Raise ConfigError for the first name that is not a topic key, in Kafka's words."""
    for name in overrides:
        if name not in TOPIC_KEYS:
            raise ConfigError(f"Unknown topic config name: {name}")


def check_together(config: TopicConfig) -> None:
    """Raise ConfigError if values that are valid one by one contradict each other."""
    low, high = config.min_compaction_lag_ms, config.max_compaction_lag_ms
    if low > high:
        raise ConfigError(
            f"conflict topic config setting min.compaction.lag.ms ({low})"
            f" > max.compaction.lag.ms ({high})"
        )
    if config.remote_storage_enable:
        raise ConfigError(
            "Tiered Storage functionality is disabled in the broker:"
            " Invalid value true for configuration remote.storage.enable: must be false"
        )
