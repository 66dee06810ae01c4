"""/metrics of a broker process, compared with what its clients have sent."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from confluent_kafka import Consumer, Producer, TopicPartition

from odradek.broker.metrics.catalogue import CATALOGUE
from odradek.broker.metrics.reference import reference
from odradek.broker.metrics.rendering import SAMPLES_PER_PART
from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from odradek.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from odradek.protocol.messages.fetch import FetchResponse
from odradek.protocol.messages.produce import (
    ProducePartitionData,
    ProduceRequest,
    ProduceResponse,
    ProduceTopicData,
)
from tests.conformance.share_reader import ACCEPT, REJECT, joined, prepare_group
from tests.support.broker_process import BrokerProcess, against_apache_kafka, running_broker
from tests.support.log_box import batch_of
from tests.support.metrics import get, http_port, scrape
from tests.support.promql import (
    ADDED_BY_PROMETHEUS,
    VARIABLES,
    grouping_labels,
    selectors,
    template_labels,
)
from tests.support.promql_engine import evaluate, why_no_engine
from tests.support.quotas import alter_quota
from tests.support.stored_batches import FETCH_VERSION, fetch, fetch_request
from tests.support.topics import create_topic, delete_topic
from tests.support.waiting import wait_until
from tests.support.wire import WireClient

pytestmark = pytest.mark.skipif(against_apache_kafka(), reason="odradek's own listener")

ROOT = Path(__file__).resolve().parents[3]
LIMIT_SECONDS = 100.0
RECORDS = 30
CONSUMED = 20
METERED: dict[str, str | None] = {"user": None, "client-id": "metered"}
IN = "kafka_server_brokertopicmetrics_messagesin_total"


@pytest.fixture(scope="module")
def observed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker with the listener, after a producer, a group and a transaction have used it."""
    settings = {"odradek.http.listener": "127.0.0.1:0", "log.flush.interval.messages": "10"}
    with running_broker(tmp_path_factory.mktemp("observed"), settings) as broker:
        create_topic(broker.bootstrap, "orders", 2)
        produce(broker, "orders")
        consume(broker, "orders")
        share(broker, "orders")
        run_transaction(broker, "orders")
        use_quotas(broker, "orders")
        software = ApiVersionsRequest(client_software_name="barista", client_software_version="1.2")
        with WireClient(broker.port) as client:
            client.ask(software, ApiVersionsResponse, 3)
            yield broker


def use_quotas(broker: BrokerProcess, topic: str) -> None:
    """A client with every quota, which is far below them."""
    alter_quota(
        broker.port,
        METERED,
        producer_byte_rate=1e9,
        consumer_byte_rate=1e9,
        request_percentage=100,
        controller_mutation_rate=10,
    )
    topics = [ProduceTopicData(name=topic, partition_data=[])]
    request = ProduceRequest(acks=1, timeout_ms=1000, topic_data=topics)
    with WireClient(broker.port, client_id="metered") as client:
        client.ask(request, ProduceResponse, 9)
        client.ask(fetch_request(topic, 0, 0, 1 << 20), FetchResponse, FETCH_VERSION)
        more = CreatePartitionsTopic(name=topic, count=3, assignments=None)
        client.ask(
            CreatePartitionsRequest(topics=[more], timeout_ms=1000, validate_only=True),
            CreatePartitionsResponse,
            3,
        )


def produce(broker: BrokerProcess, topic: str) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "client.id": "till"})
    for number in range(RECORDS):
        producer.produce(topic, b"value %d" % number, partition=0)
    assert producer.flush(LIMIT_SECONDS) == 0


def consume(broker: BrokerProcess, topic: str) -> None:
    """Read all records of partition 0 and commit an offset before the last of them."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "kitchen",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([topic])
    read = 0
    while read < RECORDS:
        read += len(consumer.consume(RECORDS, LIMIT_SECONDS))
    consumer.commit(offsets=[TopicPartition(topic, 0, CONSUMED)], asynchronous=False)
    consumer.close()


def share(broker: BrokerProcess, topic: str) -> None:
    """A member of a share group reads partition 0, and rejects the last of its records.

    That one is in the group's dead-letter queue.
    """
    queue = "dlq.orders"
    create_topic(broker.bootstrap, queue, 1, {"errors.deadletterqueue.group.enable": "true"})
    with WireClient(broker.port) as client:
        name = {"errors.deadletterqueue.topic.name": queue}
        topic_id = prepare_group(client, "cooks", topic, **name)
        reader = joined(client, "cooks", "cook", topic, topic_id, partitions=2)
        reader.fetch(0)
        reader.acknowledge((0, RECORDS - 4, [ACCEPT]), (RECORDS - 1, RECORDS - 1, [REJECT]))
        wait_until(lambda: fetch(client, queue, 0, 0))


def run_transaction(broker: BrokerProcess, topic: str) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "cashier"})
    producer.init_transactions(LIMIT_SECONDS)
    producer.begin_transaction()
    producer.produce(topic, b"in a transaction", partition=1)
    producer.commit_transaction(LIMIT_SECONDS)


def test_records_and_bytes_agree_with_what_the_clients_sent(observed: BrokerProcess) -> None:
    series = scrape(http_port(observed))
    topic = {"topic": "orders"}
    assert series.value(IN, **topic) == RECORDS + 2, "the transaction has a record and a marker"
    assert {"topic": "orders"} in series.labels(IN)
    assert {} in series.labels(IN), "the total has no label"
    stored = sum(series.values("kafka_log_log_size", **topic))
    received = series.value("kafka_server_brokertopicmetrics_bytesin_total", **topic)
    assert received == stored
    sent = series.value("kafka_server_brokertopicmetrics_bytesout_total", **topic)
    assert sent >= series.value("kafka_log_log_size", **topic, partition="0")


def test_requests_are_counted_by_api_and_version_and_their_time_is_measured(
    observed: BrokerProcess,
) -> None:
    before = scrape(http_port(observed))
    produce(observed, "counted")
    after = scrape(http_port(observed))

    def grown(name: str, **labels: str) -> float:
        return sum(after.values(name, **labels)) - sum(before.values(name, **labels))

    count = grown("kafka_network_requestmetrics_requests_total", request="Produce")
    assert count >= 1
    assert grown("kafka_network_requestmetrics_totaltimems_count", request="Produce") == count
    times = "kafka_network_requestmetrics_totaltimems_bucket"
    assert grown(times, request="Produce", le="+Inf") == count
    assert grown("kafka_network_requestmetrics_totaltimems_sum", request="Produce") > 0
    assert grown(IN, topic="counted") == RECORDS


def test_a_refused_batch_is_counted_as_failed(observed: BrokerProcess) -> None:
    failed = "kafka_server_brokertopicmetrics_failedproducerequests_total"
    before = scrape(http_port(observed))
    partition = ProducePartitionData(index=7, records=batch_of(b"x"))
    request = ProduceRequest(
        acks=1,
        timeout_ms=1000,
        topic_data=[ProduceTopicData(name="orders", partition_data=[partition])],
    )
    with WireClient(observed.port) as client:
        client.ask(request, ProduceResponse, 9)
    after = scrape(http_port(observed))
    assert after.value(failed, topic="orders") == before.value(failed, topic="orders") + 1
    assert after.value(IN, topic="orders") == before.value(IN, topic="orders")


def test_the_total_does_not_fall_when_a_topic_is_deleted(observed: BrokerProcess) -> None:
    produce(observed, "short-lived")
    (before,) = [s.value for s in scrape(http_port(observed)).samples if s[:2] == (IN, {})]
    delete_topic(observed.bootstrap, "short-lived")
    series = scrape(http_port(observed))
    (after,) = [s.value for s in series.samples if s[:2] == (IN, {})]
    assert after >= before
    assert list(series.values(IN, topic="short-lived")) == []


def test_offsets_and_lag_are_those_of_the_group(observed: BrokerProcess) -> None:
    series = scrape(http_port(observed))
    where = {"topic": "orders", "partition": "0"}
    assert series.value("kafka_log_log_logendoffset", **where) == RECORDS
    assert series.value("kafka_log_log_logstartoffset", **where) == 0
    group = {"consumergroup": "kitchen", **where}
    assert series.value("kafka_consumergroup_current_offset", **group) == CONSUMED
    assert series.value("kafka_consumergroup_lag", **group) == RECORDS - CONSUMED
    assert series.value("kafka_coordinator_group_groupmetadatamanager_numgroupsempty") == 1


def test_the_lag_of_a_share_group_is_what_it_has_not_done_with(observed: BrokerProcess) -> None:
    series = scrape(http_port(observed))
    where = {"sharegroup": "cooks", "topic": "orders", "partition": "0"}
    assert series.value("odradek_share_group_lag", **where) == 2
    counts = "kafka_server_group_coordinator_metrics_share_group_count"
    assert series.value(counts, state="stable") == 1


def test_what_is_written_to_a_dead_letter_queue_is_counted(observed: BrokerProcess) -> None:
    series = scrape(http_port(observed))
    name = "kafka_server_sharegroupmetrics_deadletterqueue"
    assert series.value(f"{name}recordcount_total", group="cooks") == 1
    assert series.value(f"{name}totalproducerequests_total", group="cooks") == 1
    assert series.value(f"{name}failedproducerequests_total", group="cooks") == 0


def test_the_transaction_and_the_syncs_are_counted(observed: BrokerProcess) -> None:
    series = scrape(http_port(observed))
    assert series.value("odradek_transactional_ids", state="CompleteCommit") == 1
    assert series.value("odradek_oldest_transaction_seconds") == 0
    assert series.value("kafka_log_logflushstats_logflushrateandtimems_count") > 0


def test_clients_with_a_quota_are_metered(observed: BrokerProcess) -> None:
    series = scrape(http_port(observed))
    of_client = {"user": "ANONYMOUS", "clientId": "metered"}
    for resource in ("Produce", "Fetch"):
        assert series.value("kafka_server_quota_byte_rate", resource=resource, **of_client) > 0
    assert 0 < series.value("kafka_server_quota_request_time", **of_client) < 100
    assert 100 < series.value("kafka_server_quota_tokens", **of_client) <= 110


def test_an_open_connection_is_counted_with_its_software(observed: BrokerProcess) -> None:
    series = scrape(http_port(observed))
    name = "kafka_server_socket_server_metrics_connections_software"
    labels = {"clientSoftwareName": "barista", "clientSoftwareVersion": "1.2"}
    assert series.value(name, **labels, listener="PLAINTEXT") == 1
    opened = series.value("kafka_server_socket_server_metrics_connection_creation_total")
    closed = series.value("kafka_server_socket_server_metrics_connection_close_total")
    name = "kafka_server_socket_server_metrics_connection_count"
    assert series.value(name, listener="PLAINTEXT") == opened - closed > 0


def test_every_metric_of_the_catalogue_is_there_with_its_labels(observed: BrokerProcess) -> None:
    series = scrape(http_port(observed))
    for metric in (metric for metrics in CATALOGUE.values() for metric in metrics):
        name = metric.name + ("_count" if metric.kind == "histogram" else "")
        assert any(set(metric.labels) == set(labels) for labels in series.labels(name)), name
    assert series.value("process_open_fds") > 0


def test_a_metric_of_several_slices_has_one_header_and_all_series(observed: BrokerProcess) -> None:
    create_topic(observed.bootstrap, "wide", SAMPLES_PER_PART + 1)
    _, text = get(http_port(observed), "/metrics")
    assert text.count("# TYPE kafka_log_log_size gauge\n") == 1
    series = re.findall(
        r'^kafka_log_log_size\{partition="(\d+)",topic="wide"\} ', text, re.MULTILINE
    )
    assert sorted(map(int, series)) == list(range(SAMPLES_PER_PART + 1))


def test_the_broker_is_healthy_and_ready(observed: BrokerProcess) -> None:
    assert get(http_port(observed), "/healthz") == (200, "ok\n")
    assert get(http_port(observed), "/readyz") == (200, "ready\n")


def test_the_reference_is_made_from_the_code() -> None:
    assert (ROOT / "docs" / "metrics.md").read_text() == reference(), "see metrics/reference.py"


@pytest.mark.slow
def test_without_the_setting_no_port_is_open(
    start_broker: Callable[..., BrokerProcess],
) -> None:
    broker = start_broker()
    listening = {
        line.split()[9]
        for table in ("tcp", "tcp6")
        for line in Path(f"/proc/{broker.pid}/net/{table}").read_text().splitlines()[1:]
        if line.split()[3] == "0A"
    }
    sockets = {
        found[1]
        for link in Path(f"/proc/{broker.pid}/fd").iterdir()
        if (found := re.fullmatch(r"socket:\[(\d+)\]", str(link.readlink())))
    }
    assert len(listening & sockets) == 1
    assert "HTTP" not in broker.log_text()


def queries() -> Iterator[tuple[str, str]]:
    """Each expression of the dashboard and of the alerts, with the texts that show its labels."""
    dashboard = json.loads((ROOT / "docker" / "grafana-dashboard.json").read_text())
    for panel in dashboard["panels"]:
        for target in panel.get("targets", ()):
            yield target["expr"], target["legendFormat"]
    for group in yaml.safe_load((ROOT / "docker" / "alert-rules.yml").read_text())["groups"]:
        for rule in group["rules"]:
            yield rule["expr"], rule["annotations"]["summary"]


def test_dashboard_and_alerts_ask_for_metrics_and_labels_that_exist(
    observed: BrokerProcess,
) -> None:
    series = scrape(http_port(observed))
    asked = list(queries())
    assert len(asked) > 40
    for expression, text in asked:
        labels = set(ADDED_BY_PROMETHEUS)
        read = list(selectors(expression))
        assert read, expression
        for metric, matchers in read:
            found = [
                known
                for known in series.labels(metric)
                if all(matcher.accepts(known.get(matcher.label, "")) for matcher in matchers)
            ]
            assert found, f"nothing matches {metric} in {expression}"
            labels.update(*found)
        assert grouping_labels(expression) <= labels, expression
        assert template_labels(text) <= labels, expression


@pytest.mark.slow
def test_prometheus_evaluates_every_query_of_the_dashboard_and_the_alerts(
    observed: BrokerProcess,
) -> None:
    if why_no_engine():
        pytest.skip(why_no_engine() or "")
    before = scrape(http_port(observed))
    produce(observed, "orders")
    after = scrape(http_port(observed))
    asked = [with_values(expression) for expression, _ in queries()]
    results = dict(zip(asked, evaluate(asked, [before, after]), strict=True))
    assert {text: result.error for text, result in results.items() if result.error} == {}
    assert [text for text, result in results.items() if not result.series] == []


def with_values(expression: str) -> str:
    """The expression with the dashboard's variables as Grafana sets them."""
    for variable, value in VARIABLES.items():
        expression = expression.replace(variable, value)
    return expression
