"""Keys of streams groups (KIP-1071), and the checks that they agree."""

from .errors import invalid_value
from .key import INT_MAX, Int, KeyModel, key


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


def check_standby_replicas(count: int, most: int) -> None:
    """Raise ConfigError if groups would have more standby replicas than a group may have."""
    if count > most:
        name, bound = "group.streams.num.standby.replicas", "group.streams.max.standby.replicas"
        raise invalid_value(name, count, f"must be at most {bound} ({most})")
