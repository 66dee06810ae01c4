"""Every key that a server.properties may have: odradek's fields and the rest of Kafka's.

The rest is read from its tables at first use: a start whose file names only keys that odradek
serves does not need it.
"""

from collections.abc import Mapping
from functools import cache

from . import other_groups, other_remote, other_security, other_server
from .broker_config import SERVED_KEYS, BrokerConfig
from .key import Key, Value, field_name
from .key_table import read_table

# Keys that Kafka 4 no longer has: the prefix or name, and what became of it.
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
    "group.coordinator.new.enable": "removed, there is only the new one",
    "advertised.host.name": "replaced by advertised.listeners",
    "advertised.port": "replaced by advertised.listeners",
    "host.name": "replaced by listeners",
    "port": "replaced by listeners",
}

# Read by Kafka's StandardAuthorizer alone, so Kafka's own list of keys lacks them.
AUTHORIZER_KEYS = frozenset({"super.users", "allow.everyone.if.no.acl.found"})


@cache
def other_keys() -> Mapping[str, Key]:
    """The keys that Apache Kafka has and odradek does not use, by name."""
    tables = (other_server, other_groups, other_remote, other_security)
    return {name: key for module in tables for name, key in read_table(module.TABLE).items()}


@cache
def broker_keys() -> Mapping[str, Key]:
    """Every key of a broker, by name."""
    return {**SERVED_KEYS, **other_keys()}


def broker_value(config: BrokerConfig, name: str) -> Value:
    """The value of any key that Kafka has; of those that odradek does not use, the file's."""
    if name in SERVED_KEYS:
        value: Value = getattr(config, field_name(name))
        return value
    key = other_keys()[name]
    text = config.texts.get(name)
    return key.default if text is None else key.parse(text)


def removal(name: str) -> str | None:
    """What became of a key of an older Kafka; None when it is not one."""
    for removed, note in REMOVED.items():
        if name == removed or (removed.endswith(".") and name.startswith(removed)):
            return note
    return None


def without_listener(name: str) -> str:
    """`listener.name.x.ssl.client.auth` -> `ssl.client.auth`; other names as they are."""
    parts = name.split(".", 3)
    return parts[3] if parts[:2] == ["listener", "name"] and len(parts) == 4 else name
