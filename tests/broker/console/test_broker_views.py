"""Connections, maintenance and the log in the console."""

import logging
import socket
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from confluent_kafka import Producer
from kafka import KafkaAdminClient, KafkaConsumer
from kafka.admin import ConfigResource, ConfigResourceType

from odradek.broker.common.durations import Durations
from odradek.broker.common.log_lines import CLIENT_LOGGERS
from odradek.broker.common.traffic import RequestTraffic
from odradek.broker.console.recent_lines import MAX_CHARACTERS, MAX_LINES, RecentLines
from odradek.broker.console.views.overview import _apis, _loop_delays
from odradek.broker.metrics.observed import Observed
from odradek.broker.testing.broker import Broker
from odradek.protocol.api_keys import ApiKey
from tests.support.console_client import ConsoleClient, console_broker
from tests.support.kafka_python import may_leave_a_socket
from tests.support.waiting import wait_until

pytestmark = may_leave_a_socket


@pytest.mark.slow
def test_a_connection_says_what_its_client_is(broker: Broker, console: ConsoleClient) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "client.id": "shop"})
    producer.produce("orders", b"x" * 5000)
    assert producer.flush(60) == 0
    page = console.get("/connections", search="SHOP")
    producing = [each for each in page["connections"] if "Produce" in each["apiVersions"]]
    (shown,) = producing
    assert shown["clientId"] == "shop"
    assert (shown["listener"], shown["principal"]) == ("PLAINTEXT", "User:ANONYMOUS")
    assert shown["software"] == "confluent-kafka-python"
    assert shown["softwareVersion"]
    assert shown["apiVersions"]["Produce"] >= 8
    assert shown["bytesIn"] > 5000
    assert shown["bytesOut"] > 0
    assert shown["throttledMs"] == 0
    assert shown["idleMs"] >= 0
    assert console.get("/connections", search="nobody's")["total"] == 0
    assert page["total"] == len(page["connections"])


@pytest.mark.slow
def test_connections_come_in_pages(broker: Broker, console: ConsoleClient) -> None:
    host, port = broker.bootstrap_servers.split(":")
    sockets = [socket.create_connection((host, int(port))) for _ in range(3)]
    addresses = ["{}:{}".format(*each.getsockname()) for each in sockets]
    wait_until(lambda: console.get("/connections")["total"] >= 3)
    page = console.get("/connections", search="127.0.0.1", limit=1000)
    shown = [each["address"] for each in page["connections"]]
    assert set(addresses) <= set(shown)
    second = console.get("/connections", search="127.0.0.1", limit=1, **{"from": 1})
    assert second["total"] == page["total"]
    assert [each["address"] for each in second["connections"]] == shown[1:2]
    for each in sockets:
        each.close()


@pytest.mark.slow
def test_a_throttled_connection_says_for_how_long(broker: Broker, console: ConsoleClient) -> None:
    entity = [{"type": "client-id", "name": "greedy"}]
    console.put("/quotas", {"entity": entity, "set": {"producer_byte_rate": 1000}})
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "client.id": "greedy"})
    producer.produce("orders", b"x" * 100_000)
    producer.flush(60)
    shown = console.get("/connections", search="greedy")["connections"]
    assert any(0 < each["throttledMs"] <= 100_000 for each in shown)


@pytest.mark.slow
def test_the_dirtiest_logs_are_shown(broker: Broker, console: ConsoleClient) -> None:
    compacted = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "1", "segment.ms": "1"}
    broker.create_topic("table", configs=compacted)
    for number in range(3):
        broker.produce("table", b"%d" % number, key=b"k")
        broker.advance(1000)
    wait_until(lambda: console.get("/maintenance")["cleaner"]["logs"])
    found = console.get("/maintenance")
    (log,) = found["cleaner"]["logs"]
    assert (log["topic"], log["partition"], log["dirtyRatio"]) == ("table", 0, 1.0)
    assert log["dirtyBytes"] > 0
    assert (log["cleanedToOffset"], log["state"]) == (0, "clean enough")
    assert "min.cleanable.dirty.ratio (1" in log["why"]
    assert found["cleaner"]["isEnabled"]
    assert found["retentionCheck"]["everyMs"] == 100
    broker.run_compaction_now()
    assert "table-0: cleaned offsets 0 to 3" in console.get("/maintenance")["cleaner"]["lastRound"]


@pytest.mark.slow
def test_retention_says_when_it_looked_last(console: ConsoleClient) -> None:
    def last_ms() -> int:
        return console.get("/maintenance")["retentionCheck"]["lastMs"] or 0

    wait_until(lambda: last_ms() > 0)
    before = last_ms()
    wait_until(lambda: last_ms() > before)


@pytest.mark.slow
def test_a_move_shows_its_progress(tmp_path: Path) -> None:
    one, two = str(tmp_path / "one"), str(tmp_path / "two")
    with console_broker(tmp_path, {"log.dirs": f"{one},{two}"}) as (process, console):
        producer = Producer({"bootstrap.servers": process.bootstrap})
        for _ in range(4):
            producer.produce("big", b"x" * 600_000)
        assert producer.flush(60) == 0
        home, target = (one, two) if Path(one, "big-0").exists() else (two, one)
        rate = {"replica.alter.log.dirs.io.max.bytes.per.second": "100000"}
        changed = ConfigResource(ConfigResourceType.BROKER, "0", rate)
        client = KafkaAdminClient(bootstrap_servers=process.bootstrap)
        try:
            client.alter_configs([changed], raise_on_unknown=False)
            client.alter_replica_log_dirs({("big", 0, 0): target})
        finally:
            client.close()
        (move,) = console.get("/maintenance")["moves"]
    assert (move["topic"], move["partition"]) == ("big", 0)
    assert (move["from"], move["to"]) == (home, target)
    assert 0 <= move["copiedBytes"] < move["totalBytes"]
    assert move["totalBytes"] > 2_400_000


@pytest.mark.slow
def test_the_log_has_what_went_wrong(broker: Broker, console: ConsoleClient) -> None:
    host, port = broker.bootstrap_servers.split(":")
    with socket.create_connection((host, int(port))) as client:
        client.sendall(b"GET / HTTP/1.1\r\n\r\n")
        address = "{}:{}".format(*client.getsockname())
        assert client.recv(1) == b""
    wait_until(lambda: any(address in each["text"] for each in console.get("/log")["entries"]))
    entry = next(each for each in console.get("/log")["entries"] if address in each["text"])
    assert (entry["level"], entry["logger"]) == ("WARNING", "odradek.connection")
    assert entry["timestampMs"] > 1_600_000_000_000


def test_the_last_lines_are_kept_and_those_of_clients_apart() -> None:
    lines = RecentLines()
    lines.install()
    try:
        own, of_clients = logging.getLogger("odradek.test"), logging.getLogger(min(CLIENT_LOGGERS))
        for number in range(MAX_LINES + 1):
            own.warning("line %d", number)
        own.info("not kept")
        for number in range(MAX_LINES):
            of_clients.warning("client %d", number)
    finally:
        lines.remove()
    own.warning("after the end")
    texts = [each.text for each in lines.entries()]
    assert len(texts) == 200
    assert [each for each in texts if each.startswith("line")].count("line 0") == 0
    assert {f"line {number}" for number in range(1, MAX_LINES + 1)} < set(texts)
    assert "not kept" not in texts
    assert "after the end" not in texts


def test_the_newest_line_is_the_first_also_within_a_millisecond() -> None:
    lines = RecentLines()
    names = ["odradek.a", min(CLIENT_LOGGERS), "odradek.b", min(CLIENT_LOGGERS)]
    for name in names:
        lines.handle(logging.makeLogRecord({"name": name, "msg": name, "created": 1.5}))
    assert [each.logger for each in lines.entries()] == names[::-1]


def test_a_long_line_is_cut_and_an_error_has_its_traceback() -> None:
    lines = RecentLines()
    lines.install()
    try:
        logger = logging.getLogger("odradek.test")
        logger.error("x" * 2 * MAX_CHARACTERS)
        try:
            raise ValueError("the reason")
        except ValueError:
            logger.exception("it failed")
    finally:
        lines.remove()
    failed, long = sorted((each.text for each in lines.entries()), key=len)
    assert len(long) <= MAX_CHARACTERS + 3
    assert failed.startswith("it failed\nTraceback")
    assert "ValueError: the reason" in failed


@pytest.mark.slow
def test_a_consumer_is_shown_with_its_software(broker: Broker, console: ConsoleClient) -> None:
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap_servers, client_id="reader")
    consumer.topics()
    found = console.get("/connections", search="reader")["connections"]
    assert {each["software"] for each in found} == {"kafka-python"}
    consumer.close()


def test_what_was_never_measured_has_no_quantile() -> None:
    lost, answered = RequestTraffic(), RequestTraffic()
    lost.unanswered = answered.unanswered = 1
    answered.answered.add(0.0002)
    requests = {ApiKey.SYNC_GROUP: {5: lost}, ApiKey.HEARTBEAT: {4: answered}}
    observed = cast(Observed, SimpleNamespace(traffic=SimpleNamespace(requests=requests)))
    of_lost, of_answered = _apis(observed)
    assert (of_lost.requests, of_lost.errors, of_lost.p50_ms, of_lost.p99_ms) == (1, 1, None, None)
    assert (of_answered.requests, of_answered.p50_ms, of_answered.p99_ms) == (2, 0.25, 0.25)
    delays = _loop_delays(Durations())
    assert (delays.measured, delays.p50_ms, delays.max_ms) == (0, None, None)
