"""Each process serves its own metrics, at the port of odradek.http.listener plus its step."""

import re
import urllib.request
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from tests.support.broker_process import WORKERS as TEST_PROCESSES
from tests.support.broker_with_workers import (
    PARTITIONS,
    BrokerWithWorkers,
    free_base,
    new_topic,
    produce,
)

pytestmark = pytest.mark.slow


def get(port: int, page: str) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{page}", timeout=30) as response:
        text: str = response.read().decode()
    return text


def test_each_worker_counts_its_own_records(tmp_path: Path) -> None:
    base = free_base(2)
    broker = BrokerWithWorkers(
        tmp_path / "broker", overrides={"odradek.http.listener": f"127.0.0.1:{base}"}
    )
    broker.start()
    try:
        ports = [base + process * TEST_PROCESSES for process in range(3)]
        assert [get(port, "/readyz") for port in ports] == ["ready\n"] * 3
        new_topic(AdminClient({"bootstrap.servers": broker.bootstrap}), "orders")
        produce(broker.bootstrap, "orders", ["x"] * PARTITIONS)
        counts = [
            re.search(r'messagesin_total{topic="orders"} (\S+)', get(port, "/metrics"))
            for port in ports
        ]
        assert [count and float(count[1]) for count in counts] == [None, 3.0, 3.0]
        assert "activecontrollercount 1.0" in get(ports[0], "/metrics")
        assert "activecontrollercount" not in get(ports[1], "/metrics")
    finally:
        assert broker.terminate() == 0
    assert broker.crashes_in_log() == []
