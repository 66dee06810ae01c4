"""Keys of the metadata log: its segments, its snapshots, and their retention."""

from .key import Int, KeyModel, Long, OptionalInt, key


class MetadataKeys(KeyModel):
    """Kafka: MetadataLogConfig, KRaftConfigs."""

    metadata_log_max_record_bytes_between_snapshots: Long = key(
        20_971_520, "Bytes of metadata log after which a snapshot is written.", ge=1
    )
    metadata_log_max_snapshot_interval_ms: Long = key(
        3_600_000, "Time after which a metadata snapshot is written; 0: size alone decides.", ge=0
    )
    metadata_log_segment_bytes: Int = key(
        1_073_741_824, "A segment of the metadata log is rolled at this size.", ge=8_388_608
    )
    metadata_log_segment_ms: Long = key(
        604_800_000, "A segment of the metadata log is rolled at this age."
    )
    metadata_max_retention_bytes: Long = key(
        104_857_600, "Old metadata segments and snapshots are deleted above this size; -1: never."
    )
    metadata_max_retention_ms: Long = key(
        604_800_000, "Metadata segments and snapshots are deleted at this age; -1: never."
    )
    internal_metadata_log_segment_bytes: OptionalInt = key(
        None, "metadata.log.segment.bytes without its lower bound, for tests.", internal=True
    )
    internal_metadata_max_batch_size_in_bytes: Int = key(
        8_388_608, "Largest batch of the metadata log, for tests.", internal=True
    )
    internal_metadata_delete_delay_millis: Long = key(
        60_000, "Delay before old metadata files are deleted, for tests.", internal=True
    )
