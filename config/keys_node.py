"""Keys of the node itself, defaults for new topics, and limits for single requests."""

from typing import Annotated, Literal

from .key import Bool, ConfigType, Csv, Int, KeyModel, OptionalText, key

Roles = Annotated[tuple[Literal["broker", "controller"], ...], ConfigType.LIST]


class NodeKeys(KeyModel):
    """Kafka: ServerConfigs, KRaftConfigs, parts of ServerLogConfigs and TransactionLogConfig."""

    node_id: Int = key(0, "This node's id in the cluster; also stored in meta.properties.", ge=0)
    broker_id: Int = key(-1, "The older name of node.id; if both are set they must be equal.")
    broker_rack: OptionalText = key(None, "The rack that this node reports to clients.")
    process_roles: Roles = key(
        ("broker", "controller"),
        "The roles of the process; odradek is always broker and controller in one.",
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
        True, "Whether a Metadata request creates a topic that does not exist."
    )
    delete_topic_enable: Bool = key(True, "Whether topics may be deleted.")
    num_partitions: Int = key(1, "Default number of partitions of a new topic.", ge=1)
    default_replication_factor: Int = key(
        1,
        "Default number of replicas of a new topic. With odradek.nodes above 1 the default is 3.",
    )
    fetch_max_bytes: Int = key(
        57_671_680,
        "Maximum bytes of records in one Fetch response, even if the client asks for more.",
        ge=1_024,
    )
    max_incremental_fetch_session_cache_slots: Int = key(
        1_000, "Maximum number of fetch sessions (KIP-227).", ge=0
    )
    max_request_partition_size_limit: Int = key(
        2_000, "Maximum number of partitions in one DescribeTopicPartitions response.", ge=1
    )
    broker_session_timeout_ms: Int = key(
        9_000,
        "With odradek.nodes: how long after a node stops answering the other nodes treat it as"
        " failed.",
    )
    producer_id_expiration_ms: Int = key(
        86_400_000, "A partition forgets a producer id this long after its last write.", ge=1
    )
    producer_id_expiration_check_interval_ms: Int = key(
        600_000, "How often partitions check for expired producer ids.", ge=1, internal=True
    )
