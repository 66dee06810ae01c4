"""Metrics of client telemetry (KIP-714): what the broker does with it. Clients push their own."""

from __future__ import annotations

from collections.abc import Iterator

from odradek.broker.telemetry.client_series import LeftOut
from odradek.protocol.errors import ErrorCode

from .metric import Kind, Metric, Sample, counter, gauge
from .observed import Observed

_REFUSALS = (
    ErrorCode.THROTTLING_QUOTA_EXCEEDED,
    ErrorCode.UNKNOWN_SUBSCRIPTION_ID,
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
    ErrorCode.TELEMETRY_TOO_LARGE,
    ErrorCode.INVALID_REQUEST,
    ErrorCode.INVALID_RECORD,
)


def _refused_pushes(observed: Observed) -> Iterator[Sample]:
    for error in _REFUSALS:
        yield (error.name,), observed.broker.telemetry.refused[error]


def _left_out(observed: Observed) -> Iterator[Sample]:
    for reason in LeftOut:
        yield (reason.value,), observed.broker.telemetry.series.left_out[reason]


def _dropped(observed: Observed) -> float:
    records = observed.broker.telemetry.records
    return 0 if records is None else records.dropped_count


TELEMETRY_METRICS: list[Metric] = [
    gauge(
        "kafka_server_client_metrics_instance_count",
        "Clients that have asked for their subscription and have not been forgotten.",
        lambda observed: len(observed.broker.telemetry.instances),
    ),
    counter(
        "odradek_telemetry_pushes_total",
        "Pushes of clients that were read.",
        lambda observed: observed.broker.telemetry.pushed_count,
    ),
    Metric(
        "odradek_telemetry_refused_total",
        Kind.COUNTER,
        ("error",),
        "Requests of telemetry that were refused, by error.",
        _refused_pushes,
    ),
    gauge(
        "odradek_telemetry_series",
        "Series of clients that are shown here.",
        lambda observed: observed.broker.telemetry.series.count,
    ),
    Metric(
        "odradek_telemetry_left_out_total",
        Kind.COUNTER,
        ("reason",),
        "Values that clients have pushed and that are not shown, by reason.",
        _left_out,
    ),
    counter(
        "odradek_telemetry_dropped_total",
        "Pushes that could not be written to odradek.telemetry.topic.",
        _dropped,
    ),
]
