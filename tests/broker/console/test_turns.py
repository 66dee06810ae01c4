"""Long answers keep the event loop no longer than other requests do."""

import http.client
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.support.broker_process import free_ports
from tests.support.console_client import PREFIX
from tests.support.turns import TURN_MS, longest_turn_ms, measured_broker

pytestmark = pytest.mark.slow

HEADERS = 150_000


def test_a_record_with_many_headers_is_exported_in_short_turns(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    settings = {"odradek.http.listener": f"127.0.0.1:{port}", "odradek.console": "true"}
    with measured_broker(tmp_path, settings) as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap, "compression.type": "gzip"})
        producer.produce("headers", b"v", headers=[("h", b"")] * HEADERS)
        assert producer.flush(60) == 0

        def export(_: int) -> None:
            assert exported(port, "headers").count(b'"h"') == HEADERS

        assert longest_turn_ms(broker, export) <= TURN_MS


def exported(port: int, topic: str) -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", f"{PREFIX}/topics/{topic}/messages/export")
        answer = connection.getresponse()
        assert answer.status == 200
        return answer.read()
    finally:
        connection.close()
