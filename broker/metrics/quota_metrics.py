"""Metrics of client quotas: of each user and client id that has a quota and has used it."""

from __future__ import annotations

from collections.abc import Iterator

from .metric import Kind, Metric, Sample
from .observed import Observed

_LABELS = ("resource", "user", "clientId")


def _byte_rates(observed: Observed) -> Iterator[Sample]:
    quotas = observed.broker.quotas
    for resource, quota in (("Produce", quotas.produce), ("Fetch", quotas.fetch)):
        for (user, client_id), rate in quota.measured(quotas.timer_ms):
            yield (resource, user, client_id), rate


def _request_times(observed: Observed) -> Iterator[Sample]:
    quotas = observed.broker.quotas
    for (user, client_id), per_cent in quotas.request.measured(quotas.timer_ms):
        yield ("Request", user, client_id), per_cent


def _tokens(observed: Observed) -> Iterator[Sample]:
    quotas = observed.broker.quotas
    for (user, client_id), tokens in quotas.mutations.permits(quotas.timer_ms):
        yield ("ControllerMutation", user, client_id), tokens


QUOTA_METRICS: list[Metric] = [
    Metric(
        "kafka_server_quota_byte_rate",
        Kind.GAUGE,
        _LABELS,
        "Bytes per second of clients with a quota on them.",
        _byte_rates,
    ),
    Metric(
        "kafka_server_quota_request_time",
        Kind.GAUGE,
        _LABELS,
        "Per cent of the broker's time that clients with a quota on it take.",
        _request_times,
    ),
    Metric(
        "kafka_server_quota_tokens",
        Kind.GAUGE,
        _LABELS,
        "Partitions that clients with a quota on that may create or delete at once.",
        _tokens,
    ),
]
