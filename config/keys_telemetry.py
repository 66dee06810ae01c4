"""Keys of client telemetry (KIP-714)."""

from .key import Int, KeyModel, OptionalText, key


class TelemetryKeys(KeyModel):
    """Kafka: MetricConfigs. The keys of odradek say what is done with the metrics of clients."""

    telemetry_max_bytes: Int = key(
        1_048_576, "Maximum size of one push of a client's metrics.", ge=1
    )
    odradek_telemetry_topic: OptionalText = key(
        None, "The topic that gets what clients push, as OTLP bytes; unset: none.", not_empty=True
    )
    odradek_telemetry_max_series: Int = key(
        10_000, "The most series of all clients in /metrics; others are left out.", ge=0
    )
    odradek_telemetry_max_client_series: Int = key(
        1_000, "The most series of one client in /metrics; others are left out.", ge=0
    )
