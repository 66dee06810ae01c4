"""Describes configurations in the form that DescribeConfigs and kafka-configs show.

Each entry names the source of its value, and lists all sources that have a value ("synonyms"). The
source that is used comes first. For a topic the order is: the topic; then, for each of the broker's
names for the key, the dynamic settings of the broker, its file, and the default. Groups inherit
from the broker in the same way. A client metrics subscription inherits nothing.

Values are texts in Kafka's form. The values of secrets are None.

Kafka: ConfigHelper, DynamicBrokerConfig.brokerConfigSynonyms.
"""

from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from functools import cache
from typing import NamedTuple

from .broker_config import BrokerConfig
from .broker_keys import broker_keys, without_listener
from .client_metrics_config import CLIENT_METRICS_KEYS
from .dynamic_keys import ONLY_DYNAMIC
from .dynamic_settings import Iterate, clamped_settings, is_dynamic
from .group_config import GROUP_KEYS, GROUP_SYNONYMS, group_values
from .key import Key, Value, field_name, parse_all
from .topic_config import BROKER_SYNONYMS, TOPIC_KEYS


class ConfigSource(IntEnum):
    """Where a value comes from. On the wire (DescribeConfigs): never renumber."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class Synonym(NamedTuple):
    """A source that has a value for an entry. `name` is the key's name at that source."""

    name: str
    value: str | None
    source: ConfigSource


class ConfigEntry(NamedTuple):
    """One described key. `type` is a ConfigType, or 0 for an unknown key."""

    name: str
    value: str | None
    source: ConfigSource
    synonyms: tuple[Synonym, ...]
    type: int
    documentation: str | None
    is_sensitive: bool
    is_read_only: bool


Layers = Sequence[tuple[ConfigSource, Mapping[str, str]]]

# Broker keys for the same setting; an earlier one overrides a later one.
_GROUPS = (
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
)
_BROKER_SYNONYMS = {name: group for group in _GROUPS for name in group} | {
    "log.flush.interval.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms")
}


def describe_topic(
    effective: BrokerConfig,
    overrides: Mapping[str, str],
    written: BrokerConfig,
    dynamic: Layers = (),
) -> Iterator[ConfigEntry]:
    """Describe every key of a topic on which `overrides` are set.

    `effective` is the configuration that `written`, the file's, and `dynamic` lead to. `dynamic`
    are the layers of settings made on the running broker, DYNAMIC_BROKER first.
    """
    config = effective.stored_topic_config(overrides)
    layers = (*dynamic, *_static_layers(written))
    for name, key in TOPIC_KEYS.items():
        if key.internal and name not in overrides:
            continue
        value = getattr(config, field_name(name))
        synonyms: tuple[Synonym, ...] = ()
        if name in BROKER_SYNONYMS:
            synonyms = _synonyms(BROKER_SYNONYMS[name][0][0], key.is_sensitive, layers)
        yield _own_entry(key, value, name in overrides, ConfigSource.TOPIC, synonyms)


def describe_group(
    broker: BrokerConfig, overrides: Mapping[str, str], dynamic: Layers = ()
) -> Iterator[ConfigEntry]:
    """Describe every key of a group on which `overrides` are set."""
    settings = merged(dynamic)
    values = group_values(broker, overrides, settings | clamped_settings(broker, settings))
    layers = (*dynamic, *_static_layers(broker))
    for name, key in GROUP_KEYS.items():
        if key.internal and name not in overrides:
            continue
        if name in GROUP_SYNONYMS:
            synonyms = _synonyms(GROUP_SYNONYMS[name], key.is_sensitive, layers)
        else:
            default = key.render(key.default)
            synonyms = (Synonym(name, default, ConfigSource.DEFAULT),)
        yield _own_entry(key, values[name], name in overrides, ConfigSource.GROUP, synonyms)


def describe_client_metrics(overrides: Mapping[str, str]) -> Iterator[ConfigEntry]:
    """Describe every key of a client metrics subscription on which `overrides` are set."""
    values = parse_all(CLIENT_METRICS_KEYS, overrides)
    for name, key in CLIENT_METRICS_KEYS.items():
        is_set = name in overrides
        value = values[name] if is_set else key.default
        yield _own_entry(key, value, is_set, ConfigSource.CLIENT_METRICS, ())


def describe_broker(broker: BrokerConfig, dynamic: Layers = ()) -> Iterator[ConfigEntry]:
    """Describe every key of the broker, and unknown keys that are set on it."""
    layers = (*dynamic, *_static_layers(broker))
    written = merged(layers[:-1])
    keys = broker_keys()
    for name in written:
        if name not in keys:
            yield _entry_without_table(name, written[name], layers)
    for name, key in keys.items():
        if key.internal and name not in written:
            continue
        value = key.parse(written[name]) if name in written else key.default
        synonyms = _synonyms(name, key.is_sensitive, layers)
        yield _entry(key, key.render(value), synonyms, is_read_only=not is_dynamic(name))


def merged(layers: Layers, iterate: Iterate = iter) -> dict[str, str]:
    """The value of each key, by name: that of the first layer that has one."""
    found: dict[str, str] = {}
    for _, texts in reversed(layers):
        found.update(iterate(texts.items()))
    return found


def _static_layers(broker: BrokerConfig) -> Layers:
    return (ConfigSource.STATIC_BROKER, broker.texts), (ConfigSource.DEFAULT, _default_texts())


@cache
def _default_texts() -> Mapping[str, str]:
    rendered = {name: key.render(key.default) for name, key in broker_keys().items()}
    return {name: text for name, text in rendered.items() if text is not None}


def _synonyms(name: str, is_sensitive: bool, layers: Layers) -> tuple[Synonym, ...]:
    """The sources that have a value for a broker key, the one that is used first.

    As in Kafka, synonyms before the first one with the key's own name are left out. So a file with
    only log.retention.hours gives no synonym for log.retention.ms.
    """
    base = without_listener(name)
    names = _BROKER_SYNONYMS.get(name) or ((name,) if base == name else (name, base))
    found = [
        Synonym(synonym, None if is_sensitive else texts[synonym], source)
        for source, texts in layers
        for synonym in names
        if synonym in texts
    ]
    while found and found[0].name != name:
        del found[0]
    return tuple(found)


def _entry(
    key: Key, value: str | None, synonyms: tuple[Synonym, ...], *, is_read_only: bool
) -> ConfigEntry:
    return ConfigEntry(
        name=key.name,
        value=None if key.is_sensitive else value,
        source=synonyms[0].source if synonyms else ConfigSource.DEFAULT,
        synonyms=synonyms,
        type=key.type,
        documentation=key.doc,
        is_sensitive=key.is_sensitive,
        is_read_only=is_read_only,
    )


def _own_entry(
    key: Key, value: Value, is_set: bool, source: ConfigSource, synonyms: tuple[Synonym, ...]
) -> ConfigEntry:
    """An entry of a resource other than the broker, which may have a value of its own."""
    text = key.render(value)
    if is_set:
        synonyms = (Synonym(key.name, text, source), *synonyms)
    return _entry(key, text, synonyms, is_read_only=False)


def _entry_without_table(name: str, text: str, layers: Layers) -> ConfigEntry:
    """A key with a listener prefix, a key that may only be set dynamically, or an unknown key.

    The value of an unknown key may be a secret, so it is hidden.
    """
    key = ONLY_DYNAMIC.get(name) or broker_keys().get(without_listener(name))
    if key is not None:
        synonyms = _synonyms(name, key.is_sensitive, layers)
        entry = _entry(key._replace(name=name), text, synonyms, is_read_only=not is_dynamic(name))
        return entry._replace(documentation=None)
    synonyms = _synonyms(name, is_sensitive=True, layers=layers)
    return ConfigEntry(
        name=name,
        value=None,
        source=synonyms[0].source,
        synonyms=synonyms,
        type=0,
        documentation=None,
        is_sensitive=True,
        is_read_only=True,
    )
