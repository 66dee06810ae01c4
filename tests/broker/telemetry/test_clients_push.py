"""Clients push to a broker: its /metrics and its topic have what they push."""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Message, Producer

from odradek.broker.telemetry.otlp import read_points
from odradek.broker.telemetry.payloads import MAX_EXPANSION
from odradek.coordinator.metadata.configs import ConfigResourceType
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.compression import CompressionType, compress
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from odradek.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsResponse
from odradek.protocol.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse
from odradek.protocol.primitives import ZERO_UUID, uuid_text
from tests.conformance.conversation import advertised_versions
from tests.support.broker_process import BrokerProcess, against_apache_kafka, running_broker
from tests.support.config_requests import alter_configs_request
from tests.support.metrics import get, http_port, scrape
from tests.support.otlp import counter, gauge, message, metrics_data
from tests.support.waiting import wait_until
from tests.support.wire import WireClient

pytestmark = pytest.mark.skipif(against_apache_kafka(), reason="Kafka has no receiver")

LIMIT_SECONDS = 100.0
TOPIC = "client-metrics"
SENT = "org.apache.kafka.producer.sent.total"
SENT_NAME = "org_apache_kafka_producer_sent_total"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """With subscriptions to all metrics, ten times a second."""
    settings = {"odradek.http.listener": "127.0.0.1:0", "odradek.telemetry.topic": TOPIC}
    with running_broker(tmp_path_factory.mktemp("telemetry"), settings) as broker:
        subscribe(broker, "all", {"metrics": "*", "interval.ms": "100"})
        yield broker


def subscribe(broker: BrokerProcess, name: str, settings: dict[str, str | None]) -> None:
    request = alter_configs_request(ConfigResourceType.CLIENT_METRICS, name, settings)
    with WireClient(broker.port) as client:
        answer = client.ask(request, IncrementalAlterConfigsResponse, 1)
    assert answer.responses[0].error_code == ErrorCode.NONE, answer


def ask(client: WireClient, id_: bytes = ZERO_UUID) -> GetTelemetrySubscriptionsResponse:
    request = GetTelemetrySubscriptionsRequest(client_instance_id=id_)
    return client.ask(request, GetTelemetrySubscriptionsResponse, 0)


def push(
    client: WireClient, subscription: GetTelemetrySubscriptionsResponse, content: bytes
) -> int:
    request = PushTelemetryRequest(
        client_instance_id=subscription.client_instance_id,
        subscription_id=subscription.subscription_id,
        terminating=True,
        compression_type=CompressionType.ZSTD,
        metrics=compress(CompressionType.ZSTD, content),
    )
    answer: PushTelemetryResponse = client.ask(request, PushTelemetryResponse, 0)
    return answer.error_code


def test_what_is_pushed_is_in_metrics_and_in_the_topic(broker: BrokerProcess) -> None:
    content = metrics_data(counter(SENT, 30, topic='"orders"\n'), gauge("a\nb", 1.0))
    with WireClient(broker.port, client_id="till") as client:
        subscription = ask(client)
        assert subscription.requested_metrics == ["*"]
        assert subscription.accepted_compression_types == [4, 3, 1, 2]
        assert (subscription.push_interval_ms, subscription.telemetry_max_bytes) == (100, 1 << 20)
        assert push(client, subscription, content) == ErrorCode.NONE
        assert push(client, subscription, content) == ErrorCode.INVALID_REQUEST
    id_ = uuid_text(subscription.client_instance_id)
    series = scrape(http_port(broker))
    assert series.value(SENT_NAME, topic='"orders"\n', client_instance_id=id_) == 30
    assert series.types[SENT_NAME.removesuffix("_total")] == "counter"
    assert series.value("odradek_telemetry_refused_total", error="INVALID_REQUEST") == 1
    (record,) = (record for record in pushed_records(broker) if record.key() == id_.encode())
    assert record.value() == content
    assert dict(record.headers() or [])["client_id"] == b"till"


def pushed_records(broker: BrokerProcess) -> Iterator[Message]:
    """The records of the topic, up to its end."""
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": "reader"}
    settings |= {"auto.offset.reset": "earliest", "enable.metrics.push": "false"}
    consumer = Consumer({**settings, "enable.auto.commit": False, "enable.partition.eof": True})
    consumer.subscribe([TOPIC])
    try:
        while not (message := consumer.poll(LIMIT_SECONDS)) or message.error() is None:
            assert message is not None
            yield message
    finally:
        consumer.close()


@pytest.mark.slow
def test_the_requests_are_announced_only_if_something_becomes_of_them(tmp_path: Path) -> None:
    of_telemetry = {ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY}
    for number, (name, value) in enumerate(
        [
            ("num.partitions", "1"),
            ("odradek.telemetry.topic", TOPIC),
            ("odradek.http.listener", "127.0.0.1:0"),
        ]
    ):
        with running_broker(tmp_path / str(number), {name: value}) as broker:
            announced = of_telemetry & advertised_versions(broker.port).keys()
        assert announced == (of_telemetry if number else set())


def test_librdkafka_pushes(broker: BrokerProcess) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "client.id": "rdkafka"})
    producer.produce("orders", b"value")
    assert producer.flush(LIMIT_SECONDS) == 0
    name = "org_apache_kafka_producer_connection_creation_total"
    port = http_port(broker)

    def has_pushed() -> bool:
        return bool(list(scrape(port).values(name, client_id="rdkafka")))

    wait_until(has_pushed)
    labels = [each for each in scrape(port).labels(name) if each["client_id"] == "rdkafka"]
    assert labels[0]["client_software_name"] == "confluent-kafka-python"
    instances = "kafka_server_client_metrics_instance_count"
    assert scrape(port).value(instances) >= 1
    del producer
    wait_until(lambda: scrape(port).value(instances) == 0)
    assert has_pushed(), "its last values are still shown"
    assert all(
        list(read_points(record.value() or b""))
        for record in pushed_records(broker)
        if dict(record.headers() or [])["client_id"] == b"rdkafka"
    )


def test_a_subscription_is_for_the_clients_that_it_matches(broker: BrokerProcess) -> None:
    subscribe(broker, "all", {"match": "client_id=till,client_source_address=127\\..*"})
    try:
        with WireClient(broker.port, client_id="till") as client:
            assert ask(client).requested_metrics == ["*"]
        with WireClient(broker.port, client_id="bank") as client:
            assert ask(client).requested_metrics == []
    finally:
        subscribe(broker, "all", {"match": None})


def test_metrics_can_be_read_whatever_clients_push(broker: BrokerProcess) -> None:
    forged = [
        gauge("org.apache.kafka.a", float("nan"), le="1", __name__="up", job="x"),
        gauge("org.apache.kafka.a.total", float("-inf")),
        counter("org.apache.kafka.a", 1e300, quantile='\\"\n{}'),
        counter("org.apache.kafka.a{b} 1\n# TYPE c", -1),
        gauge("kafka_server_kafkaserver_brokerstate", 99.0),
        gauge("", 1.0),
    ]
    with WireClient(broker.port, client_id='\n"}\x00') as client:
        assert push(client, ask(client), metrics_data(*forged)) == ErrorCode.NONE
    _, text = get(http_port(broker), "/metrics")
    names = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")]
    assert len(names) == len(set(names))
    series = scrape(http_port(broker))
    assert list(series.values("kafka_server_kafkaserver_brokerstate")) == [3]
    assert series.value("org_apache_kafka_a_total", quantile='\\"\n{}') == 1e300


@pytest.mark.slow
def test_bombs_of_many_clients_take_the_memory_of_one(tmp_path: Path) -> None:
    largest = MAX_EXPANSION << 20
    bomb = message(7, bytes(largest - 5))  # a field that nobody reads
    stored = compress(CompressionType.ZSTD, bomb)
    settings = {"odradek.telemetry.topic": TOPIC, "odradek.http.listener": "127.0.0.1:0"}
    with running_broker(tmp_path, settings) as broker, ExitStack() as stack:
        before = peak_bytes(broker)
        clients = [stack.enter_context(WireClient(broker.port)) for _ in range(50)]
        for client in clients:
            subscription = ask(client)
            request = PushTelemetryRequest(
                client_instance_id=subscription.client_instance_id,
                subscription_id=subscription.subscription_id,
                terminating=False,
                compression_type=CompressionType.ZSTD,
                metrics=stored,
            )
            client.send(client.frame_of(request, 0))
        codes = [client.read_answer(PushTelemetryResponse, 0).error_code for client in clients]
        assert set(codes) == {ErrorCode.NONE}
        assert peak_bytes(broker) - before < 16 * largest  # of 50


def peak_bytes(broker: BrokerProcess) -> int:
    """The most memory that the broker's process has had."""
    status = Path(f"/proc/{broker.pid}/status").read_text()
    (kibibytes,) = re.findall(r"VmHWM:\s+(\d+) kB", status)
    return int(kibibytes) << 10
