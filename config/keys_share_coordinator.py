"""Keys of the share coordinator and the topic __share_group_state (KIP-932)."""

from .key import Int, KeyModel, Short, key


class ShareCoordinatorKeys(KeyModel):
    """Kafka: ShareCoordinatorConfig."""

    share_coordinator_snapshot_update_records_per_snapshot: Int = key(
        500, "Number of updates between two snapshots of a share partition.", ge=0, le=500
    )
    share_coordinator_cold_partition_snapshot_interval_ms: Int = key(
        300_000,
        "How often a snapshot of an inactive share partition is written.",
        ge=1,
        internal=True,
    )
    share_coordinator_state_topic_prune_interval_ms: Int = key(
        300_000, "How often __share_group_state is pruned.", ge=1, internal=True
    )
    share_coordinator_state_topic_num_partitions: Int = key(
        50, "Number of partitions of __share_group_state; cannot change later.", ge=1
    )
    share_coordinator_state_topic_replication_factor: Short = key(
        3,
        "Number of replicas of __share_group_state. Not used: 1, or with `odradek.nodes` up to 3.",
        ge=1,
    )
    share_coordinator_state_topic_min_isr: Short = key(
        2, "min.insync.replicas of __share_group_state; without effect on a single node.", ge=1
    )
    share_coordinator_state_topic_segment_bytes: Int = key(
        104_857_600, "segment.bytes of __share_group_state.", ge=1
    )
    share_coordinator_state_topic_compression_codec: Int = key(
        0, "Codec of __share_group_state: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd."
    )
