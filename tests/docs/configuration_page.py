"""The page of all configuration keys."""

import re
from collections.abc import Iterable

from odradek.config import unused_groups, unused_security, unused_server, unused_tiered_storage
from odradek.config.broker_config import BrokerConfig
from odradek.config.broker_keys import REMOVED
from odradek.config.client_metrics_config import CLIENT_METRICS_KEYS
from odradek.config.dynamic_settings import OPENED_AT_START, is_dynamic
from odradek.config.group_config import GROUP_KEYS, GROUP_SYNONYMS
from odradek.config.key import HIDDEN, Key, KeyModel
from odradek.config.key_table import read_table
from odradek.config.keys_authorizer import AuthorizerKeys
from odradek.config.keys_consumer_group import ConsumerGroupKeys
from odradek.config.keys_delegation_token import DelegationTokenKeys
from odradek.config.keys_group import GroupKeys
from odradek.config.keys_log import LogKeys
from odradek.config.keys_metadata import MetadataKeys
from odradek.config.keys_node import NodeKeys
from odradek.config.keys_socket import SocketKeys
from odradek.config.keys_streams_group import StreamsGroupKeys
from odradek.config.keys_telemetry import TelemetryKeys
from odradek.config.keys_transaction import TransactionKeys
from odradek.config.topic_config import BROKER_SYNONYMS, TOPIC_KEYS
from tests.docs.markdown import code, table

MODELS: dict[str, type[KeyModel]] = {
    "The node and its listeners": NodeKeys,
    "Connections and requests": SocketKeys,
    "Logs": LogKeys,
    "Groups and offsets": GroupKeys,
    "Groups of the consumer protocol": ConsumerGroupKeys,
    "Streams groups": StreamsGroupKeys,
    "Transactions": TransactionKeys,
    "Cluster metadata": MetadataKeys,
    "Authorization": AuthorizerKeys,
    "Delegation tokens": DelegationTokenKeys,
    "Telemetry of clients": TelemetryKeys,
}
UNUSED = {
    "Server": unused_server,
    "Groups": unused_groups,
    "Security": unused_security,
    "Tiered storage": unused_tiered_storage,
}
_BOUND_OF_TYPE = re.compile(
    r" (from (-32768|-2147483648|-9223372036854775808)|to (32767|2147483647|9223372036854775807))\b"
)
INTRODUCTION = """\
# Configuration

A configuration file is Apache Kafka's `server.properties`: the same keys, the same syntax, and
the defaults of Kafka 4.4 unless [Differences from
Kafka](../compatibility/differences.md#configuration-and-data-directories) says otherwise.

    odradek serve server.properties --override num.partitions=3

`--override` may be given several times and overrides the file. Without a file odradek listens on
`localhost:9092`, keeps its data in `./data`, and starts groups without a delay. In a container,
[environment variables](../get-started.md#docker) set keys. A bad value ends the start with one
line and exit code 2.

A key marked *while it runs* can be changed on the running broker, with `odradek configs` or
`kafka-configs.sh`. Other keys are read at start.
"""


def configuration_page() -> str:
    """Every key of the broker, of topics, of groups and of client metrics."""
    shared = {name for model in MODELS.values() for name in model.keys}
    own = [key for name, key in BrokerConfig.keys.items() if name not in shared]
    parts = [INTRODUCTION, "## Broker\n"]
    for title, keys in {
        **{title: model.keys.values() for title, model in MODELS.items()},
        "Without a counterpart in Kafka": own,
    }.items():
        parts += [f"### {title}\n", _broker_keys(keys)]
    parts += [
        "## Topics\n",
        "Set with `odradek topics create NAME --set KEY=VALUE`, with\n"
        "`odradek configs alter topic NAME --set KEY=VALUE`, or with Kafka's tools. A topic\n"
        "without a value of its own inherits the broker's.\n",
        _inheriting_keys(
            TOPIC_KEYS, {name: keys[0][0] for name, keys in BROKER_SYNONYMS.items() if keys}
        ),
        "## Groups\n",
        _inheriting_keys(GROUP_KEYS, GROUP_SYNONYMS),
        "## Client metrics subscriptions\n",
        "A subscription says which metrics clients push ([guide](../guides/telemetry.md)).\n",
        _inheriting_keys(CLIENT_METRICS_KEYS, {}),
        "## Keys that are checked and not used\n",
        "Kafka has these keys, and odradek does not use them. Their values are checked,\n"
        "described, and named in one warning at start. A configuration that asks for protection\n"
        "that odradek does not have is refused instead.\n",
    ]
    for title, module in UNUSED.items():
        parts += [f"### Not used: {title.lower()}\n", _unused(read_table(module.TABLE).values())]
    parts += [
        "## Keys that were removed\n",
        "Each is named in a warning at start, with the reason.\n",
        table(
            ("key", "why"),
            ((code(name + "*" * name.endswith(".")), why) for name, why in REMOVED.items()),
        ),
    ]
    return "\n".join(parts)


def _broker_keys(keys: Iterable[Key]) -> str:
    return table(
        ("key", "default", "value", "changed", "meaning"),
        (
            (
                code(key.name),
                _default(key),
                _allowed(key),
                _when(key),
                key.doc,
            )
            for key in keys
            if not key.internal
        ),
    )


def _inheriting_keys(keys: dict[str, Key], broker_names: dict[str, str]) -> str:
    return table(
        ("key", "default", "value", "broker's key", "meaning"),
        (
            (
                code(name),
                _default(key),
                _allowed(key),
                code(broker_names.get(name, "")),
                key.doc,
            )
            for name, key in keys.items()
            if not key.internal
        ),
    )


def _unused(keys: Iterable[Key]) -> str:
    return table(
        ("key", "default", "meaning"),
        ((code(key.name), _default(key), key.doc) for key in keys if not key.internal),
    )


def _default(key: Key) -> str:
    text = HIDDEN if key.is_sensitive and key.default is not None else key.render(key.default)
    return "none" if text is None else code(text) or "empty"


def _allowed(key: Key) -> str:
    text = key.allowed.removeprefix("must be ").removeprefix("must ")
    return _BOUND_OF_TYPE.sub("", text)


def _when(key: Key) -> str:
    return (
        "while it runs" if is_dynamic(key.name) and key.name not in OPENED_AT_START else "at start"
    )
