"""Keys of consumer groups with the consumer protocol (KIP-848), and checks that they agree."""

from collections.abc import Callable, Iterator
from typing import Annotated, Literal

from .errors import ConfigError, invalid_value
from .key import ANY_CASE, INT_MAX, ConfigType, Csv, Int, KeyModel, key

Protocols = Annotated[
    tuple[Literal["consumer", "classic", "share", "streams"], ...], ConfigType.LIST
]
MigrationPolicy = Annotated[
    Literal["bidirectional", "disabled", "downgrade", "upgrade"], ANY_CASE, ConfigType.STRING
]

ASSIGNORS = ("uniform", "range")
# Kafka also accepts the class names of its own assignors.
_ASSIGNOR_CLASSES = {
    "org.apache.kafka.coordinator.group.assignor.UniformAssignor": "uniform",
    "org.apache.kafka.coordinator.group.assignor.RangeAssignor": "range",
    "org.apache.kafka.coordinator.group.assignor.SimpleAssignor": "simple",
    "org.apache.kafka.coordinator.group.streams.assignor.StickyTaskAssignor": "sticky",
}
_BOUNDED = ("heartbeat.interval.ms", "session.timeout.ms", "assignment.interval.ms")


class ConsumerGroupKeys(KeyModel):
    """Kafka: GroupCoordinatorConfig."""

    group_coordinator_rebalance_protocols: Protocols = key(
        ("classic", "consumer", "streams"), "The group protocols that are served.", not_empty=True
    )
    group_consumer_session_timeout_ms: Int = key(
        45_000, "Session timeout of a consumer group's member.", ge=1
    )
    group_consumer_min_session_timeout_ms: Int = key(
        45_000, "Lower bound of a consumer group's session timeout.", ge=1
    )
    group_consumer_max_session_timeout_ms: Int = key(
        60_000, "Upper bound of a consumer group's session timeout.", ge=1
    )
    group_consumer_heartbeat_interval_ms: Int = key(
        5_000, "Heartbeat interval of a consumer group's member.", ge=1
    )
    group_consumer_min_heartbeat_interval_ms: Int = key(
        5_000, "Lower bound of a consumer group's heartbeat interval.", ge=1
    )
    group_consumer_max_heartbeat_interval_ms: Int = key(
        15_000, "Upper bound of a consumer group's heartbeat interval.", ge=1
    )
    group_consumer_max_size: Int = key(
        INT_MAX, "Maximum number of members of one consumer group.", ge=1
    )
    group_consumer_assignors: Csv = key(
        ASSIGNORS, "The server-side assignors, the default one first.", not_empty=True
    )
    group_consumer_migration_policy: MigrationPolicy = key(
        "bidirectional", "Whether a group may change between the classic and consumer protocol."
    )
    group_consumer_assignment_interval_ms: Int = key(
        1_000, "Minimum time between two assignments of a consumer group.", ge=0
    )
    group_consumer_min_assignment_interval_ms: Int = key(
        0, "Lower bound of a consumer group's assignment interval.", ge=0
    )
    group_consumer_max_assignment_interval_ms: Int = key(
        15_000, "Upper bound of a consumer group's assignment interval.", ge=0
    )
    group_consumer_regex_refresh_interval_ms: Int = key(
        600_000, "How often subscribed patterns are resolved again.", ge=10_000, internal=True
    )


def assignor_name(text: str) -> str:
    """The name of an assignor that is given by name or by class; other texts are unchanged.

    It may be an assignor of any kind of group.
    """
    return _ASSIGNOR_CLASSES.get(text, text)


def check_assignors(names: tuple[str, ...]) -> None:
    """Raise ConfigError unless odradek has all of these assignors."""
    for name in names:
        if assignor_name(name) not in ASSIGNORS:
            allowed = f"must be {' or '.join(ASSIGNORS)}: other Java classes cannot be loaded"
            raise invalid_value("group.consumer.assignors", name, allowed)


def check_protocols(names: tuple[str, ...]) -> None:
    """Raise ConfigError unless the classic protocol is among them."""
    if "classic" not in names:
        name = "group.coordinator.rebalance.protocols"
        raise invalid_value(name, ",".join(names), "the classic protocol cannot be switched off")


def check_intervals(kind: str, number: Callable[[str], int]) -> None:
    """Raise ConfigError unless each value of a kind of group is within its bounds.

    The kind is consumer, share or streams. `number` returns the value of a broker key. The session
    timeout must also be longer than the heartbeat interval.
    """
    for problem in _disagreements(kind, number):
        raise problem


def _disagreements(kind: str, number: Callable[[str], int]) -> Iterator[ConfigError]:
    for rest in _BOUNDED:
        name, least, most = (f"group.{kind}.{part}{rest}" for part in ("", "min.", "max."))
        for greater, smaller in ((most, least), (name, least), (most, name)):
            if number(greater) < number(smaller):
                yield _too_small(greater, number(greater), f"at least {smaller}", number(smaller))
    session, heartbeat = f"group.{kind}.session.timeout.ms", f"group.{kind}.heartbeat.interval.ms"
    if number(session) <= number(heartbeat):
        yield _too_small(session, number(session), f"greater than {heartbeat}", number(heartbeat))


def _too_small(name: str, value: int, allowed: str, bound: int) -> ConfigError:
    return invalid_value(name, value, f"must be {allowed} ({bound})")
