"""Keys of classic groups, committed offsets and the topic __consumer_offsets."""

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
    group_max_size: Int = key(INT_MAX, "Maximum number of members of one group.", ge=1)
    offset_metadata_max_bytes: Int = key(4_096, "Maximum size of a committed offset's metadata.")
    offsets_retention_minutes: Int = key(
        10_080, "How long an empty group's committed offsets are kept.", ge=1
    )
    offsets_retention_check_interval_ms: Long = key(
        600_000, "How often committed offsets are checked for expiry.", ge=1
    )
    offsets_topic_num_partitions: Int = key(
        50, "Number of partitions of __consumer_offsets; cannot change later.", ge=1
    )
    offsets_topic_replication_factor: Short = key(
        3,
        "Number of replicas of __consumer_offsets. Not used: 1, or with `odradek.nodes` up to 3.",
        ge=1,
    )
    offsets_topic_segment_bytes: Int = key(
        104_857_600, "segment.bytes of __consumer_offsets.", ge=1
    )
    offsets_topic_compression_codec: Int = key(
        0, "Codec of __consumer_offsets: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.", ge=0, le=4
    )
