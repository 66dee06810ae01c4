"""The broker's configuration: every key that odradek uses, typed, in one immutable object.

The key `log.segment.bytes` is the attribute `log_segment_bytes`. The files keys_*.py declare the
keys by subject. This file holds what concerns several keys at once: older names of a key, keys that
override others, and combinations of values that are not allowed.

Kafka: KafkaConfig, AbstractKafkaConfig.
"""

from collections.abc import Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from odradek.config import topic_config

from .errors import invalid_value
from .key import INT_MAX, Bool, ConfigType, Csv, Int, Long, OptionalText, field_name, key, parse_all
from .keys_authorizer import STANDARD_AUTHORIZER, AuthorizerKeys, AuthorizerSettings
from .keys_consumer_group import (
    ConsumerGroupKeys,
    check_assignors,
    check_intervals,
    check_protocols,
)
from .keys_delegation_token import DelegationTokenKeys
from .keys_group import GroupKeys
from .keys_log import LogKeys
from .keys_metadata import MetadataKeys
from .keys_node import NodeKeys
from .keys_share_coordinator import ShareCoordinatorKeys
from .keys_share_group import (
    ShareGroupKeys,
    check_queue_writer,
    check_share_assignors,
    check_share_groups,
)
from .keys_socket import SocketKeys
from .keys_streams_group import StreamsGroupKeys, check_streams_assignors, check_streams_groups
from .keys_telemetry import TelemetryKeys
from .keys_transaction import TransactionKeys
from .listener_settings import ListenerSettings
from .listeners import (
    Listener,
    SecurityProtocol,
    parse_http_listener,
    parse_limits_by_host,
    parse_listeners,
    protocols_by_listener,
)
from .topic_config import TopicConfig

LAST_CODEC = 4  # zstd
MAX_PORT = 65_535
# The default of default.replication.factor with odradek.nodes, if there are so many.
REPLICAS_OF_NODES = 3
REPLICA_SELECTOR = "replica.selector.class"
RACK_AWARE_SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
# cordoned.log.dirs: all data directories.
ALL_DIRECTORIES = ("*",)
# log.cleaner.dedupe.buffer.size must be more than this for each of log.cleaner.threads.
CLEANER_BUFFER_BYTES = 1 << 20

# With a listener's prefix, these are limits of the listener in addition to those of the broker.
LIMITS_OF_LISTENERS = frozenset({"max.connections", "max.connection.creation.rate"})

NO_SETTINGS: Mapping[str, str] = {}


class BrokerConfig(
    NodeKeys,
    SocketKeys,
    LogKeys,
    GroupKeys,
    ConsumerGroupKeys,
    StreamsGroupKeys,
    ShareGroupKeys,
    ShareCoordinatorKeys,
    TransactionKeys,
    MetadataKeys,
    AuthorizerKeys,
    DelegationTokenKeys,
    TelemetryKeys,
):
    """The configuration of a broker. Create it with `from_texts`, or by attribute names in Python.

    Raises ConfigError for a value, or a combination of values, that is not allowed.
    """

    odradek_validate_records: Annotated[Literal["headers", "full"], ConfigType.STRING] = key(
        "headers", "What is checked of a produced batch: its header, or every record in it (full)."
    )
    odradek_min_free_bytes: Long = key(
        67_108_864,
        "Produce is refused in a log directory with less free space than this; 0: no limit.",
        ge=0,
    )
    odradek_group_expire_on_disconnect: Bool = key(
        False, "Remove a dynamic member from its group when its connection closes; for tests."
    )
    odradek_http_listener: OptionalText = key(
        None, "host:port of /metrics, /healthz and /readyz, without authentication; unset: none."
    )
    odradek_http_hosts: Csv = key(
        (), "Further names of this broker that browsers may use; addresses need none."
    )
    odradek_console: Bool = key(
        False, "Serve the console, pages that show and change what is here, at that listener too."
    )
    odradek_console_read_only: Bool = key(False, "The console changes nothing.")
    odradek_registry_listener: OptionalText = key(
        None, "host:port of the schema registry, which needs odradek[registry]; unset: none."
    )
    odradek_nodes: Int = key(
        1,
        "For tests of clients: play a cluster of so many nodes, with one log behind them.",
        ge=1,
        le=64,
    )
    odradek_nodes_racks: Csv = key(
        (), "The racks of the nodes of odradek.nodes, in their order; empty: broker.rack."
    )
    odradek_create_topics: Csv = key(
        (),
        "Topics that a start creates if missing: NAME[:PARTITIONS[:REPLICAS[:POLICY]]].",
    )
    odradek_cluster_id: OptionalText = key(
        None,
        "The cluster id that empty data directories get, and others must have; unset: a random id.",
        not_empty=True,
        internal=True,
    )
    # The settings that were made while the broker ran, also unused keys.
    dynamic: Mapping[str, str] = NO_SETTINGS
    # The user's keys and values as written, also unused keys.
    written: Mapping[str, str] | None = None

    @classmethod
    def from_texts(cls, texts: Mapping[str, str], dynamic: Mapping[str, str] = NO_SETTINGS) -> Self:
        """Parse the keys and values of a file. Raises ConfigError.

        Keys that are not fields are only kept in `written`. `dynamic` are settings that were made
        while the broker ran: they override the file.
        """
        written = _with_synonyms(texts)
        parsed = parse_all(SERVED_KEYS, {**written, **dynamic})
        values: dict[str, Any] = {field_name(name): value for name, value in parsed.items()}
        return cls(**values, written=written, dynamic=dynamic)

    def with_dynamic(self, dynamic: Mapping[str, str]) -> Self:
        """This configuration overridden by settings of the running broker. Raises ConfigError."""
        return type(self).from_texts(self.texts, dynamic) if dynamic else self

    def __post_init__(self) -> None:
        if self.odradek_nodes > 1 and "default_replication_factor" not in self.given:
            self.__dict__["default_replication_factor"] = REPLICAS_OF_NODES
        for name in ("default_replication_factor", "offsets_topic_replication_factor"):
            # A node can hold one replica only. `texts` still has the value as written.
            self.__dict__[name] = min(getattr(self, name), self.odradek_nodes)
        for check in (
            _check_node,
            _check_log,
            _check_cleaner,
            _check_cordoned,
            _check_connections,
            _check_listeners,
            _check_authorizer,
            _check_modern_groups,
            _check_streams_groups,
            _check_nodes,
            _check_topics,
        ):
            check(self)

    @cached_property
    def texts(self) -> Mapping[str, str]:
        """The keys that the user set, with their values as text: from a file, or from Python."""
        if self.written is not None:
            return self.written
        rendered = {
            name: item.render(getattr(self, field_name(name)))
            for name, item in SERVED_KEYS.items()
            if field_name(name) in self.given
        }
        return {name: text for name, text in rendered.items() if text is not None}

    @cached_property
    def selects_by_rack(self) -> bool:
        """Whether consumers read from the replica in their own rack (KIP-392)."""
        return self.odradek_nodes > 1 and self.texts.get(REPLICA_SELECTOR) == RACK_AWARE_SELECTOR

    def of_listener(self, listener_name: str) -> ListenerSettings:
        """The settings of a listener, those that were made while the broker ran included."""
        return ListenerSettings({**self.texts, **self.dynamic}, listener_name)

    def limit_of_listener(self, listener_name: str, name: str) -> int:
        """The value of one of LIMITS_OF_LISTENERS for a listener."""
        key, text = SERVED_KEYS[name], self.of_listener(listener_name).text(name)
        value = key.default if text is None else key.parse(text)
        assert isinstance(value, int)
        return value

    @cached_property
    def data_directories(self) -> tuple[Path, ...]:
        """log.dirs, or log.dir if log.dirs is not set."""
        return tuple(Path(text) for text in self.log_dirs or self.log_dir)

    @cached_property
    def cordoned_directories(self) -> frozenset[Path]:
        """The data directories that get no new partitions (KIP-1066), as absolute paths."""
        if self.cordoned_log_dirs == ALL_DIRECTORIES:
            return frozenset(path.absolute() for path in self.data_directories)
        return frozenset(Path(text).absolute() for text in self.cordoned_log_dirs)

    @cached_property
    def metadata_directory(self) -> Path:
        """The directory of __cluster_metadata-0: metadata.log.dir, or the first data directory."""
        return Path(self.metadata_log_dir) if self.metadata_log_dir else self.data_directories[0]

    @cached_property
    def queued_bytes_limit(self) -> int | None:
        """The limit for bytes of requests in memory; None if there is no limit.

        It is at least socket.request.max.bytes, so that the largest request fits.
        """
        limit = self.queued_max_request_bytes
        return None if limit <= 0 else max(limit, self.socket_request_max_bytes)

    @cached_property
    def connection_limits(self) -> Mapping[str, int]:
        """max.connections.per.ip.overrides: the largest number of connections, by host."""
        return parse_limits_by_host(self.max_connections_per_ip_overrides)

    @cached_property
    def all_listeners(self) -> tuple[Listener, ...]:
        """`listeners` as written, including a controller's."""
        return parse_listeners("listeners", self.listeners, self.security_protocols)

    @cached_property
    def open_listeners(self) -> tuple[Listener, ...]:
        """The listeners for clients: all except the controller's."""
        return tuple(item for item in self.all_listeners if not self._is_of_controller(item))

    def port_of_node(self, port: int, number: int) -> int:
        """The port of a node of odradek.nodes, from that of the first (0); port 0 stays 0."""
        return port + number if port else 0

    @cached_property
    def authorizer(self) -> AuthorizerSettings | None:
        """The settings of the authorizer; None if there is none, and everything is allowed."""
        return AuthorizerSettings.of(self.texts) if self.authorizer_class_name.strip() else None

    @cached_property
    def http_listener(self) -> Listener | None:
        """odradek.http.listener, or None."""
        text = self.odradek_http_listener
        return parse_http_listener("odradek.http.listener", text) if text else None

    @cached_property
    def registry_listener(self) -> Listener | None:
        """odradek.registry.listener, or None."""
        text = self.odradek_registry_listener
        if not text:
            return None
        return parse_http_listener("odradek.registry.listener", text)._replace(name="REGISTRY")

    @cached_property
    def receives_telemetry(self) -> bool:
        """Whether something becomes of the metrics that clients push (KIP-714)."""
        return self.http_listener is not None or self.odradek_telemetry_topic is not None

    @cached_property
    def security_protocols(self) -> Mapping[str, SecurityProtocol]:
        """The security protocol of each listener name."""
        written = "listener_security_protocol_map" in self.given
        return protocols_by_listener(
            self.listener_security_protocol_map,
            names_that_default_to_plaintext=() if written else self.controller_listener_names,
        )

    @cached_property
    def advertised(self) -> Mapping[str, Listener]:
        """The address that is sent to the clients of each open listener, by listener name.

        Host None stands for the address by which the client reached this broker, port 0 for the
        port that the listener got. A listener without an entry in advertised.listeners advertises
        its own address.
        """
        written = parse_listeners(
            "advertised.listeners",
            self.advertised_listeners or (),
            self.security_protocols,
            distinct_ports=False,
        )
        own = {item.name: item.without_wildcard() for item in self.open_listeners}
        return own | {item.name: item for item in written if not self._is_of_controller(item)}

    def topic_config(self, overrides: Mapping[str, str]) -> TopicConfig:
        """The configuration of a topic that is given `overrides`. Raises ConfigError."""
        topic_config.check_names(overrides)
        config = self.stored_topic_config(overrides)
        topic_config.check_together(config)
        return config

    def stored_topic_config(self, overrides: Mapping[str, str]) -> TopicConfig:
        """The configuration of a topic that already has `overrides`; unknown names are ignored."""
        return topic_config.with_overrides(self._inherited_topic_config, overrides)

    @cached_property
    def _inherited_topic_config(self) -> TopicConfig:
        return topic_config.inherited_topic_config(self)

    def _is_of_controller(self, listener: Listener) -> bool:
        return listener.name in map(str.upper, self.controller_listener_names)


SERVED_KEYS = BrokerConfig.keys


def _with_synonyms(texts: Mapping[str, str]) -> dict[str, str]:
    """node.id and broker.id mean the same: a file that sets only one sets both."""
    both = dict(texts)
    for name, other in (("node.id", "broker.id"), ("broker.id", "node.id")):
        if name in texts:
            both.setdefault(other, texts[name])
    return both


def _check_node(config: BrokerConfig) -> None:
    if "broker_id" in config.given and config.broker_id != config.node_id:
        raise invalid_value("broker.id", config.broker_id, f"must equal node.id ({config.node_id})")


def _check_log(config: BrokerConfig) -> None:
    if config.log_roll_ms is not None and config.log_roll_ms < 1:
        raise invalid_value("log.roll.ms", config.log_roll_ms, "must be at least 1")
    if config.log_roll_jitter_ms is not None and config.log_roll_jitter_ms < 0:
        raise invalid_value("log.roll.jitter.ms", config.log_roll_jitter_ms, "must be at least 0")
    for name in ("log.retention.ms", "log.retention.minutes", "log.retention.hours"):
        value = getattr(config, field_name(name))
        if value is not None:
            if value == 0:
                raise invalid_value(name, value, "must be at least 1, or -1 for no limit")
            break
    for name in ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"):
        value = getattr(config, field_name(name))
        if value is not None and value < 0:
            raise invalid_value(name, value, "must be at least 0")
    topic_config.check_together(topic_config.inherited_topic_config(config))


def _check_cleaner(config: BrokerConfig) -> None:
    threads, buffer_bytes = config.log_cleaner_threads, config.log_cleaner_dedupe_buffer_size
    if threads == 0:
        raise invalid_value("log.cleaner.threads", threads, "must be at least 1")
    if buffer_bytes // threads <= CLEANER_BUFFER_BYTES:
        allowed = f"must be more than 1 MiB for each of log.cleaner.threads ({threads})"
        raise invalid_value("log.cleaner.dedupe.buffer.size", buffer_bytes, allowed)


def _check_cordoned(config: BrokerConfig) -> None:
    if config.cordoned_log_dirs == ALL_DIRECTORIES:
        return
    directories = {path.absolute() for path in config.data_directories}
    for text in config.cordoned_log_dirs:
        if Path(text).absolute() not in directories:
            raise invalid_value("cordoned.log.dirs", text, "must be among log.dirs, or only *")


def _check_connections(config: BrokerConfig) -> None:
    limits = config.connection_limits
    if config.max_connections_per_ip == 0 and not limits:
        raise invalid_value(
            "max.connections.per.ip", 0, "may be 0 only with max.connections.per.ip.overrides"
        )
    delay_ms, idle_ms = (
        config.connection_failed_authentication_delay_ms,
        config.connections_max_idle_ms,
    )
    if 0 <= idle_ms <= delay_ms:
        least = f"must be less than connections.max.idle.ms ({idle_ms})"
        raise invalid_value("connection.failed.authentication.delay.ms", delay_ms, least)
    limit = config.queued_max_request_bytes
    is_written = "queued_max_request_bytes" in config.given
    if is_written and 0 < limit < config.socket_request_max_bytes:
        least = f"socket.request.max.bytes ({config.socket_request_max_bytes})"
        raise invalid_value("queued.max.request.bytes", limit, f"must be at least {least}, or -1")


def _check_modern_groups(config: BrokerConfig) -> None:
    check_protocols(config.group_coordinator_rebalance_protocols)
    check_assignors(config.group_consumer_assignors)
    number = partial(_number, config)
    check_intervals("consumer", number)
    check_share_assignors(config.group_share_assignors)
    check_queue_writer(config.group_share_dlq_manager_class_name)
    check_share_groups(number)
    codec = config.share_coordinator_state_topic_compression_codec
    if not 0 <= codec <= LAST_CODEC:
        name = "share.coordinator.state.topic.compression.codec"
        raise invalid_value(name, codec, f"must be from 0 to {LAST_CODEC}")


def _number(config: BrokerConfig, name: str) -> int:
    return int(getattr(config, field_name(name)))


def _check_streams_groups(config: BrokerConfig) -> None:
    check_streams_groups(partial(_number, config), config.texts)
    check_streams_assignors(config.group_streams_assignors)


def _check_nodes(config: BrokerConfig) -> None:
    nodes, racks = config.odradek_nodes, config.odradek_nodes_racks
    if racks and len(racks) != nodes:
        text = f"must have a rack for each of the {nodes} nodes of odradek.nodes"
        raise invalid_value("odradek.nodes.racks", ",".join(racks), text)
    if nodes > 1:
        _check_addresses_of_nodes(config)


def _check_topics(config: BrokerConfig) -> None:
    for entry in config.odradek_create_topics:
        _, *numbers = entry.split(":")[:3]
        for text in filter(None, numbers):
            if not text.isdecimal() or not 1 <= int(text) <= INT_MAX:
                allowed = "must be NAME:PARTITIONS:REPLICAS:POLICY, with whole numbers from 1 on"
                raise invalid_value("odradek.create.topics", entry, allowed)


def _check_addresses_of_nodes(config: BrokerConfig) -> None:
    nodes = config.odradek_nodes
    if config.node_id + nodes > INT_MAX:
        raise invalid_value("odradek.nodes", nodes, f"node.id + this must be at most {INT_MAX}")
    http = config.http_listener
    used = {http.port: "odradek.http.listener"} if http and http.port else {}
    for number in range(nodes):
        for port in {item.port for item in config.open_listeners if item.port}:
            own, node = config.port_of_node(port, number), f"node {config.node_id + number}"
            if own > MAX_PORT:
                raise invalid_value("odradek.nodes", nodes, f"there is no port {own} for {node}")
            if own in used:
                text = f"both {used[own]} and {node} would listen at port {own}"
                raise invalid_value("odradek.nodes", nodes, text)
            used[own] = node
    advertised = max(item.port for item in config.advertised.values())
    if config.port_of_node(advertised, nodes - 1) > MAX_PORT:
        text = f"the last of the {nodes} nodes of odradek.nodes has no port"
        raise invalid_value(
            "advertised.listeners", ",".join(config.advertised_listeners or ()), text
        )


def _check_authorizer(config: BrokerConfig) -> None:
    name = config.authorizer_class_name.strip()
    if name not in ("", STANDARD_AUTHORIZER):
        allowed = f"must be {STANDARD_AUTHORIZER}, or empty to allow everything"
        raise invalid_value("authorizer.class.name", name, allowed)
    _ = config.authorizer  # raises


def _check_listeners(config: BrokerConfig) -> None:
    http, _ = config.http_listener, config.registry_listener  # raises
    if config.odradek_console and http is None:
        raise invalid_value("odradek.console", True, "needs odradek.http.listener")
    opened = {item.name for item in config.open_listeners}
    if not opened:
        raise invalid_value(
            "listeners",
            ",".join(config.listeners),
            "must include one that is not in controller.listener.names",
        )
    for item in config.advertised.values():
        if item.name not in opened:
            names = ", ".join(sorted(opened))
            raise invalid_value("advertised.listeners", str(item), f"must be for one of: {names}")
        if item.host == "0.0.0.0":
            raise invalid_value("advertised.listeners", str(item), "must not advertise 0.0.0.0")
    name = config.inter_broker_listener_name
    if name is not None and name.upper() not in opened:
        names = ", ".join(sorted(opened))
        raise invalid_value("inter.broker.listener.name", name, f"must be one of: {names}")
