"""Makes OTLP bytes (OpenTelemetry's MetricsData) as clients of Kafka push them."""

import struct
from collections.abc import Mapping

from odradek.protocol.primitives import write_uvarint

NOW_NS = 1_700_000_000_000_000_000
DELTA, CUMULATIVE = 1, 2


def message(number: int, content: bytes) -> bytes:
    """A field that holds a message, a text or bytes."""
    out = bytearray()
    write_uvarint(out, number << 3 | 2)
    write_uvarint(out, len(content))
    return bytes(out) + content


def integer(number: int, value: int) -> bytes:
    """A field that holds a varint."""
    out = bytearray()
    write_uvarint(out, number << 3)
    write_uvarint(out, value)
    return bytes(out)


def fixed64(number: int, content: bytes) -> bytes:
    """A field that holds eight bytes."""
    return bytes([number << 3 | 1]) + content


def attributes(number: int, values: Mapping[str, str]) -> bytes:
    """One field for each attribute."""
    return b"".join(
        message(number, message(1, name.encode()) + message(2, message(1, value.encode())))
        for name, value in values.items()
    )


def data_point(value: float, values: Mapping[str, str]) -> bytes:
    """A NumberDataPoint."""
    number = (
        fixed64(6, struct.pack("<q", value))
        if isinstance(value, int)
        else fixed64(4, struct.pack("<d", value))
    )
    times = fixed64(2, struct.pack("<Q", NOW_NS)) + fixed64(3, struct.pack("<Q", NOW_NS))
    return times + number + attributes(7, values)


def gauge(name: str, value: float, **values: str) -> bytes:
    """A Metric with one value."""
    return message(1, name.encode()) + message(5, message(1, data_point(value, values)))


def counter(name: str, value: float, temporality: int = DELTA, **values: str) -> bytes:
    """A Metric whose value only grows."""
    points = message(1, data_point(value, values))
    content = points + integer(2, temporality) + integer(3, 1)
    return message(1, name.encode()) + message(7, content)


def metrics_data(*metrics: bytes, resource: Mapping[str, str] | None = None) -> bytes:
    """A MetricsData with one resource for each metric, as the Java client makes it."""
    about = message(1, attributes(1, resource or {}))
    return b"".join(message(1, about + message(2, message(2, metric))) for metric in metrics)
