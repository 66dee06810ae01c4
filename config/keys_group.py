"""Keys of consumer groups and of the topic that keeps their offsets."""

from .key import INT_MAX, Int, KeyModel, Long, Short, key


class GroupKeys(KeyModel):
    """Kafka: GroupCoordinatorConfig."""

    group_initial_rebalance_delay_ms: Int = key(
        3_000, "How long an empty group waits for more members to join."
    )
    group_min_session_timeout_ms: Int = key(
        6_000, "The shortest session timeout a member may ask for."
    )
    group_max_session_timeout_ms: Int = key(
        1_800_000, "The longest session timeout a member may ask for."
    )
    group_max_size: Int = key(INT_MAX, "Most members of one group.", ge=1)
    offset_metadata_max_bytes: Int = key(4_096, "Longest text that may go with a committed offset.")
    offsets_retention_minutes: Int = key(
        10_080, "How long an empty group's committed offsets are kept.", ge=1
    )
    offsets_retention_check_interval_ms: Long = key(
        600_000, "How often committed offsets are looked at for expiry.", ge=1
    )
    offsets_topic_num_partitions: Int = key(
        50, "Partitions of __consumer_offsets, fixed when it is created.", ge=1
    )
    offsets_topic_replication_factor: Short = key(
        3, "Replicas of __consumer_offsets (one node: 1).", ge=1
    )
    offsets_topic_segment_bytes: Int = key(
        104_857_600, "segment.bytes of __consumer_offsets.", ge=1
    )
    offsets_topic_compression_codec: Int = key(
        0, "Codec of __consumer_offsets: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.", ge=0, le=4
    )
