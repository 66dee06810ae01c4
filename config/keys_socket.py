"""Keys of sockets, listeners, connections and quotas, and of the memory for requests."""

from typing import Annotated, Literal

from .key import INT_MAX, ConfigType, Csv, Int, KeyModel, Long, OptionalCsv, OptionalText, Text, key

SecurityProtocolName = Annotated[
    Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"], ConfigType.STRING
]


class SocketKeys(KeyModel):
    """Kafka: SocketServerConfigs, ReplicationConfigs (the inter-broker listener)."""

    listeners: Csv = key(
        ("PLAINTEXT://:9092",),
        "Addresses to listen on, as NAME://host:port; an empty host means every interface.",
        not_empty=True,
    )
    advertised_listeners: OptionalCsv = key(
        None,
        "Addresses sent to clients, as NAME://host:port; default: `listeners`.",
        not_empty=True,
    )
    listener_security_protocol_map: Text = key(
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        "The security protocol of each listener name, as NAME:PROTOCOL.",
    )
    inter_broker_listener_name: OptionalText = key(
        None, "The listener that other brokers would use; must be among `listeners`."
    )
    security_inter_broker_protocol: SecurityProtocolName = key(
        "PLAINTEXT", "Selects the inter-broker listener by its protocol."
    )
    socket_send_buffer_bytes: Int = key(
        102_400, "SO_SNDBUF of a client's socket; -1: the system's default."
    )
    socket_receive_buffer_bytes: Int = key(
        102_400, "SO_RCVBUF of a client's socket; -1: the system's default."
    )
    socket_request_max_bytes: Int = key(104_857_600, "Maximum size of a request.", ge=1)
    socket_listen_backlog_size: Int = key(50, "How many connections may wait to be accepted.", ge=1)
    max_connections: Int = key(INT_MAX, "Maximum number of connections.", ge=0)
    max_connections_per_ip: Int = key(
        INT_MAX, "Maximum number of connections from one address.", ge=0
    )
    max_connections_per_ip_overrides: Text = key(
        "", "Exceptions to max.connections.per.ip, as host:count."
    )
    max_connection_creation_rate: Int = key(
        INT_MAX,
        "Maximum number of new connections per second: of the broker, and of each listener.",
        ge=0,
    )
    connections_max_idle_ms: Long = key(
        600_000, "A connection that is idle for longer is closed; negative: never."
    )
    connection_failed_authentication_delay_ms: Int = key(
        100, "How long the answer to a failed authentication is delayed.", ge=0
    )
    quota_window_num: Int = key(
        11, "Number of samples over which the rates of clients and connections are measured.", ge=1
    )
    quota_window_size_seconds: Int = key(1, "Length of one of these samples.", ge=1)
    controller_quota_window_num: Int = key(
        11, "Number of samples of quotas on creating and deleting partitions.", ge=1
    )
    controller_quota_window_size_seconds: Int = key(1, "Length of one of these samples.", ge=1)
    queued_max_request_bytes: Long = key(
        256 << 20, "Maximum bytes of requests in memory, also partly received ones; -1: no limit."
    )
