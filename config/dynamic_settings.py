"""What may be set on a running broker (KIP-226), and what a set of such settings must satisfy.

Settings lie in two layers: of one broker, and of all. A setting is refused when it is asked for
(`check_settings`, then `check_change` on what would be in force); one that lies in the metadata log
all the same, from another version of Kafka perhaps, is left out with one line (`usable_settings`),
because a broker must start on any log.

A key that nobody knows may be set: in Kafka it is a plug-in's. Threads may at most be doubled or
halved at a time, though odradek's do not depend on it: what is stored must be fit for Kafka too.
Kafka: DynamicBrokerConfig (both), DynamicThreadPool, LogCleaner.validateReconfiguration.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from .broker_config import SERVED_KEYS, BrokerConfig
from .broker_keys import broker_keys, without_listener
from .dynamic_keys import (
    CLUSTER_WIDE,
    ONLY_DYNAMIC,
    ONLY_PER_LISTENER,
    PER_BROKER,
    PER_LISTENER_OF_ALL,
)
from .errors import ConfigError, invalid_value
from .key import HIDDEN, Key, Value
from .protection import refuse_unserved_protection

Texts = Mapping[str, str]

# Listeners are opened at a start. Such a setting is kept for Apache Kafka, and not applied.
OPENED_AT_START = frozenset({"listeners", "listener.security.protocol.map"})

_THREADS = (
    "background.threads",
    "log.cleaner.threads",
    "num.io.threads",
    "num.network.threads",
    "num.recovery.threads.per.data.dir",
    "num.replica.fetchers",
    "remote.log.manager.copier.thread.pool.size",
    "remote.log.manager.expiration.thread.pool.size",
    "remote.log.manager.follower.thread.pool.size",
    "remote.log.reader.threads",
)
_AT_LEAST_ONE = (
    "max.connection.creation.rate",
    "max.connections",
    "remote.log.index.file.cache.total.size.bytes",
    "remote.log.manager.copy.max.bytes.per.second",
    "remote.log.manager.fetch.max.bytes.per.second",
)
_LOCAL_RETENTION = (
    ("log.local.retention.ms", "log_local_retention_ms", "retention_ms"),
    ("log.local.retention.bytes", "log_local_retention_bytes", "retention_bytes"),
)
# Bounded by keys of the file.
_INTERVALS = frozenset(
    f"group.{kind}.assignment.interval.ms" for kind in ("consumer", "share", "streams")
)
_INVALID = "Invalid dynamic configuration"


def dynamic_key(name: str) -> Key | None:
    """The key behind a name, with or without a listener before it; None for one nobody knows."""
    base = without_listener(name)
    # The tables of the other keys are read only when a name asks for them.
    return SERVED_KEYS.get(base) or ONLY_DYNAMIC.get(base) or broker_keys().get(base)


def is_dynamic(name: str) -> bool:
    """Whether a key may be changed on a running broker, on one or on all."""
    return name in CLUSTER_WIDE or name in PER_BROKER


# -- names and values ------------------------------------------------------------------------------


class _Rule(NamedTuple):
    """One thing that a layer may not hold: what to say, and whether a name is such a thing."""

    says: str
    forbids: Callable[[str], bool]


def _is_read_only(name: str) -> bool:
    return not is_dynamic(name) and (name in SERVED_KEYS or name in broker_keys())


def _is_of_one_broker(name: str) -> bool:
    base = without_listener(name)
    return name in PER_BROKER or (base != name and base not in PER_LISTENER_OF_ALL)


_READ_ONLY = _Rule("Cannot update these configs dynamically", _is_read_only)
_PER_LISTENER = _Rule(
    "These security configs can be dynamically updated only per-listener using the listener prefix",
    ONLY_PER_LISTENER.__contains__,
)
_PER_BROKER = _Rule(
    "Cannot update these configs at default cluster level, broker id must be specified",
    _is_of_one_broker,
)


def check_settings(settings: Texts, *, of_all_brokers: bool) -> None:
    """ConfigError unless each of a layer's settings may be there and has a value of its type."""
    _refuse(settings, _READ_ONLY)
    _refuse(settings, _PER_LISTENER)
    for name, text in settings.items():
        _check_value(name, text)
    if of_all_brokers:
        _refuse(settings, _PER_BROKER)


def _refuse(settings: Texts, rule: _Rule) -> None:
    found = [name for name in settings if rule.forbids(name)]
    if found:
        raise ConfigError(f"{rule.says}: [{', '.join(sorted(found))}]")


def _check_value(name: str, text: str) -> None:
    key = dynamic_key(name)
    if key is not None:
        key._replace(name=name).parse(text)


def usable_settings(settings: Texts, *, of_all_brokers: bool) -> tuple[dict[str, str], list[str]]:
    """Those settings of a layer that may be there, and a line for each of the others."""
    usable: dict[str, str] = {}
    problems = []
    for name, text in settings.items():
        try:
            check_settings({name: text}, of_all_brokers=of_all_brokers)
        except ConfigError as error:
            problems.append(str(error))
        else:
            usable[name] = text
    return usable, problems


def shown(name: str, text: str) -> str:
    """A setting's value for a log line; hidden where it is or may be a secret."""
    key = dynamic_key(name)
    return HIDDEN if key is None or key.is_sensitive else text


# -- what is in force ------------------------------------------------------------------------------


def in_force(written: BrokerConfig, settings: Texts) -> BrokerConfig:
    """The configuration under both layers together. Raises ConfigError."""
    usable = {name: text for name, text in settings.items() if name not in OPENED_AT_START}
    return written.under(usable | beyond_bounds(written, usable))


def beyond_bounds(written: BrokerConfig, settings: Texts) -> dict[str, str]:
    """The settings beyond the bounds that the file sets them, each with the bound that counts.

    They were within when they were made; the file has changed since. Kafka: clampDynamicConfigs.
    """
    texts = {**written.texts, **settings}
    nearest = {}
    for name in sorted(_INTERVALS & settings.keys()):
        least, most = _bounds_of(name, texts)
        value = max(least, min(_number(name, texts), most))
        if value != _number(name, texts):
            nearest[name] = str(value)
    return nearest


def check_change(written: BrokerConfig, now: Texts, then: Texts) -> None:
    """ConfigError unless a broker may go from the settings `now`, both layers together, to `then`.

    Kafka says no more than "Invalid dynamic configuration"; here the reason follows.
    """
    # What a log from elsewhere holds already is not in the way of another change.
    added = {name: text for name, text in then.items() if now.get(name) != text}
    try:
        new = in_force(written, then)
        refuse_unserved_protection(BrokerConfig.from_texts({**written.texts, **added}))
    except ConfigError as error:
        raise ConfigError(f"{_INVALID}: {error}") from None
    before, after = {**written.texts, **now}, {**written.texts, **then}
    for problem in (
        *_listeners_that_change(before, after),
        *_thread_jumps(before, after),
        *_too_small(before, after),
        *_local_beyond_all(new),
        *_new_intervals(before, after),
        *_unknown_directories(new, after),
    ):
        raise ConfigError(f"{_INVALID}: {problem}")


def _listeners_that_change(before: Texts, after: Texts) -> Iterator[ConfigError]:
    for name in sorted(OPENED_AT_START):
        if _value(name, before) != _value(name, after):
            yield invalid_value(name, after.get(name, ""), "listeners are opened at a start only")


def _thread_jumps(before: Texts, after: Texts) -> Iterator[ConfigError]:
    for name in _THREADS:
        old, new = _number(name, before), _number(name, after)
        if new != old and not max(1, old // 2) <= new <= old * 2:
            allowed = f"must be from half to double the current value ({old}), and at least 1"
            yield invalid_value(name, new, allowed)


def _too_small(before: Texts, after: Texts) -> Iterator[ConfigError]:
    for name in _AT_LEAST_ONE:
        if _number(name, after) != _number(name, before) and _number(name, after) < 1:
            yield invalid_value(name, _number(name, after), "must be at least 1")


def _new_intervals(before: Texts, after: Texts) -> Iterator[ConfigError]:
    for name in sorted(_INTERVALS):
        value, (least, most) = _number(name, after), _bounds_of(name, after)
        if value != _number(name, before) and not least <= value <= most:
            yield invalid_value(name, value, f"must be from {least} to {most}, as the file says")


def _bounds_of(interval: str, texts: Texts) -> tuple[int, int]:
    """`group.x.assignment.interval.ms`: by `group.x.min.assignment.interval.ms`, and max."""
    head, rest = interval.split(".assignment.")
    return _number(f"{head}.min.assignment.{rest}", texts), _number(
        f"{head}.max.assignment.{rest}", texts
    )


def _local_beyond_all(new: BrokerConfig) -> Iterator[ConfigError]:
    inherited = new.stored_topic_config({})
    for name, local_field, field in _LOCAL_RETENTION:
        local, whole = getattr(new, local_field), getattr(inherited, field)
        if whole != -1 and (local == -1 or local > whole):
            yield invalid_value(name, local, f"must not be more than what is kept at all ({whole})")


def _unknown_directories(new: BrokerConfig, after: Texts) -> Iterator[ConfigError]:
    cordoned = _value("cordoned.log.dirs", after)
    assert isinstance(cordoned, tuple)
    allowed = (*(new.log_dirs or new.log_dir), *("*" for _ in cordoned[:1] if len(cordoned) == 1))
    for directory in cordoned:
        if directory not in allowed:
            yield invalid_value("cordoned.log.dirs", directory, "must be among log.dirs, or only *")


def _value(name: str, texts: Texts) -> Value:
    key = broker_keys()[name]
    return key.parse(texts[name]) if name in texts else key.default


def _number(name: str, texts: Texts) -> int:
    value = _value(name, texts)
    assert isinstance(value, int)
    return value
