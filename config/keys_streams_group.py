"""Keys of streams groups (KIP-1071), and the checks that they agree."""

from collections.abc import Callable, Mapping

from .errors import ConfigError, invalid_value
from .key import INT_MAX, Csv, Int, KeyModel, Long, key
from .keys_consumer_group import assignor_name, check_intervals

_RACK_TAGS = "group.streams.rack.aware.assignment.tags"


class StreamsGroupKeys(KeyModel):
    """Kafka: GroupCoordinatorConfig."""

    group_streams_session_timeout_ms: Int = key(
        45_000, "Session timeout of a streams group's member.", ge=1
    )
    group_streams_min_session_timeout_ms: Int = key(
        45_000, "Lower bound of a streams group's session timeout.", ge=1
    )
    group_streams_max_session_timeout_ms: Int = key(
        60_000, "Upper bound of a streams group's session timeout.", ge=1
    )
    group_streams_heartbeat_interval_ms: Int = key(
        5_000, "Heartbeat interval of a streams group's member.", ge=1
    )
    group_streams_min_heartbeat_interval_ms: Int = key(
        5_000, "Lower bound of a streams group's heartbeat interval.", ge=1
    )
    group_streams_max_heartbeat_interval_ms: Int = key(
        15_000, "Upper bound of a streams group's heartbeat interval.", ge=1
    )
    group_streams_max_size: Int = key(
        INT_MAX, "Maximum number of members of one streams group.", ge=1
    )
    group_streams_num_standby_replicas: Int = key(
        0, "Number of standby replicas of a streams group's tasks.", ge=0
    )
    group_streams_max_standby_replicas: Int = key(
        2, "Upper bound of a streams group's number of standby replicas.", ge=0
    )
    group_streams_num_warmup_replicas: Int = key(
        2, "Number of warm-up replicas of a streams group's tasks.", ge=0, internal=True
    )
    group_streams_max_warmup_replicas: Int = key(
        20, "Upper bound of a streams group's number of warm-up replicas.", ge=0, internal=True
    )
    group_streams_task_offset_interval_ms: Int = key(
        60_000,
        "How often a streams group's member reports offsets of its tasks.",
        ge=1,
        internal=True,
    )
    group_streams_min_task_offset_interval_ms: Int = key(
        15_000, "Lower bound of a streams group's task offset interval.", ge=1, internal=True
    )
    group_streams_acceptable_recovery_lag: Long = key(
        10_000,
        "How many offsets behind a member's state may be for it to get the task as active.",
        ge=0,
        internal=True,
    )
    group_streams_rack_aware_assignment_tags: Csv = key(
        (), "Client tags over which standby replicas are spread."
    )
    group_streams_assignors: Csv = key(
        ("sticky",), "The streams groups' assignors; a group's is the first.", not_empty=True
    )
    group_streams_initial_rebalance_delay_ms: Int = key(
        3_000, "How long a new streams group waits for more members.", ge=0
    )
    group_streams_assignment_interval_ms: Int = key(
        1_000, "Minimum time between two assignments of a streams group.", ge=0
    )
    group_streams_min_assignment_interval_ms: Int = key(
        0, "Lower bound of a streams group's assignment interval.", ge=0
    )
    group_streams_max_assignment_interval_ms: Int = key(
        15_000, "Upper bound of a streams group's assignment interval.", ge=0
    )


def check_streams_groups(number: Callable[[str], int], texts: Mapping[str, str]) -> None:
    """Raise ConfigError if keys contradict each other.

    `number` returns the value of a key, `texts` has what is written.
    """
    check_intervals("streams", number)
    for name in ("standby", "warmup"):
        count, most = f"group.streams.num.{name}.replicas", f"group.streams.max.{name}.replicas"
        if number(count) > number(most):
            raise invalid_value(count, number(count), f"must be at most {most} ({number(most)})")
    interval = "group.streams.task.offset.interval.ms"
    least = "group.streams.min.task.offset.interval.ms"
    if number(interval) < number(least):
        text = f"must be at least {least} ({number(least)})"
        raise invalid_value(interval, number(interval), text)
    check_distinct(_RACK_TAGS, texts.get(_RACK_TAGS, ""))


def check_distinct(name: str, text: str) -> None:
    """Raise ConfigError if a list of client tags has one twice."""
    tags = [tag.strip() for tag in text.split(",")]
    if len(set(tags)) != len(tags):
        raise ConfigError(f"{name} must not contain duplicate tag keys.")


def check_streams_assignors(names: tuple[str, ...]) -> None:
    """Raise ConfigError unless it is the one assignor of streams groups, listed once."""
    if tuple(map(assignor_name, names)) != ("sticky",):
        allowed = "must be sticky: other Java classes cannot be loaded"
        raise invalid_value("group.streams.assignors", ",".join(names), allowed)
