"""The configuration keys of a group, and their bounds (KIP-848, KIP-1043).

A group's value is the one set on the group, else the broker's value of the key with the prefix
`group.`. Of the broker's values only the assignment intervals can change while it runs. The bounds
are broker keys, too: `group.consumer.min.…` and `group.consumer.max.…`.

Kafka: GroupConfig; GroupCoordinatorConfig and ShareGroupConfig for the bounds.
"""

from collections.abc import Mapping

from .broker_config import NO_SETTINGS, BrokerConfig
from .broker_keys import broker_value
from .errors import ConfigError, invalid_value
from .iso_duration import duration_ms
from .key import Value, parse_all
from .key_table import read_table
from .keys_consumer_group import assignor_name
from .keys_streams_group import check_distinct

GROUP_KEYS = read_table("""\
consumer.session.timeout.ms INT 45000 1..
    Session timeout of a consumer group's member.
consumer.heartbeat.interval.ms INT 5000 1..
    Heartbeat interval of a consumer group's member.
consumer.assignment.interval.ms INT 1000 0..
    Minimum time between two assignments of a consumer group.
consumer.assignor.offload.enable BOOLEAN true internal
    Whether a thread of its own assigns partitions: odradek assigns them on its event loop.
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
share.assignor.offload.enable BOOLEAN true internal
    Whether a thread of its own assigns partitions: odradek assigns them on its event loop.
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
streams.assignor.offload.enable BOOLEAN true internal
    Whether a thread of its own assigns tasks: odradek assigns them on its event loop.
streams.task.offset.interval.ms INT 60000 1.. internal
    How often a streams group's member reports offsets of its tasks.
streams.num.warmup.replicas INT 2 0.. internal
    Number of warm-up replicas of a streams group's tasks.
streams.rack.aware.assignment.tags LIST ""
    Client tags over which standby replicas are spread.
streams.acceptable.recovery.lag LONG 10000 0.. internal
    Offsets that a task may lack on the member that makes it active.
streams.assignor.name STRING null
    The assignor of a streams group, one of group.streams.assignors; the default is the first.
errors.deadletterqueue.topic.name STRING ""
    Topic of a share group's dead-letter queue, which gets the records that it rejects.
errors.deadletterqueue.copy.record.enable BOOLEAN false
    Whether a dead-letter queue gets the record itself, or only headers that describe it.
""")

_STREAMS_ASSIGNOR = "streams.assignor.name"
_STREAMS_ASSIGNORS = "group.streams.assignors"
_RACK_TAGS = "streams.rack.aware.assignment.tags"
DEAD_LETTER_QUEUE = "errors.deadletterqueue.topic.name"
COPY_RECORD = "errors.deadletterqueue.copy.record.enable"
_WITHOUT_SYNONYM = frozenset(
    {
        "share.auto.offset.reset",
        "share.isolation.level",
        "share.renew.acknowledge.enable",
        DEAD_LETTER_QUEUE,
        COPY_RECORD,
    }
)
# group key -> the broker key that it inherits from
GROUP_SYNONYMS = {name: f"group.{name}" for name in GROUP_KEYS if name not in _WITHOUT_SYNONYM} | {
    _STREAMS_ASSIGNOR: _STREAMS_ASSIGNORS
}

_INTERVALS = ("heartbeat.interval.ms", "session.timeout.ms", "assignment.interval.ms")

# group key -> the broker keys of its lower and upper bound
_BOUNDED: dict[str, tuple[str | None, str | None]] = {
    **{
        f"{kind}.{name}": (f"group.{kind}.min.{name}", f"group.{kind}.max.{name}")
        for kind, names in {
            "consumer": _INTERVALS,
            "share": (
                *_INTERVALS,
                "record.lock.duration.ms",
                "delivery.count.limit",
                "partition.max.record.locks",
            ),
            "streams": _INTERVALS,
        }.items()
        for name in names
    },
    "streams.num.standby.replicas": (None, "group.streams.max.standby.replicas"),
    "streams.task.offset.interval.ms": ("group.streams.min.task.offset.interval.ms", None),
    "streams.num.warmup.replicas": (None, "group.streams.max.warmup.replicas"),
}
BY_DURATION = "by_duration:"


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
    if name == _STREAMS_ASSIGNOR:
        return assignor_name(broker.group_streams_assignors[0])
    if synonym in settings:
        return GROUP_KEYS[name].parse(settings[synonym])
    return broker_value(broker, synonym)


def check_group(broker: BrokerConfig, overrides: Mapping[str, str]) -> None:
    """Raise ConfigError unless a group may have these overrides on this broker."""
    for name in overrides:
        if name not in GROUP_KEYS:
            raise ConfigError(f"Unknown group config name: {name}")
    check_distinct(_RACK_TAGS, overrides.get(_RACK_TAGS, ""))
    values = group_values(broker, overrides)
    _check_offset_reset(str(values["share.auto.offset.reset"]))
    for name in _BOUNDED:
        if name in overrides:
            _check_bounds(broker, name, _int(values[name]))
    if _STREAMS_ASSIGNOR in overrides:
        _check_streams_assignor(broker, str(values[_STREAMS_ASSIGNOR]))
    for kind in ("consumer", "share", "streams"):
        session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        if _int(values[session]) <= _int(values[heartbeat]):
            raise ConfigError(f"{session} must be greater than {heartbeat}")
    _check_dead_letter_queue(str(values[DEAD_LETTER_QUEUE]))


def _check_streams_assignor(broker: BrokerConfig, name: str) -> None:
    known = tuple(map(assignor_name, broker.group_streams_assignors))
    if name not in known:
        raise ConfigError(
            f"{_STREAMS_ASSIGNOR} '{name}' is not a registered task assignor."
            f" Registered assignors are: [{', '.join(known)}]."
        )


def _check_dead_letter_queue(topic: str) -> None:
    """Whether there is such a topic, and what its name begins with, is checked at each write."""
    if topic.startswith("__"):
        raise ConfigError(f"{DEAD_LETTER_QUEUE}: DLQ topic name must not start with '__'")


def _check_offset_reset(text: str) -> None:
    """Kafka: ShareGroupAutoOffsetResetStrategy.fromString, which minds the case of the prefix."""
    if text in ("earliest", "latest"):
        return
    try:
        if text.startswith(BY_DURATION) and duration_ms(text.removeprefix(BY_DURATION)) >= 0:
            return
    except ValueError:
        pass
    raise invalid_value(
        "share.auto.offset.reset", text, "must be earliest, latest, or by_duration:<PnDTnHnMn.nS>"
    )


def _check_bounds(broker: BrokerConfig, name: str, value: int) -> None:
    least, most = _BOUNDED[name]
    if least and value < _int(broker_value(broker, least)):
        raise ConfigError(f"{name} must be greater than or equal to {least}")
    if most and value > _int(broker_value(broker, most)):
        raise ConfigError(f"{name} must be less than or equal to {most}")


def _int(value: Value) -> int:
    assert isinstance(value, int)
    return value
