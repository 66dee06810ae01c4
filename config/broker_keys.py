"""Every key that a server.properties may have: those that odradek uses, and the rest of Kafka's.

The keys of TLS and SASL are parsed from tables at first use, and so are the keys that odradek does
not use (unused_*.py). A start does not need them if its file has only keys of BrokerConfig.
"""

import re
from collections.abc import Mapping
from functools import cache

from odradek.config import unused_groups, unused_security, unused_server, unused_tiered_storage

from .broker_config import SERVED_KEYS, BrokerConfig
from .key import Key, Value, field_name
from .key_table import read_table
from .keys_authorizer import ALLOW_EVERYONE, SUPER_USERS
from .listener_settings import listener_keys

# Keys that Kafka 4 no longer has, or odradek: a name or a prefix (ends in "."), and why it was
# removed.
REMOVED = {
    "zookeeper.": "removed with ZooKeeper",
    "inter.broker.protocol.version": "removed with ZooKeeper",
    "broker.id.generation.enable": "removed with ZooKeeper",
    "reserved.broker.max.id": "removed with ZooKeeper",
    "control.plane.listener.name": "removed with ZooKeeper",
    "password.encoder.": "removed with ZooKeeper",
    "controlled.shutdown.max.retries": "removed with ZooKeeper",
    "controlled.shutdown.retry.backoff.ms": "removed with ZooKeeper",
    "log.message.format.version": "removed, the record format is always v2",
    "log.message.downconversion.enable": "removed, the record format is always v2",
    "log.message.timestamp.difference.max.ms": "replaced by log.message.timestamp.before.max.ms",
    "delegation.token.master.key": "replaced by delegation.token.secret.key",
    "offsets.commit.required.acks": "removed, commits are always acks=all",
    "leader.imbalance.per.broker.percentage": "removed",
    "group.coordinator.new.enable": "removed, the new group coordinator is the only one",
    "advertised.host.name": "replaced by advertised.listeners",
    "advertised.port": "replaced by advertised.listeners",
    "host.name": "replaced by listeners",
    "port": "replaced by listeners",
    "odradek.workers": (
        "removed, one process serves all partitions; for more than one core run several brokers,"
        " with the topics divided between them, or Apache Kafka"
    ),
    "odradek.workers.": "removed with odradek.workers",
}

# Read by the authorizer only, so they are missing in Kafka's own list of keys.
AUTHORIZER_KEYS = frozenset({SUPER_USERS, ALLOW_EVERYONE})


@cache
def unused_keys() -> Mapping[str, Key]:
    """The keys that Apache Kafka has but odradek does not use, by name."""
    tables = (unused_server, unused_groups, unused_tiered_storage, unused_security)
    return {name: key for module in tables for name, key in read_table(module.TABLE).items()}


@cache
def broker_keys() -> Mapping[str, Key]:
    """Every key of a broker, by name."""
    return {**SERVED_KEYS, **listener_keys(), **unused_keys()}


def broker_value(config: BrokerConfig, name: str) -> Value:
    """The value of any of Kafka's keys, without a listener's prefix."""
    if name in SERVED_KEYS:
        value: Value = getattr(config, field_name(name))
        return value
    key = broker_keys()[name]
    text = config.texts.get(name)
    return key.default if text is None else key.parse(text)


def removal(name: str) -> str | None:
    """Return why a key was removed, or None if it was not."""
    for removed, note in REMOVED.items():
        if name == removed or (removed.endswith(".") and name.startswith(removed)):
            return note
    return None


_OF_LISTENER = re.compile(
    r"listener\.name\.[^.]*\."
    r"(?:(?:gssapi|plain|scram-sha-256|scram-sha-512|oauthbearer)\.(?=sasl\.|connections\.max\.reauth))?"
)


def is_secret(name: str) -> bool:
    """Whether the value of a key, with or without a listener and a mechanism, is a secret."""
    key = SERVED_KEYS.get(name) or broker_keys().get(without_listener(name))
    return key is not None and key.is_sensitive


def without_listener(name: str) -> str:
    """`listener.name.x.ssl.client.auth` -> `ssl.client.auth`; other names are unchanged.

    The name of a SASL mechanism after the listener's is left out, too.
    """
    match = _OF_LISTENER.match(name)
    return name if match is None else name[match.end() :]
