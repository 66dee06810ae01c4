"""The configuration keys of a group, and their bounds (KIP-848, KIP-1043).

A group's value is the one set on the group, else the broker's value of the key with the prefix
`group.`. Of the broker's values only the assignment intervals can change while it runs. The bounds
are broker keys, too: `group.consumer.min.…` and `group.consumer.max.…`.

Kafka: GroupConfig; GroupCoordinatorConfig and ShareGroupConfig for the bounds.
"""

import re
from collections.abc import Mapping

from .broker_config import BrokerConfig
from .broker_keys import broker_value
from .errors import ConfigError, invalid_value
from .key import Value, parse_all
from .key_table import read_table

GROUP_KEYS = read_table("""\
consumer.session.timeout.ms INT 45000 1..
    Session timeout of a consumer group's member.
consumer.heartbeat.interval.ms INT 5000 1..
    Heartbeat interval of a consumer group's member.
consumer.assignment.interval.ms INT 1000 0..
    Minimum time between two assignments of a consumer group.
share.session.timeout.ms INT 45000 1..
    Session timeout of a share group's member.
share.heartbeat.interval.ms INT 5000 1..
    Heartbeat interval of a share group's member.
share.record.lock.duration.ms INT 30000 1000..
    How long a record delivered to a share group stays locked.
share.delivery.count.limit INT 5 2..
    How often a record is delivered to a share group before it is archived.
share.partition.max.record.locks INT 2000 100..
    Maximum number of locked records of a share group in one partition.
share.auto.offset.reset STRING latest
    The first offset of a share group: earliest, latest, or by_duration:PnDTnHnMn.nS before now.
share.isolation.level STRING read_uncommitted read_committed|read_uncommitted
    Whether a share group sees records of aborted and open transactions.
share.renew.acknowledge.enable BOOLEAN true
    Whether a member of a share group may renew its locks.
share.assignment.interval.ms INT 1000 0..
    Minimum time between two assignments of a share group.
streams.session.timeout.ms INT 45000 1..
    Session timeout of a streams group's member.
streams.heartbeat.interval.ms INT 5000 1..
    Heartbeat interval of a streams group's member.
streams.num.standby.replicas INT 0 0..
    Number of standby replicas of a streams group's tasks.
streams.initial.rebalance.delay.ms INT 3000 0..
    How long a new streams group waits for more members.
streams.assignment.interval.ms INT 1000 0..
    Minimum time between two assignments of a streams group.
""")

_WITHOUT_SYNONYM = frozenset(
    {"share.auto.offset.reset", "share.isolation.level", "share.renew.acknowledge.enable"}
)
# group key -> the broker key that it inherits from
GROUP_SYNONYMS = {name: f"group.{name}" for name in GROUP_KEYS if name not in _WITHOUT_SYNONYM}
_INHERITED_WHILE_RUNNING = frozenset(
    name for name in GROUP_KEYS if name.endswith(".assignment.interval.ms")
)

NO_SETTINGS: Mapping[str, str] = {}

_BOUNDED = (
    "consumer.heartbeat.interval.ms",
    "consumer.session.timeout.ms",
    "consumer.assignment.interval.ms",
    "share.heartbeat.interval.ms",
    "share.session.timeout.ms",
    "share.record.lock.duration.ms",
    "share.delivery.count.limit",
    "share.partition.max.record.locks",
    "share.assignment.interval.ms",
    "streams.heartbeat.interval.ms",
    "streams.session.timeout.ms",
    "streams.assignment.interval.ms",
)
_DURATION = re.compile(
    r"by_duration:\+?P(?=.)(\+?\d+D)?(T(?=.)(\+?\d+H)?(\+?\d+M)?(\+?\d+([.,]\d{0,9})?S)?)?",
    re.IGNORECASE | re.ASCII,
)


def group_values(
    broker: BrokerConfig, overrides: Mapping[str, str], settings: Mapping[str, str] = NO_SETTINGS
) -> dict[str, Value]:
    """The value of each key for a group on which `overrides` are set; unknown names are ignored.

    `settings` are the dynamic settings of the broker: they override its file. Raises ConfigError
    for an invalid value.
    """
    values = {name: _inherited(broker, settings, name) for name in GROUP_KEYS}
    return values | parse_all(GROUP_KEYS, overrides)


def _inherited(broker: BrokerConfig, settings: Mapping[str, str], name: str) -> Value:
    synonym = GROUP_SYNONYMS.get(name)
    if synonym is None:
        return GROUP_KEYS[name].default
    if synonym in settings:
        return GROUP_KEYS[name].parse(settings[synonym])
    return broker_value(broker, synonym)


def check_group(broker: BrokerConfig, overrides: Mapping[str, str]) -> None:
    """Raise ConfigError unless a group may have these overrides on this broker."""
    for name in overrides:
        if name not in GROUP_KEYS:
            raise ConfigError(f"Unknown group config name: {name}")
    values = group_values(broker, overrides)
    _check_offset_reset(str(values["share.auto.offset.reset"]))
    for name in _BOUNDED:
        if name in overrides or name not in _INHERITED_WHILE_RUNNING:
            _check_bounds(broker, name, _int(values[name]))
    standby = "streams.num.standby.replicas"
    _check_most(broker, standby, _int(values[standby]), "group.streams.max.standby.replicas")
    for kind in ("consumer", "share", "streams"):
        session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        if _int(values[session]) <= _int(values[heartbeat]):
            raise ConfigError(f"{session} must be greater than {heartbeat}")


def _check_offset_reset(text: str) -> None:
    if text not in ("earliest", "latest") and not _DURATION.fullmatch(text):
        raise invalid_value(
            "share.auto.offset.reset",
            text,
            "must be earliest, latest, or by_duration:<PnDTnHnMn.nS>",
        )


def _check_bounds(broker: BrokerConfig, name: str, value: int) -> None:
    """`consumer.x` must be from `group.consumer.min.x` to `group.consumer.max.x`."""
    kind, _, rest = name.partition(".")
    least = f"group.{kind}.min.{rest}"
    if value < _int(broker_value(broker, least)):
        raise ConfigError(f"{name} must be greater than or equal to {least}")
    _check_most(broker, name, value, f"group.{kind}.max.{rest}")


def _check_most(broker: BrokerConfig, name: str, value: int, most: str) -> None:
    if value > _int(broker_value(broker, most)):
        raise ConfigError(f"{name} must be less than or equal to {most}")


def _int(value: Value) -> int:
    assert isinstance(value, int)
    return value
