"""Keys of the node itself, of its topics' defaults, and of what one request may ask."""

from typing import Annotated, Literal

from .key import Bool, ConfigType, Csv, Int, KeyModel, OptionalText, key

Roles = Annotated[tuple[Literal["broker", "controller"], ...], ConfigType.LIST]


class NodeKeys(KeyModel):
    """Kafka: ServerConfigs, KRaftConfigs, parts of ServerLogConfigs and TransactionLogConfig."""

    node_id: Int = key(0, "This node's id in the cluster; meta.properties remembers it.", ge=0)
    broker_id: Int = key(-1, "The older name of node.id; both must agree where both are written.")
    broker_rack: OptionalText = key(None, "The rack this node says it stands in.")
    process_roles: Roles = key(
        (
            "broker",
            "controller",
        ),
        "The roles of the process; odradek is broker and controller in one.",
        not_empty=True,
    )
    controller_listener_names: Csv = key(
        (), "Listeners of the controller quorum: accepted, never opened."
    )
    metadata_log_dir: OptionalText = key(
        None, "Directory of __cluster_metadata-0; unset: the first of log.dirs."
    )
    cordoned_log_dirs: Csv = key((), "Data directories that get no new replicas; *: all.")
    auto_create_topics_enable: Bool = key(
        True, "Whether a Metadata request creates a topic that is missing."
    )
    delete_topic_enable: Bool = key(True, "Whether topics may be deleted.")
    num_partitions: Int = key(1, "Partitions of a topic whose creator did not say how many.", ge=1)
    default_replication_factor: Int = key(
        1, "Replicas of a topic whose creator did not say how many (one node: 1)."
    )
    fetch_max_bytes: Int = key(
        57_671_680,
        "Most bytes that one Fetch response carries, whatever the client asks.",
        ge=1_024,
    )
    max_incremental_fetch_session_cache_slots: Int = key(
        1_000, "Most fetch sessions (KIP-227) kept at once.", ge=0
    )
    max_request_partition_size_limit: Int = key(
        2_000, "Most partitions that one DescribeTopicPartitions answer lists.", ge=1
    )
    producer_id_expiration_ms: Int = key(
        86_400_000, "Time after its last write at which a partition forgets a producer id.", ge=1
    )
    producer_id_expiration_check_interval_ms: Int = key(
        600_000, "How often partitions look for producer ids to forget.", ge=1, internal=True
    )
