"""Target: what clients push as metrics.

otlp     the bytes of a MetricsData (protobuf)
"""

from collections.abc import Iterator

from odradek.broker.telemetry.client_series import series_name
from odradek.broker.telemetry.otlp import OtlpError, Point, read_points
from tests.fuzz.target import Target
from tests.support.otlp import (
    CUMULATIVE,
    attributes,
    counter,
    data_point,
    gauge,
    integer,
    message,
    metrics_data,
)


def read_metrics(data: bytes) -> None:
    """Two messages, one after the other, are one message with the content of both."""
    try:
        points = _points(data)
    except OtlpError:
        return
    assert repr(_points(data + data)) == repr(points + points)  # not-a-number equals nothing
    for point in points:
        assert series_name(point).isascii()


def _points(data: bytes) -> list[Point]:
    return [point for point in read_points(data) if point is not None]


def metrics_seeds() -> Iterator[bytes]:
    """As clients push them, and what they do not push."""
    yield metrics_data(gauge("org.apache.kafka.a", 1.5, topic="t"), resource={"group_id": "g"})
    yield metrics_data(counter("org.apache.kafka.b.total", 7), counter("c", -1, CUMULATIVE))
    several = b"".join(message(1, data_point(value, {"k": "v"})) for value in (1, 2.0))
    yield metrics_data(message(1, b"several") + message(5, several))
    numbers = message(1, b"n") + message(2, integer(3, (1 << 64) - 1))
    yield message(1, message(1, message(1, numbers) + attributes(1, {"empty": ""})))
    yield metrics_data(message(1, b"histogram") + message(9, message(1, bytes(20))))


TARGETS = {"otlp": Target(read_metrics, metrics_seeds)}
