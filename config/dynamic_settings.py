"""Checks the settings that are made on a running broker (KIP-226).

There are two layers of settings: for one broker, and for all brokers. A request with a setting that
is not allowed is refused: `check_settings` checks its keys and values, `check_change` the resulting
configuration. The metadata log may already contain a setting that is not allowed, for example from
another version of Kafka. `usable_settings` leaves it out with one log line, because a broker must
start on any log.

An unknown key may be set: in Kafka it may belong to a plug-in. A number of threads may at most be
doubled or halved in one step, although odradek does not use it: the settings in the log must be
valid for Kafka, too.

There may be any number of unknown keys. The functions that look at each key have an argument
`iterate`: it is called with what they iterate over, and may let other work run in between.

Kafka: DynamicBrokerConfig (in core and in server), DynamicThreadPool,
LogCleaner.validateReconfiguration.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from .broker_config import LIMITS_OF_LISTENERS, SERVED_KEYS, BrokerConfig
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
from .topic_config import BROKER_SYNONYMS

Texts = Mapping[str, str]
Iterate = Callable[[Iterable[Any]], Iterable[Any]]

# Listeners are opened only when the broker starts. A stored setting is kept, but not applied.
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
# When one of these keys changes, Kafka checks the local retention. They are those that its
# DynamicLogConfig applies: the defaults of topics, and one more.
_OF_LOGS = {name for synonyms in BROKER_SYNONYMS.values() for name, _ in synonyms} | {
    "cordoned.log.dirs"
}
# The lower and the upper bound of each are keys of their own, which only the file can set.
_INTERVALS = frozenset(
    f"group.{kind}.assignment.interval.ms" for kind in ("consumer", "share", "streams")
)
INVALID = "Invalid dynamic configuration"


def dynamic_key(name: str) -> Key | None:
    """Return the key of a name with or without a listener prefix, or None if it is unknown."""
    base = without_listener(name)
    # broker_keys() parses the tables of unused keys, so it comes last.
    return SERVED_KEYS.get(base) or ONLY_DYNAMIC.get(base) or broker_keys().get(base)


def is_dynamic(name: str) -> bool:
    """Whether a key may be changed while a broker runs."""
    return name in CLUSTER_WIDE or name in PER_BROKER


# -- names and values ------------------------------------------------------------------------------


class _Rule(NamedTuple):
    """A rule for the names in a layer: which names it forbids, and the error message."""

    message: str
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


def check_settings(settings: Texts, *, of_all_brokers: bool, iterate: Iterate = iter) -> None:
    """Raise ConfigError unless a layer may have these keys, and their values are valid."""
    _refuse(iterate(settings), _READ_ONLY)
    _refuse(iterate(settings), _PER_LISTENER)
    for name, text in iterate(settings.items()):
        _check_value(name, text)
    if of_all_brokers:
        _refuse(iterate(settings), _PER_BROKER)


def _refuse(names: Iterable[str], rule: _Rule) -> None:
    found = [name for name in names if rule.forbids(name)]
    if found:
        raise ConfigError(f"{rule.message}: [{', '.join(sorted(found))}]")


def _check_value(name: str, text: str) -> None:
    key = dynamic_key(name)
    if key is not None:
        key._replace(name=name).parse(text)


def usable_settings(
    settings: Texts, *, of_all_brokers: bool, iterate: Iterate = iter
) -> tuple[dict[str, str], list[str]]:
    """The valid settings of a layer, and one error message for each of the others."""
    usable: dict[str, str] = {}
    problems = []
    for name, text in iterate(settings.items()):
        try:
            check_settings({name: text}, of_all_brokers=of_all_brokers)
        except ConfigError as error:
            problems.append(str(error))
        else:
            usable[name] = text
    return usable, problems


def printable_value(name: str, text: str) -> str:
    """A setting's value for a log line; hidden if it is or may be a secret."""
    key = dynamic_key(name)
    return HIDDEN if key is None or key.is_sensitive else text


# -- the effective configuration -------------------------------------------------------------------


def effective_config(
    written: BrokerConfig, settings: Texts, iterate: Iterate = iter
) -> BrokerConfig:
    """The file's configuration overridden by both layers together. Raises ConfigError."""
    usable = {
        name: text
        for name, text in _known(written, settings, iterate).items()
        if name not in OPENED_AT_START
    }
    return written.with_dynamic(usable | clamped_settings(written, usable))


def applied_config(
    written: BrokerConfig, settings: Texts, iterate: Iterate = iter
) -> tuple[BrokerConfig, dict[str, str]]:
    """Like `effective_config`, with as many settings as go together; and those left out, with why.

    Each setting is valid, and they were valid together when they were made. But the file may have
    changed since, or the rules, which may be stricter in another version.
    """
    known = _known(written, settings, iterate)
    try:
        return effective_config(written, known), {}
    except ConfigError as error:
        reason = str(error)
    for one in iterate(known):
        others = {name: text for name, text in known.items() if name != one}
        with suppress(ConfigError):
            return effective_config(written, others), {one: reason}
    kept: dict[str, str] = {}
    left_out: dict[str, str] = {}
    config = written
    for name, text in iterate(known.items()):
        try:
            config = effective_config(written, {**kept, name: text})
        except ConfigError as error:
            left_out[name] = str(error)
        else:
            kept[name] = text
    return config, left_out


def _known(written: BrokerConfig, settings: Texts, iterate: Iterate) -> dict[str, str]:
    """The settings without unknown keys and listeners: so few that a turn can check them all."""
    of_listeners = tuple(f"listener.name.{each.name.lower()}." for each in written.all_listeners)
    return {
        name: text
        for name, text in iterate(settings.items())
        if dynamic_key(name) is not None
        and (without_listener(name) == name or name.startswith(of_listeners))
    }


def clamped_settings(written: BrokerConfig, settings: Texts) -> dict[str, str]:
    """The settings that are outside the bounds in the file, each with its nearest bound.

    They were within the bounds when they were made; the file has changed since.
    Kafka: clampDynamicConfigs.
    """
    intervals = {name: settings[name] for name in sorted(_INTERVALS) if name in settings}
    texts = {**written.texts, **intervals}
    nearest = {}
    for name in intervals:
        least, most = _bounds_of(name, texts)
        value = max(least, min(_number(name, texts), most))
        if value != _number(name, texts):
            nearest[name] = str(value)
    return nearest


def check_change(
    written: BrokerConfig, now: Texts, then: Texts, iterate: Iterate = iter
) -> BrokerConfig:
    """Raise ConfigError unless a broker's settings may change from `now` to `then`.

    Both have the two layers merged. The message is Kafka's, "Invalid dynamic configuration",
    followed by the reason. Returns the configuration that `then` leads to.
    """
    try:
        # Keys that name Java classes are refused, but those that are stored already: they must not
        # block changes of other keys.
        refuse_unserved_protection(
            item for item in iterate(then.items()) if item not in now.items()
        )
        now, then = _known(written, now, iterate), _known(written, then, iterate)
        new = effective_config(written, then)
    except ConfigError as error:
        raise ConfigError(f"{INVALID}: {error}") from None
    # Some rules compare with the file's settings, where nothing else is set.
    before, after = {**written.texts, **now}, {**written.texts, **then}
    for problem in (
        *_listeners_that_change(before, after),
        *_thread_jumps(before, after),
        *_too_small(before, after),
        *_local_retention_above_total(new, _changed(before, after)),
        *_new_intervals(before, after),
    ):
        raise ConfigError(f"{INVALID}: {problem}")
    return new


def _changed(now: Texts, then: Texts) -> set[str]:
    return {name for name in now.keys() | then.keys() if now.get(name) != then.get(name)}


def _listeners_that_change(before: Texts, after: Texts) -> Iterator[ConfigError]:
    for name in sorted(OPENED_AT_START):
        if _value(name, before) != _value(name, after):
            allowed = "listeners are only opened when the broker starts"
            yield invalid_value(name, after.get(name, ""), allowed)


def _thread_jumps(before: Texts, after: Texts) -> Iterator[ConfigError]:
    for name in _THREADS:
        old, new = _number(name, before), _number(name, after)
        if new != old and not max(1, old // 2) <= new <= old * 2:
            allowed = f"must be between half and double the current value ({old}), and at least 1"
            yield invalid_value(name, new, allowed)


def _too_small(before: Texts, after: Texts) -> Iterator[ConfigError]:
    of_listeners = [name for name in after if without_listener(name) in LIMITS_OF_LISTENERS]
    for name in (*_AT_LEAST_ONE, *of_listeners):
        if _number(name, after) != _number(name, before) and _number(name, after) < 1:
            yield invalid_value(name, _number(name, after), "must be at least 1")


def _new_intervals(before: Texts, after: Texts) -> Iterator[ConfigError]:
    for name in sorted(_INTERVALS):
        value, (least, most) = _number(name, after), _bounds_of(name, after)
        if value != _number(name, before) and not least <= value <= most:
            allowed = f"must be from {least} to {most}, the bounds in the configuration file"
            yield invalid_value(name, value, allowed)


def _bounds_of(interval: str, texts: Texts) -> tuple[int, int]:
    """The bounds of `group.x.assignment.interval.ms`: `group.x.min.…` and `group.x.max.…`."""
    head, rest = interval.split(".assignment.")
    return _number(f"{head}.min.assignment.{rest}", texts), _number(
        f"{head}.max.assignment.{rest}", texts
    )


def _local_retention_above_total(new: BrokerConfig, changed: set[str]) -> Iterator[ConfigError]:
    if _OF_LOGS.isdisjoint(changed):
        return  # the file's values are not checked at a start either
    inherited = new.stored_topic_config({})
    for name, local_field, field in _LOCAL_RETENTION:
        local, total = getattr(new, local_field), getattr(inherited, field)
        if total > -1 and (local == -1 or local > total):
            yield invalid_value(name, local, f"must not exceed the total retention ({total})")


def _value(name: str, texts: Texts) -> Value:
    key = broker_keys()[without_listener(name)]
    return key.parse(texts[name]) if name in texts else key.default


def _number(name: str, texts: Texts) -> int:
    value = _value(name, texts)
    assert isinstance(value, int)
    return value
