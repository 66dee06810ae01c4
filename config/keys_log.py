"""Keys of the logs: their directories, and the values that topics inherit (see topic_config)."""

import sys
from typing import Annotated, Literal

from .key import (
    LONG_MAX,
    Bool,
    ConfigType,
    Csv,
    Double,
    Int,
    KeyModel,
    Long,
    OptionalCsv,
    OptionalInt,
    OptionalLong,
    key,
)

MAX_ARRAY_BYTES = (1 << 31) - 9  # the longest array that a JVM makes

CompressionName = Annotated[
    Literal["uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"], ConfigType.STRING
]
GzipLevel = Annotated[Literal[-1, 1, 2, 3, 4, 5, 6, 7, 8, 9], ConfigType.INT]
TimestampType = Annotated[Literal["CreateTime", "LogAppendTime"], ConfigType.STRING]
CleanupPolicies = Annotated[tuple[Literal["compact", "delete"], ...], ConfigType.LIST]


class LogKeys(KeyModel):
    """Kafka: ServerLogConfigs, LogConfig.SERVER_CONFIG_DEF, CleanerConfig, ServerConfigs."""

    log_dir: Csv = key(
        ("/tmp/kafka-logs",), "The data directory; used if log.dirs is not set.", not_empty=True
    )
    log_dirs: OptionalCsv = key(None, "The data directories.", not_empty=True)
    log_segment_bytes: Int = key(
        1_073_741_824, "A segment is rolled before it grows beyond this.", ge=1_048_576
    )
    log_roll_ms: OptionalLong = key(None, "A segment is rolled when its first record is this old.")
    log_roll_hours: Int = key(168, "log.roll.ms in hours; used if log.roll.ms is not set.", ge=1)
    log_roll_jitter_ms: OptionalLong = key(
        None, "Maximum random time that is subtracted from log.roll.ms, per segment."
    )
    log_roll_jitter_hours: Int = key(
        0, "log.roll.jitter.ms in hours; used if log.roll.jitter.ms is not set.", ge=0
    )
    log_retention_ms: OptionalLong = key(
        None, "Segments are deleted when their newest record is this old; -1: never."
    )
    log_retention_minutes: OptionalInt = key(
        None, "log.retention.ms in minutes; used if log.retention.ms is not set."
    )
    log_retention_hours: Int = key(
        168, "log.retention.ms in hours; used if neither ms nor minutes is set."
    )
    log_retention_bytes: Long = key(
        -1, "Oldest segments are deleted while a partition is larger; -1: never."
    )
    log_retention_check_interval_ms: Long = key(
        300_000, "How often the retention rules are applied.", ge=1
    )
    log_cleanup_policy: CleanupPolicies = key(
        ("delete",), "What happens to old records: delete, compact, both, or neither."
    )
    log_index_size_max_bytes: Int = key(
        10_485_760, "Size an index is preallocated to; a full index rolls the segment.", ge=4
    )
    log_index_interval_bytes: Int = key(4_096, "Bytes of records between two index entries.", ge=0)
    log_flush_interval_messages: Long = key(
        LONG_MAX, "fsync a partition after this many records.", ge=1
    )
    log_flush_interval_ms: OptionalLong = key(
        None, "fsync a partition when its oldest unsynced record is this old."
    )
    log_flush_scheduler_interval_ms: Long = key(
        LONG_MAX, "How often partitions are checked for a due fsync."
    )
    num_recovery_threads_per_data_dir: Int = key(
        2, "Processes that recover large logs after a crash, per data directory.", ge=1
    )
    log_flush_offset_checkpoint_interval_ms: Int = key(
        60_000, "How often recovery points are written to their checkpoint.", ge=0
    )
    log_flush_start_offset_checkpoint_interval_ms: Int = key(
        60_000, "How often log start offsets are written to their checkpoint.", ge=0
    )
    replica_high_watermark_checkpoint_interval_ms: Long = key(
        5_000, "How often high watermarks are written to their checkpoint."
    )
    log_segment_delete_delay_ms: Long = key(
        60_000, "A deleted file keeps its name plus .deleted for this long.", ge=0
    )
    log_preallocate: Bool = key(False, "Whether a new segment file gets its full size at once.")
    log_initial_task_delay_ms: Long = key(
        30_000, "Delay before the first run of the logs' background tasks.", ge=0, internal=True
    )
    min_insync_replicas: Int = key(
        1, "Number of replicas that acks=all needs; capped by those of the partition.", ge=1
    )
    unclean_leader_election_enable: Bool = key(
        False, "Whether a replica outside the ISR may become leader when the ISR is empty."
    )
    message_max_bytes: Int = key(1_048_588, "The largest record batch that is accepted.", ge=0)
    max_decompressed_message_bytes: Int = key(
        MAX_ARRAY_BYTES,
        "The largest record of a compressed batch, in bytes.",
        ge=1,
        le=MAX_ARRAY_BYTES,
    )
    compression_type: CompressionName = key(
        "producer", "Codec that batches are stored with; producer: the producer's."
    )
    compression_gzip_level: GzipLevel = key(
        -1, "Level if compression.type is gzip; -1: zlib's default."
    )
    compression_lz4_level: Int = key(9, "Level if compression.type is lz4.", ge=1, le=17)
    compression_zstd_level: Int = key(3, "Level if compression.type is zstd.", ge=-131_072, le=22)
    log_message_timestamp_type: TimestampType = key(
        "CreateTime", "Who sets the timestamp: the producer, or the broker (LogAppendTime)."
    )
    log_message_timestamp_before_max_ms: Long = key(
        LONG_MAX, "How far a record's timestamp may be in the past.", ge=0
    )
    log_message_timestamp_after_max_ms: Long = key(
        3_600_000, "How far a record's timestamp may be in the future.", ge=0
    )
    log_cleaner_enable: Bool = key(True, "Whether compaction runs.")
    log_cleaner_threads: Int = key(
        1, "How many logs are compacted at once; at most the number of processors less one.", ge=0
    )
    log_cleaner_io_max_bytes_per_second: Double = key(
        sys.float_info.max, "Maximum bytes per second that compaction reads and writes."
    )
    log_cleaner_dedupe_buffer_size: Long = key(
        134_217_728, "Memory for the tables of keys of all running compactions together."
    )
    log_cleaner_io_buffer_size: Int = key(
        524_288, "Memory for input and output of all running compactions together.", ge=0
    )
    log_cleaner_io_buffer_load_factor: Double = key(
        0.9, "How full a table of keys may get, from 0 to 1."
    )
    log_cleaner_backoff_ms: Long = key(15_000, "Pause when no log is due for compaction.", ge=0)
    log_cleaner_min_cleanable_ratio: Double = key(
        0.5, "A compacted log is cleaned when this share of its bytes is not clean.", ge=0, le=1
    )
    log_cleaner_delete_retention_ms: Long = key(
        86_400_000, "How long compaction keeps tombstones.", ge=0
    )
    log_cleaner_min_compaction_lag_ms: Long = key(
        0, "A record younger than this is not compacted away.", ge=0
    )
    log_cleaner_max_compaction_lag_ms: Long = key(
        LONG_MAX, "A record older than this makes its log due for compaction.", ge=1
    )
    log_local_retention_ms: Long = key(
        -2, "Time that tiered segments stay local; -2: as log.retention.ms.", ge=-2
    )
    log_local_retention_bytes: Long = key(
        -2, "Bytes that tiered partitions keep local; -2: as log.retention.bytes.", ge=-2
    )
    log_remote_copy_lag_ms: Long = key(
        0, "Age before a segment is copied to remote storage; -1: as log.local.retention.ms.", ge=-1
    )
    log_remote_copy_lag_bytes: Long = key(
        -1, "Size before a segment is copied to remote storage; -1: no limit.", ge=-1
    )
