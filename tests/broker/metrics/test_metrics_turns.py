"""Metrics of many groups, topics and connections: others are served while they are read."""

import threading
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from prometheus_client.core import Metric as Family
from prometheus_client.registry import Collector

from odradek.broker.common.traffic import PART, Traffic
from odradek.broker.metrics import rendering
from odradek.broker.metrics.catalogue import CATALOGUE
from odradek.broker.metrics.metric import Metric
from odradek.broker.metrics.observed import Observed
from odradek.broker.telemetry.client_series import ClientSeries
from odradek.coordinator.any_group.group import GroupType
from odradek.coordinator.metadata.topics import Topics

COUNT = 2 * PART
BY_NAME = {metric.name: metric for metrics in CATALOGUE.values() for metric in metrics}
# Those that read each group, log, offset or connection once.
READ_ALL = [
    "kafka_coordinator_group_groupmetadatamanager_numgroups",
    "kafka_server_group_coordinator_metrics_group_count",
    "kafka_server_group_coordinator_metrics_share_group_count",
    "kafka_consumergroup_current_offset",
    "kafka_server_replicamanager_leadercount",
    "kafka_server_socket_server_metrics_connection_count",
    "kafka_server_socket_server_metrics_connections_software",
    "odradek_transactional_ids",
    "odradek_oldest_transaction_seconds",
]


def group_or_transaction() -> Any:
    return SimpleNamespace(group_type=GroupType.CLASSIC, state_name="Empty", state=None, start_ms=0)


def observed() -> tuple[Observed, list[None]]:
    """A broker with COUNT of everything, and the steps that were taken."""
    steps: list[None] = []
    groups = {str(number): group_or_transaction() for number in range(COUNT)}
    one_group = {
        "t": {
            number: SimpleNamespace(offset=number, is_of=lambda _: True) for number in range(COUNT)
        }
    }
    offsets = SimpleNamespace(of_group=lambda name: one_group if name == "1" else {})
    state = SimpleNamespace(groups=groups, offsets=offsets, all=lambda: iter(groups.values()))
    shards = SimpleNamespace(serving=lambda: iter([SimpleNamespace(state=state)]))
    listener = SimpleNamespace(name="PLAINTEXT")
    session = SimpleNamespace(listener=listener, software=None)
    traffic = Traffic(Topics())
    for number in range(COUNT):
        traffic.topics[str(number)].bytes_in = 1
    broker: Any = SimpleNamespace(
        clock=SimpleNamespace(now_ms=lambda: 0),
        config=SimpleNamespace(open_listeners=[listener]),
        coordinators=SimpleNamespace(
            groups=SimpleNamespace(shards=shards), transactions=SimpleNamespace(shards=shards)
        ),
        metadata=SimpleNamespace(topics={"t": SimpleNamespace(id=b"")}),
        log_manager=SimpleNamespace(logs=lambda: [SimpleNamespace(is_online=True)] * COUNT),
    )
    server: Any = SimpleNamespace(connections=[SimpleNamespace(session=session)] * COUNT)
    loop_delay: Any = None
    made = Observed(
        broker=broker,
        servers=lambda: [server],
        traffic=traffic,
        loop_delay=loop_delay,
        started_ms=0,
        step=lambda: steps.append(None),
    )
    return made, steps


@pytest.mark.parametrize("name", READ_ALL)
def test_there_is_a_step_for_each_thing_that_is_read(name: str) -> None:
    made, steps = observed()
    metric: Metric = BY_NAME[name]
    assert list(metric.read(made))
    assert len(steps) >= COUNT


def test_the_traffic_of_topics_is_added_up_in_parts() -> None:
    made, steps = observed()
    (_, total), *_ = BY_NAME["kafka_server_brokertopicmetrics_bytesin_total"].read(made)
    assert total == COUNT
    assert len(steps) > 1


class OpenFiles(Collector):
    """Notes which thread lists the open files."""

    thread = 0

    def collect(self) -> Iterable[Family]:
        self.thread = threading.get_ident()
        return []


async def test_the_open_files_are_not_listed_by_the_event_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made, _ = observed()
    files, broker = OpenFiles(), cast(Any, made.broker)
    broker.log_manager = SimpleNamespace(logs=list)
    broker.telemetry = SimpleNamespace(series=ClientSeries(1, 1))
    monkeypatch.setattr(rendering, "PROCESS", files)
    monkeypatch.setattr(rendering, "CATALOGUE", {})
    slices: Any = SimpleNamespace(step=lambda: None, of=iter)
    assert await rendering.render(made, slices) == b""
    assert files.thread not in (0, threading.get_ident())
