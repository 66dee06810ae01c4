"""Loads a BrokerConfig from a server.properties and the command line, and collects warnings.

- A bad value raises ConfigError with a message of one line.
- Keys that Kafka has but odradek does not use are checked and then ignored. One warning names all
  of them.
- An unknown key is most likely a typing error. Its warning suggests the most similar key.
- The keys of a controller are accepted without a warning, so that the file of a KRaft node can be
  used unchanged.
"""

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from odradek.config import broker_keys

from .broker_config import LIMITS_OF_LISTENERS, REPLICA_SELECTOR, SERVED_KEYS, BrokerConfig
from .errors import ConfigError
from .listener_settings import listener_keys
from .properties import parse_properties
from .protection import refuse_unserved_protection
from .sasl import sasl_listeners

__all__ = ["SHIPPED", "ConfigError", "LoadedConfig", "load_config"]

# The content of the shipped server.properties, for a start without a file.
SHIPPED: Mapping[str, str] = {
    "node.id": "0",
    "listeners": "PLAINTEXT://localhost:9092",
    "log.dirs": "./data",
    "group.initial.rebalance.delay.ms": "0",
    "group.streams.initial.rebalance.delay.ms": "0",
}

# A single node can hold one replica only, so more than 1 has no effect.
_REPLICA_COUNTS = (
    "default.replication.factor",
    "offsets.topic.replication.factor",
    "transaction.state.log.replication.factor",
    "transaction.state.log.min.isr",
    "share.coordinator.state.topic.replication.factor",
    "share.coordinator.state.topic.min.isr",
)

# A text that was meant to be an override may contain a secret after this.
_KEY_CHARACTERS = re.compile(r"[\w.-]*")

# Prefixes of keys that Kafka passes to plug-ins.
_PLUGIN_PREFIXES = ("confluent.", "rsm.config.", "rlmm.config.", "config.providers.")


class LoadedConfig(NamedTuple):
    """A configuration, and warnings for the user, one line each."""

    config: BrokerConfig
    warnings: tuple[str, ...]


def load_config(file: Path | None = None, overrides: Sequence[str] = ()) -> LoadedConfig:
    """Load `file`, or the shipped defaults, overridden by `overrides`, each `key=value`.

    Overrides are arguments of the process. Raises ConfigError if one of them is a secret, the file
    cannot be read, a value is invalid, or a key asks for protection that odradek does not have.
    """
    given = dict(map(_split_override, overrides))
    _refuse_secrets(given)
    warnings = []
    texts = dict(SHIPPED)
    if file is not None:
        data = _read(file)
        texts = parse_properties(data)
        if not data.isascii():
            warnings.append(
                f"{file} is read as Latin-1, as Kafka reads it; write other characters as \\uXXXX"
            )
    texts |= given
    unused = [name for name in texts if name not in SERVED_KEYS]
    config = BrokerConfig.from_texts(texts)
    if config.authorizer is not None:
        unused = [name for name in unused if name not in broker_keys.AUTHORIZER_KEYS]
    if config.selects_by_rack:
        unused.remove(REPLICA_SELECTOR)
    _check_unused(texts, unused)
    refuse_unserved_protection(config.texts.items())
    sasl_listeners(config)
    warnings += [*_replica_count_warnings(texts, config), *_unused_key_warnings(unused)]
    return LoadedConfig(config, tuple(warnings))


def _refuse_secrets(names: Iterable[str]) -> None:
    for name in names:
        if broker_keys.is_secret(name):
            raise ConfigError(
                f"{name} cannot be an --override: every user of this machine sees the arguments of"
                " a process; write it to a file that only its owner can read"
            )


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}") from None


def _split_override(override: str) -> tuple[str, str]:
    name, equals, value = override.partition("=")
    if not equals or not name.strip():
        shown = _KEY_CHARACTERS.match(override)[0]  # type: ignore[index] # it may be empty
        raise ConfigError(f"Invalid override {shown}: must be key=value")
    return name.strip(), value


def _check_unused(texts: Mapping[str, str], unused: Sequence[str]) -> None:
    """Raise ConfigError for values that Kafka would refuse, and for `${…}` placeholders."""
    for name in unused:
        known = broker_keys.broker_keys().get(broker_keys.without_listener(name))
        if known is not None:
            known._replace(name=name).parse(texts[name])
    if "config.providers" in texts:
        for name, text in texts.items():
            if "${" in text:
                raise ConfigError(
                    f"{name}: config.providers are not served, so ${{...}} cannot be resolved;"
                    " write the value itself"
                )


def _replica_count_warnings(texts: Mapping[str, str], config: BrokerConfig) -> Iterator[str]:
    nodes = config.odradek_nodes
    why = "a single node has one replica" if nodes == 1 else f"there are {nodes} nodes"
    for name in _REPLICA_COUNTS:
        if name in texts and int(texts[name]) > nodes:
            yield f"{name}={texts[name]}: {why}, so {nodes} is used"


def _unused_key_warnings(unused: Sequence[str]) -> Iterator[str]:
    ignored = []
    for name in unused:
        base = broker_keys.without_listener(name)
        note = broker_keys.removal(name)
        is_used = base in listener_keys() or base in LIMITS_OF_LISTENERS
        if name.startswith("controller.") or name in _REPLICA_COUNTS or is_used:
            continue
        if note is not None:
            yield f"{name} is ignored: {note}"
        elif _is_known(base) or name.startswith(_PLUGIN_PREFIXES):
            ignored.append(name)
        else:
            yield f"{name} is ignored: unknown key{_nearest(name)}"
    if ignored:
        yield f"ignored because odradek does not use them: {', '.join(ignored)}"


def _is_known(base: str) -> bool:
    return base in broker_keys.broker_keys() or base in broker_keys.AUTHORIZER_KEYS


def _nearest(name: str) -> str:
    close = difflib.get_close_matches(name, broker_keys.broker_keys(), n=1, cutoff=0.75)
    return f"; did you mean {close[0]}?" if close else ""
