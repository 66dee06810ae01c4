"""Metrics of clients (KIP-714): Kafka's tool makes subscriptions, and its Java clients push."""

import re
import subprocess
from collections.abc import Iterator

import pytest

from odradek.coordinator.metadata.configs import ConfigResourceType
from odradek.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsResponse
from tests.support.broker_process import BrokerProcess, against_apache_kafka, running_broker
from tests.support.config_requests import alter_configs_request
from tests.support.java_tools import JavaTools
from tests.support.lengths import only_long
from tests.support.metrics import http_port, scrape
from tests.support.waiting import wait_for
from tests.support.wire import WireClient

pytestmark = [pytest.mark.java, pytest.mark.slow]

RECORDS = 1_000


def test_the_tool_makes_describes_lists_and_deletes_subscriptions(
    broker: BrokerProcess, java: JavaTools
) -> None:
    tool = ("ClientMetricsCommand", "--bootstrap-server", broker.bootstrap)
    name = ("--name", "tills")
    altered = java.run(
        *(
            *tool,
            "--alter",
            *name,
            "--metrics",
            "org.apache.kafka.producer.,a",
            "--interval",
            "500",
        ),
        *("--match", "client_id=till.*,client_software_name=.*"),
    )
    assert "Altered client metrics config for tills." in altered
    described = java.run(*tool, "--describe", *name)
    for setting in (
        "interval.ms=500",
        "metrics=org.apache.kafka.producer.,a",
        "match=client_id=till.*,client_software_name=.*",
    ):
        assert setting in described
    assert "tills" in java.run(*tool, "--list").split()
    generated = java.run(*tool, "--alter", "--generate-name", "--metrics", "*")
    (drawn,) = re.findall(r"Altered client metrics config for (\S+)\.", generated)
    for each in ("tills", drawn):
        assert "Deleted" in java.run(*tool, "--delete", "--name", each)
    assert not {"tills", drawn} & set(java.run(*tool, "--list").split())


@pytest.fixture(scope="module")
def receiver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker that wants all metrics of Java clients, ten times a second."""
    if against_apache_kafka():
        pytest.skip("Kafka has no receiver")
    settings = {"odradek.http.listener": "127.0.0.1:0"}
    with running_broker(tmp_path_factory.mktemp("receiver"), settings) as broker:
        wanted = {
            "metrics": "*",
            "interval.ms": "100",
            "match": "client_software_name=apache-kafka-java",
        }
        request = alter_configs_request(ConfigResourceType.CLIENT_METRICS, "java", wanted)
        with WireClient(broker.port) as client:
            client.ask(request, IncrementalAlterConfigsResponse, 1)
        yield broker
        assert broker.crashes_in_log() == []


def test_a_java_producer_pushes_what_it_has_sent(receiver: BrokerProcess, java: JavaTools) -> None:
    sent = "org_apache_kafka_producer_record_send_total"
    port = http_port(receiver)
    command = java.command(
        *("ConsoleProducer", "--bootstrap-server", receiver.bootstrap, "--topic", "orders"),
        *("--command-property", "client.id=till"),
    )
    with subprocess.Popen(command, stdin=subprocess.PIPE, text=True) as producer:
        assert producer.stdin is not None
        try:
            producer.stdin.writelines(f"{number}\n" for number in range(RECORDS))
            producer.stdin.flush()
            wait_for(lambda: sum(scrape(port).values(sent, client_id="till")), RECORDS)
            producer.stdin.close()
            assert producer.wait(30) == 0
        finally:
            producer.kill()
    series = scrape(port)
    assert series.types[sent.removesuffix("_total")] == "counter"
    assert series.types["org_apache_kafka_producer_record_send_rate"] == "gauge"


@only_long("a producer pushes above")
def test_a_java_consumer_pushes_with_its_group(receiver: BrokerProcess, java: JavaTools) -> None:
    server = ("--bootstrap-server", receiver.bootstrap, "--topic", "read")
    java.run("ConsoleProducer", *server, stdin="a\nb\nc\n")
    java.run(
        *("consumer.ConsoleConsumer", *server, "--from-beginning", "--timeout-ms", "20000"),
        *("--max-messages", "3"),
        *("--command-property", "client.id=kitchen", "--group", "cooks"),
    )
    series = scrape(http_port(receiver))
    read = "org_apache_kafka_consumer_fetch_manager_records_consumed_total"
    # A slow start may push before the member has its id in the group.
    (labels,) = (
        each
        for each in series.labels(read)
        if "topic" not in each and each.get("group_member_id", "").startswith("kitchen-")
    )
    assert list(series.values(read, **labels, topic="read")) == [3]
    assert labels["group_id"] == "cooks"
    assert labels["client_software_name"] == "apache-kafka-java"
    assert not sum(series.values("odradek_telemetry_refused_total"))
    assert not sum(series.values("odradek_telemetry_left_out_total"))
