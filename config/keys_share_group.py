"""Keys of share groups (KIP-932), and checks that they agree."""

from collections.abc import Callable

from .errors import invalid_value
from .key import Bool, Csv, Int, KeyModel, Text, key
from .keys_consumer_group import assignor_name, check_intervals

_QUEUE_WRITERS = "org.apache.kafka.server.share.dlq"
QUEUE_WRITER = f"{_QUEUE_WRITERS}.DefaultShareGroupDLQManager"
NO_QUEUE_WRITER = f"{_QUEUE_WRITERS}.NoOpShareGroupDLQManager"

# key -> the keys of its lower and upper bound
_LIMITS = {
    f"group.share.{name}": (f"group.share.min.{name}", f"group.share.max.{name}")
    for name in ("delivery.count.limit", "partition.max.record.locks", "record.lock.duration.ms")
}


class ShareGroupKeys(KeyModel):
    """Kafka: GroupCoordinatorConfig, ShareGroupConfig."""

    group_share_session_timeout_ms: Int = key(
        45_000, "Session timeout of a share group's member.", ge=1
    )
    group_share_min_session_timeout_ms: Int = key(
        45_000, "Lower bound of a share group's session timeout.", ge=1
    )
    group_share_max_session_timeout_ms: Int = key(
        60_000, "Upper bound of a share group's session timeout.", ge=1
    )
    group_share_heartbeat_interval_ms: Int = key(
        5_000, "Heartbeat interval of a share group's member.", ge=1
    )
    group_share_min_heartbeat_interval_ms: Int = key(
        5_000, "Lower bound of a share group's heartbeat interval.", ge=1
    )
    group_share_max_heartbeat_interval_ms: Int = key(
        15_000, "Upper bound of a share group's heartbeat interval.", ge=1
    )
    group_share_max_size: Int = key(
        200, "Maximum number of members of one share group.", ge=1, le=1_000
    )
    group_share_assignors: Csv = key(("simple",), "The share groups' assignor.", not_empty=True)
    group_share_assignment_interval_ms: Int = key(
        1_000, "Minimum time between two assignments of a share group.", ge=0
    )
    group_share_min_assignment_interval_ms: Int = key(
        0, "Lower bound of a share group's assignment interval.", ge=0
    )
    group_share_max_assignment_interval_ms: Int = key(
        15_000, "Upper bound of a share group's assignment interval.", ge=0
    )
    group_share_initialize_retry_interval_ms: Int = key(
        30_000,
        "Delay before the initialization of a share partition is retried.",
        ge=1,
        internal=True,
    )
    group_share_delivery_count_limit: Int = key(
        5, "How often a record is delivered before it is archived.", ge=2, le=10
    )
    group_share_min_delivery_count_limit: Int = key(
        2, "Lower bound of the delivery count limit.", ge=2, le=5
    )
    group_share_max_delivery_count_limit: Int = key(
        10, "Upper bound of the delivery count limit.", ge=5, le=25
    )
    group_share_record_lock_duration_ms: Int = key(
        30_000, "How long a delivered record stays locked.", ge=1_000, le=3_600_000
    )
    group_share_min_record_lock_duration_ms: Int = key(
        15_000, "Lower bound of the lock duration.", ge=1_000, le=30_000
    )
    group_share_max_record_lock_duration_ms: Int = key(
        60_000, "Upper bound of the lock duration.", ge=30_000, le=3_600_000
    )
    group_share_partition_max_record_locks: Int = key(
        2_000, "Maximum number of locked records in a share partition.", ge=100, le=10_000
    )
    group_share_min_partition_max_record_locks: Int = key(
        100, "Lower bound of the number of locked records.", ge=100, le=2_000
    )
    group_share_max_partition_max_record_locks: Int = key(
        4_000, "Upper bound of the number of locked records.", ge=2_000, le=10_000
    )
    group_share_max_share_sessions: Int = key(2_000, "Maximum number of share sessions.", ge=1)
    group_share_dlq_manager_class_name: Text = key(
        QUEUE_WRITER,
        "Java class that writes dead-letter queues; NoOpShareGroupDLQManager writes none.",
        internal=True,
    )
    errors_deadletterqueue_auto_create_topics_enable: Bool = key(
        False, "Whether missing topics of share groups' dead-letter queues are created."
    )
    errors_deadletterqueue_topic_name_prefix: Text = key(
        "dlq.", "What the name of such a topic must begin with."
    )


def check_share_assignors(names: tuple[str, ...]) -> None:
    """Raise ConfigError unless it is the one assignor of share groups."""
    if tuple(map(assignor_name, names)) != ("simple",):
        allowed = "must be simple: other Java classes cannot be loaded"
        raise invalid_value("group.share.assignors", ",".join(names), allowed)


def check_queue_writer(name: str) -> None:
    """Raise ConfigError unless the class is one of Kafka's, or empty."""
    if name not in ("", QUEUE_WRITER, NO_QUEUE_WRITER):
        allowed = f"must be {QUEUE_WRITER} or {NO_QUEUE_WRITER}: other classes cannot be loaded"
        raise invalid_value("group.share.dlq.manager.class.name", name, allowed)


def check_share_groups(number: Callable[[str], int]) -> None:
    """Raise ConfigError if keys contradict each other. `number` returns the value of a key."""
    check_intervals("share", number)
    for name, (least, most) in _LIMITS.items():
        _check_not_more(number, least, name)
        _check_not_more(number, name, most)
    _check_not_more(number, "group.share.max.size", "group.share.max.share.sessions")


def _check_not_more(number: Callable[[str], int], name: str, most: str) -> None:
    if number(name) > number(most):
        raise invalid_value(name, number(name), f"must be at most {most} ({number(most)})")
