"""All metrics of a broker, in the order in which they are shown."""

from __future__ import annotations

from collections.abc import Sequence

from .group_metrics import GROUP_METRICS
from .log_metrics import LOG_METRICS, offline_partition_count, partition_count
from .metric import Metric, gauge
from .observed import Observed
from .quota_metrics import QUOTA_METRICS
from .readiness import problems
from .telemetry_metrics import TELEMETRY_METRICS
from .traffic_metrics import TRAFFIC_METRICS

RUNNING = 3
PENDING_CONTROLLED_SHUTDOWN = 6


def _broker_state(observed: Observed) -> float:
    return PENDING_CONTROLLED_SHUTDOWN if observed.is_stopping else RUNNING


BROKER_METRICS: list[Metric] = [
    gauge(
        "odradek_ready",
        "1 if /readyz answers 200.",
        lambda observed: not any(problems(observed)),
    ),
    gauge(
        "kafka_server_kafkaserver_brokerstate",
        "Kafka's number of the broker's state: 3 while it runs, 6 while it stops.",
        _broker_state,
    ),
]
CONTROLLER_METRICS: list[Metric] = [
    gauge(
        "kafka_controller_kafkacontroller_activecontrollercount",
        "Always 1: this node is the controller.",
        lambda _: 1,
    ),
    gauge(
        "kafka_controller_kafkacontroller_globaltopiccount",
        "Topics of the cluster.",
        lambda observed: len(observed.broker.metadata.topics),
    ),
    gauge(
        "kafka_controller_kafkacontroller_globalpartitioncount",
        "Partitions of the cluster.",
        partition_count,
    ),
    gauge(
        "kafka_controller_kafkacontroller_offlinepartitionscount",
        "Partitions without a leader.",
        offline_partition_count,
    ),
]

# By heading in docs/metrics.md.
CATALOGUE: dict[str, Sequence[Metric]] = {
    "The broker": [*BROKER_METRICS, *CONTROLLER_METRICS],
    "Requests, topics and connections": TRAFFIC_METRICS,
    "Quotas": QUOTA_METRICS,
    "Partitions and their logs": LOG_METRICS,
    "Groups and transactions": GROUP_METRICS,
    "Telemetry of clients": TELEMETRY_METRICS,
}
