"""Quotas in one directory: Kafka's are in force in odradek, and odradek's in Kafka afterwards."""

from pathlib import Path

import pytest

from odradek.protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from odradek.protocol.messages.produce import ProduceResponse
from tests.conformance.exchange.history import wait_until
from tests.conformance.exchange.shared_directory import SharedDirectory
from tests.conformance.requests import batch_of
from tests.support.broker_in_loop import produce_to
from tests.support.broker_process import BrokerProcess
from tests.support.java_tools import why_no_java
from tests.support.lengths import only_long
from tests.support.quotas import alter_quota
from tests.support.topics import create_topic
from tests.support.wire import WireClient

pytestmark = [
    pytest.mark.java,
    pytest.mark.slow,
    pytest.mark.skipif(why_no_java() is not None, reason=str(why_no_java())),
    only_long("quotas are exchanged in test_exchange.py"),
]

PRODUCE_VERSION = 9
ALICE: dict[str, str | None] = {"user": "alice", "client-id": None}
ANYONES: dict[str, str | None] = {"user": None, "client-id": "greedy"}
ADDRESS: dict[str, str | None] = {"ip": "192.0.2.1"}
FIRST: dict[str, str | None] = {"client-id": "first"}
EVERY = DescribeClientQuotasRequest(components=[], strict=False)


def quotas(broker: BrokerProcess) -> list[str]:
    with WireClient(broker.port) as client:
        answer = client.ask(EVERY, DescribeClientQuotasResponse, 1)
    return sorted(
        f"{sorted(repr(part) for part in entry.entity)} {sorted(map(repr, entry.values))}"
        for entry in answer.entries or ()
    )


def is_throttled(broker: BrokerProcess, client_id: str) -> bool:
    with WireClient(broker.port, client_id=client_id) as client:
        request = produce_to("t", batch_of("x" * 20_000), acks=1)
        return client.ask(request, ProduceResponse, PRODUCE_VERSION).throttle_time_ms > 0


def test_quotas_go_to_odradek_and_come_back(tmp_path: Path) -> None:
    shared = SharedDirectory(tmp_path)
    with shared.served_by("kafka", killed=False) as broker:
        create_topic(broker.bootstrap, "t")
        alter_quota(broker.port, ALICE, consumer_byte_rate=5, request_percentage=12.5)
        alter_quota(broker.port, ANYONES, producer_byte_rate=1000)
        alter_quota(broker.port, ADDRESS, connection_creation_rate=7)
        alter_quota(broker.port, FIRST, producer_byte_rate=1000)
        wait_until(lambda: len(quotas(broker)) == 4)
        of_kafka = quotas(broker)
        assert is_throttled(broker, "greedy")
    with shared.served_by("odradek", killed=False) as broker:
        assert quotas(broker) == of_kafka
        assert is_throttled(broker, "greedy")
        assert is_throttled(broker, "first")
        assert not is_throttled(broker, "second")
        alter_quota(broker.port, ALICE, consumer_byte_rate=None, request_percentage=99.0)
        alter_quota(broker.port, FIRST, producer_byte_rate=None)
        alter_quota(broker.port, {"client-id": "second"}, producer_byte_rate=1000)
        alter_quota(broker.port, {"ip": None}, connection_creation_rate=1000)
        of_odradek = quotas(broker)
        assert not is_throttled(broker, "first")
    with shared.served_by("kafka", killed=False) as broker:
        assert quotas(broker) == of_odradek
        assert is_throttled(broker, "greedy")
        assert is_throttled(broker, "second")
        assert not is_throttled(broker, "first")
