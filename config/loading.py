"""From a server.properties and the command line to a BrokerConfig, with what to warn about.

A bad value is refused in one line. A key that Kafka has and odradek does not use is checked, then
ignored with one warning for all of them; a key that nobody has is most likely a slip, so it gets a
warning with the nearest name. A controller's keys are accepted in silence, so that the file of a
KRaft node runs here as it is.
"""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from . import broker_keys, other_group_bounds
from .broker_config import SERVED_KEYS, BrokerConfig
from .errors import ConfigError
from .properties import parse_properties
from .protection import refuse_unserved_protection

__all__ = ["SHIPPED", "ConfigError", "LoadedConfig", "load_config"]

# What the shipped server.properties says, for a start without a file.
SHIPPED: Mapping[str, str] = {
    "node.id": "0",
    "listeners": "PLAINTEXT://localhost:9092",
    "log.dirs": "./data",
    "group.initial.rebalance.delay.ms": "0",
}

# One node cannot have more than one replica of anything.
_REPLICA_COUNTS = (
    "default.replication.factor",
    "offsets.topic.replication.factor",
    "transaction.state.log.replication.factor",
    "transaction.state.log.min.isr",
    "share.coordinator.state.topic.replication.factor",
    "share.coordinator.state.topic.min.isr",
)

# Other software's keys in a Kafka file, handed to plug-ins by their prefix.
_PLUGIN_PREFIXES = ("confluent.", "rsm.config.", "rlmm.config.", "config.providers.")


class LoadedConfig(NamedTuple):
    """A configuration, and one line for each thing that the user should know about it."""

    config: BrokerConfig
    warnings: tuple[str, ...]


def load_config(file: Path | None = None, overrides: Sequence[str] = ()) -> LoadedConfig:
    """The configuration of `file` (None: as shipped) under `overrides`, each `key=value`.

    ConfigError, whose text is one line, when it cannot be read, used, or must not be ignored.
    """
    warnings = []
    texts = dict(SHIPPED)
    if file is not None:
        data = _read(file)
        texts = parse_properties(data)
        if not data.isascii():
            warnings.append(
                f"{file} is read as Latin-1, as Kafka reads it; write other characters as \\uXXXX"
            )
    texts |= dict(map(_split_override, overrides))
    others = [name for name in texts if name not in SERVED_KEYS]
    config = BrokerConfig.from_texts(texts)
    _check_others(texts, others)
    other_group_bounds.check(config, others)
    refuse_unserved_protection(config)
    warnings += [*_warn_of_replica_counts(texts), *_warn_of_others(others)]
    return LoadedConfig(config, tuple(warnings))


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}") from None


def _split_override(override: str) -> tuple[str, str]:
    name, equals, value = override.partition("=")
    if not equals or not name.strip():
        raise ConfigError(f"Invalid override {override}: must be key=value")
    return name.strip(), value


def _check_others(texts: Mapping[str, str], others: Sequence[str]) -> None:
    """Refuse what Kafka would refuse in keys that are not used, and values left to be filled in."""
    for name in others:
        known = broker_keys.other_keys().get(name)
        if known is not None:
            known.parse(texts[name])
    if "config.providers" in texts:
        for name, text in texts.items():
            if "${" in text:
                raise ConfigError(
                    f"{name}: config.providers are not served, so ${{...}} cannot be filled in;"
                    " allowed is only the value itself"
                )


def _warn_of_replica_counts(texts: Mapping[str, str]) -> Iterator[str]:
    for name in _REPLICA_COUNTS:
        if name in texts and texts[name].strip() != "1":
            yield f"{name}={texts[name]}: one node has one replica, so 1 is used"


def _warn_of_others(others: Sequence[str]) -> Iterator[str]:
    ignored = []
    for name in others:
        base = broker_keys.without_listener(name)
        note = broker_keys.removal(name)
        if name.startswith("controller.") or name in _REPLICA_COUNTS:
            continue
        if note is not None:
            yield f"{name} is ignored: {note}"
        elif _is_known(base) or name.startswith(_PLUGIN_PREFIXES):
            ignored.append(name)
        else:
            yield f"{name} is ignored: nobody knows this key{_nearest(name)}"
    if ignored:
        yield f"ignored, odradek does not use: {', '.join(ignored)}"


def _is_known(base: str) -> bool:
    return base in broker_keys.broker_keys() or base in broker_keys.AUTHORIZER_KEYS


def _nearest(name: str) -> str:
    close = difflib.get_close_matches(name, broker_keys.broker_keys(), n=1, cutoff=0.75)
    return f"; did you mean {close[0]}?" if close else ""
