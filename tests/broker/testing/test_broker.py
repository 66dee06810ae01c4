"""The broker that users' tests get, with the clients that they use."""

import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
)

from odradek.broker.testing import ApiKey, Broker, BrokerError, ErrorCode
from odradek.coordinator.metadata.configs import ConfigResourceType
from odradek.coordinator.metadata.feature_updates import UpgradeType
from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from odradek.protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from odradek.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from odradek.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
    IncrementalAlterConfigsResponse,
)
from odradek.protocol.messages.update_features import (
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
    UpdateFeaturesUpdate,
)
from tests.support.quotas import alter_quota
from tests.support.wire import WireClient

LIMIT_S = 100.0
HOUR_MS = 3_600_000
VERSIONS = ApiVersionsRequest(client_software_name="test", client_software_version="1")
LOGGERS = DescribeConfigsRequest(
    resources=[
        DescribeConfigsResource(
            resource_type=ConfigResourceType.BROKER_LOGGER,
            resource_name="0",
            configuration_keys=None,
        )
    ]
)
SEGMENT = {"segment.bytes": str(1 << 20)}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with Broker(tmp_path_factory.mktemp("broker")) as broker:
        yield broker


@pytest.fixture
def broker(shared: Broker) -> Broker:
    shared.reset()
    return shared


def producer_of(broker: Broker, **settings: str) -> Producer:
    return Producer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "log_level": 0,
            "retry.backoff.ms": 10,
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
    )


def produce(broker: Broker, topic: str, *values: bytes, **settings: str) -> list[object]:
    """Send the values; the errors of those that were not acknowledged."""
    errors: list[object] = []
    producer = producer_of(broker, **settings)
    for value in values:
        producer.produce(topic, value, on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(LIMIT_S) == 0
    return [error for error in errors if error is not None]


def consumer_of(broker: Broker, group: str, **settings: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "log_level": 0,
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
    )


def consume(consumer: Consumer, count: int) -> list[bytes | None]:
    messages = consumer.consume(count, LIMIT_S)
    assert len(messages) == count
    return [message.value() for message in messages]


def values_of(broker: Broker, topic: str, *, committed: bool = True) -> list[bytes | None]:
    return [record.value for record in broker.records(topic, committed=committed)]


# -- topics, records, offsets ---------------------------------------------------------------------


def test_topics_records_and_committed_offsets_are_seen(broker: Broker) -> None:
    broker.create_topic("orders", 2, {"cleanup.policy": "compact"})
    producer = producer_of(broker)
    headers = [("source", b"web"), ("empty", None)]
    producer.produce("orders", b"1", b"key", 1, timestamp=1000, headers=headers)
    producer.flush(LIMIT_S)
    consumer = consumer_of(broker, "readers", enable_auto_commit="false")
    consumer.subscribe(["orders"])
    assert consume(consumer, 1) == [b"1"]
    consumer.commit(asynchronous=False)
    consumer.close()
    assert broker.topics() == {"orders": 2}
    (record,) = broker.records("orders")
    assert (record.topic, record.partition, record.offset) == ("orders", 1, 0)
    assert (record.key, record.value, record.timestamp_ms) == (b"key", b"1", 1000)
    assert record.headers == headers
    assert broker.records("orders", 0) == []
    assert broker.committed("readers", "orders") == {1: 1}
    assert broker.committed("others", "orders") == {}


def test_records_of_aborted_and_open_transactions_are_not_committed(broker: Broker) -> None:
    broker.create_topic("orders")
    for name in ("committed", "aborted", "open"):
        producer = producer_of(broker, transactional_id=name)
        producer.init_transactions(LIMIT_S)
        producer.begin_transaction()
        producer.produce("orders", name)
        producer.flush(LIMIT_S)
        if name == "committed":
            producer.commit_transaction(LIMIT_S)
        elif name == "aborted":
            producer.abort_transaction(LIMIT_S)
    assert values_of(broker, "orders") == [b"committed"]
    assert values_of(broker, "orders", committed=False) == [b"committed", b"aborted", b"open"]


def test_a_record_is_appended_without_a_client(broker: Broker) -> None:
    assert broker.produce("orders", b"one coffee", key=b"table-7", headers=[("a", None)]) == 0
    assert broker.produce("orders", None) == 1
    found = [(each.key, each.value, each.headers) for each in broker.records("orders")]
    assert found == [(b"table-7", b"one coffee", [("a", None)]), (None, None, [])]
    with pytest.raises(BrokerError):
        broker.produce("orders", b"there is no such partition", partition=9)


def test_a_topic_that_is_being_created_has_no_records_yet(broker: Broker) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    created = admin.create_topics([NewTopic("orders", 200)])["orders"]
    while not created.done():
        if "orders" in broker.topics():
            assert broker.records("orders") == []
    with pytest.raises(BrokerError, match="there is no partition orders-200"):
        broker.records("orders", 200)


def test_a_test_waits_for_records_of_a_topic_that_does_not_exist_yet(broker: Broker) -> None:
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(broker.wait_for_records, "orders", 2)
        produce(broker, "orders", b"one")
        assert not waiting.done()
        produce(broker, "orders", b"two")
        assert [record.value for record in waiting.result(LIMIT_S)] == [b"one", b"two"]
    with pytest.raises(BrokerError, match="orders has 2 records, not 3"):
        broker.wait_for_records("orders", 3, within=20)


def test_a_refused_call_is_an_error_and_the_broker_goes_on(broker: Broker) -> None:
    broker.create_topic("orders")
    with pytest.raises(BrokerError, match="TOPIC_ALREADY_EXISTS"):
        broker.create_topic("orders")
    with pytest.raises(BrokerError, match="there is no topic missing"):
        broker.records("missing")
    with pytest.raises(BrokerError, match=r"there is no group|does not exist"):
        broker.expire_group("missing")
    assert broker.topics() == {"orders": 1}


def test_reset_empties_the_broker_and_keeps_connections(broker: Broker) -> None:
    producer = producer_of(broker, enable_idempotence="true")
    producer.produce("orders", b"before")
    producer.flush(LIMIT_S)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    change = ConfigEntry("log.retention.ms", "5", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.BROKER, "0", incremental_configs=[change])
    admin.incremental_alter_configs([resource])[resource].result(LIMIT_S)
    consumer = consumer_of(broker, "readers")
    consumer.subscribe(["orders"])
    assert consume(consumer, 1) == [b"before"]
    consumer.close()
    broker.fail_next(ApiKey.PRODUCE, ErrorCode.INVALID_RECORD)
    broker.set_clock(0)
    broker.reset()
    assert broker.topics() == {}
    assert broker.committed("readers", "orders") == {}
    settings = admin.describe_configs([resource])[resource].result(LIMIT_S)
    assert settings["log.retention.ms"].value != "5"
    producer.produce("orders", b"after")
    assert producer.flush(LIMIT_S) == 0
    (record,) = broker.records("orders")
    assert (record.offset, record.value) == (0, b"after")
    assert abs(record.timestamp_ms - time.time() * 1000) < HOUR_MS


def test_reset_removes_quotas(broker: Broker) -> None:
    port = int(broker.bootstrap_servers.rpartition(":")[2])
    request = DescribeClientQuotasRequest(components=[], strict=False)
    for entity in ({"user": None, "client-id": "one"}, {"ip": None}):
        key = "connection_creation_rate" if "ip" in entity else "producer_byte_rate"
        alter_quota(port, entity, **{key: 1e6})
    with WireClient(port) as client:
        assert len(client.ask(request, DescribeClientQuotasResponse, 1).entries) == 2
        broker.reset()
        assert client.ask(request, DescribeClientQuotasResponse, 1).entries == []


def test_reset_gives_features_and_loggers_their_levels_again(broker: Broker) -> None:
    lowered = ["share.version", "group.version", "eligible.leader.replicas.version"]
    alteration = IncrementalAlterConfigsResource(
        resource_type=ConfigResourceType.BROKER_LOGGER,
        resource_name="0",
        configs=[
            IncrementalAlterConfigsConfig(name=name, config_operation=0, value="DEBUG")
            for name in ("root", "odradek.config")
        ],
    )
    with WireClient(int(broker.bootstrap_servers.rpartition(":")[2])) as client:

        def levels() -> tuple[dict[str, int], set[str | None]]:
            described = client.ask(LOGGERS, DescribeConfigsResponse, 4).results[0].configs
            features = client.ask(VERSIONS, ApiVersionsResponse, 3).finalized_features
            return {each.name: each.max_version_level for each in features}, {
                each.value for each in described
            }

        before = levels()
        updates = [
            UpdateFeaturesUpdate(
                feature=name, max_version_level=0, upgrade_type=UpgradeType.UNSAFE_DOWNGRADE
            )
            for name in lowered
        ]
        request = UpdateFeaturesRequest(feature_updates=updates)
        assert client.ask(request, UpdateFeaturesResponse, 2).error_code == ErrorCode.NONE
        alter = IncrementalAlterConfigsRequest(resources=[alteration], validate_only=False)
        answer = client.ask(alter, IncrementalAlterConfigsResponse, 1).responses[0]
        assert answer.error_code == ErrorCode.NONE, answer.error_message
        changed = levels()
        assert (before[0].keys() - changed[0].keys(), changed[1]) == (set(lowered), {"DEBUG"})
        broker.reset()
        assert levels() == before


# -- time -----------------------------------------------------------------------------------------


def test_advancing_the_clock_applies_retention(broker: Broker) -> None:
    broker.create_topic("orders", configs={"retention.ms": str(HOUR_MS)})
    produce(broker, "orders", b"old")
    broker.run_retention_now()
    assert values_of(broker, "orders") == [b"old"]
    broker.advance(timedelta(hours=2))
    assert values_of(broker, "orders") == []


def test_advancing_the_clock_ends_sessions_and_transactions(broker: Broker) -> None:
    broker.create_topic("orders")
    consumer = consumer_of(broker, "readers", session_timeout_ms="60000")
    consumer.subscribe(["orders"])
    producer = producer_of(broker, transactional_id="sender")
    producer.init_transactions(LIMIT_S)
    producer.begin_transaction()
    producer.produce("orders", b"late")
    producer.flush(LIMIT_S)
    while not consumer.assignment():
        consumer.poll(0.05)
    broker.advance(timedelta(minutes=2))
    with pytest.raises(KafkaException):
        producer.commit_transaction(LIMIT_S)
    assert values_of(broker, "orders") == []
    consumer.close()


def test_a_group_forms_at_once_after_the_clock_was_advanced(broker: Broker) -> None:
    produce(broker, "orders", b"one", b"two")
    settings = {"session_timeout_ms": "45000"}
    first = consumer_of(broker, "readers", **settings)
    first.subscribe(["orders"])
    assert len(consume(first, 1)) == 1
    first.close()  # the timer of its session remains set, for 45 seconds from now
    broker.advance(timedelta(hours=2))
    second = consumer_of(broker, "readers", **settings)
    second.subscribe(["orders"])
    assert consume(second, 1) == [b"two"]
    second.close()


def test_the_wall_clock_can_be_set(broker: Broker) -> None:
    broker.create_topic("orders", configs={"message.timestamp.type": "LogAppendTime"})
    moment = datetime(2030, 1, 1, tzinfo=UTC)
    broker.set_clock(moment)
    produce(broker, "orders", b"in 2030")
    (record,) = broker.records("orders")
    assert 0 <= record.timestamp_ms - moment.timestamp() * 1000 < 60_000


def test_compaction_runs_when_the_test_wants_it(broker: Broker) -> None:
    broker.create_topic("state", configs={"cleanup.policy": "compact"})
    producer = producer_of(broker)
    for number in range(5):
        producer.produce("state", str(number), b"key")
        producer.flush(LIMIT_S)
    broker.run_compaction_now()
    assert values_of(broker, "state") == [b"4"]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_an_expired_group_gives_its_partitions_away(broker: Broker, protocol: str) -> None:
    broker.create_topic("orders")
    first = consumer_of(broker, "readers", group_protocol=protocol)
    first.subscribe(["orders"])
    while not first.assignment():
        first.poll(0.05)
    broker.expire_group("readers")
    second = consumer_of(broker, "readers", group_protocol=protocol)
    second.subscribe(["orders"])
    deadline = time.monotonic() + LIMIT_S
    while not second.assignment() and time.monotonic() < deadline:
        second.poll(0.05)  # the first does not poll: it does not join again
    assert second.assignment() == [TopicPartition("orders", 0)]
    second.close()
    first.close()


# -- faults ---------------------------------------------------------------------------------------


def test_the_next_requests_fail_with_the_error(broker: Broker) -> None:
    broker.create_topic("orders")
    broker.fail_next(ApiKey.PRODUCE, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    (error,) = produce(broker, "orders", b"refused")
    assert "authorization" in str(error)
    broker.fail_next(ApiKey.PRODUCE, ErrorCode.NOT_LEADER_OR_FOLLOWER, times=2)
    assert produce(broker, "orders", b"retried") == []
    assert values_of(broker, "orders") == [b"retried"]


def test_a_lost_answer_does_not_double_an_idempotent_record(broker: Broker) -> None:
    broker.create_topic("orders")
    broker.drop_connection(ApiKey.PRODUCE, handled=True)
    assert produce(broker, "orders", b"once", enable_idempotence="true") == []
    assert values_of(broker, "orders") == [b"once"]
    broker.drop_connection(ApiKey.PRODUCE)
    assert produce(broker, "orders", b"again", enable_idempotence="true") == []
    assert values_of(broker, "orders") == [b"once", b"again"]


def test_a_delayed_answer_comes_late(broker: Broker) -> None:
    broker.create_topic("orders")
    broker.delay(ApiKey.PRODUCE, 300)
    started = time.monotonic()
    assert produce(broker, "orders", b"late") == []
    assert time.monotonic() - started > 0.29  # a timer may fire a millisecond early
    broker.clear_faults()


def test_an_older_broker_is_pretended(broker: Broker) -> None:
    broker.pretend({ApiKey.PRODUCE: 5, ApiKey.CONSUMER_GROUP_HEARTBEAT: -1})
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    with WireClient(int(broker.bootstrap_servers.partition(":")[2])) as client:
        served = client.ask(request, ApiVersionsResponse, 3)
    highest = {item.api_key: item.max_version for item in served.api_keys}
    assert highest[ApiKey.PRODUCE] == 5
    assert ApiKey.CONSUMER_GROUP_HEARTBEAT not in highest
    assert produce(broker, "orders", b"by v5") == []
    assert values_of(broker, "orders") == [b"by v5"]


def test_a_full_disk_refuses_records_until_it_is_free(broker: Broker) -> None:
    broker.create_topic("orders")
    broker.fill_disk()
    assert produce(broker, "orders", b"refused", retries="0")
    broker.free_disk()
    assert produce(broker, "orders", b"accepted") == []
    assert values_of(broker, "orders") == [b"accepted"]


# -- its life -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_killed_broker_comes_back_with_what_it_acknowledged(broker: Broker) -> None:
    address = broker.bootstrap_servers
    assert produce(broker, "orders", b"kept") == []
    broker.kill_and_restart()
    assert broker.bootstrap_servers == address
    assert values_of(broker, "orders") == [b"kept"]


def test_a_restarted_broker_has_all_its_listeners_and_their_ports() -> None:
    settings = {
        "listeners": "INSIDE://127.0.0.1:0,OUTSIDE://0.0.0.0:0",
        "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
        "inter.broker.listener.name": "INSIDE",
        "odradek.http.listener": "0.0.0.0:0",
    }
    with Broker(settings=settings) as broker:
        ports = broker._ports
        broker.kill_and_restart()
        assert broker._ports == ports
        log = broker.log_file.read_text()
    [[_, outside]] = ports.nodes
    assert log.count(f"OUTSIDE listens on 0.0.0.0:{outside}") == 2
    assert log.count(f"HTTP listens on 0.0.0.0:{ports.http}") == 2


def test_a_broker_comes_back_in_its_directory_after_a_chdir(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    with Broker("here") as broker:
        broker.create_topic("orders")
        monkeypatch.chdir("elsewhere")
        broker.kill_and_restart()
        assert broker.topics() == {"orders": 1}
        assert "started" in broker.last_log_lines()
    assert not list(Path().iterdir())


def test_a_snapshot_is_restored_as_often_as_wanted(broker: Broker) -> None:
    broker.create_topic("orders", configs=SEGMENT)
    produce(broker, "orders", b"a", bytes(900_000), b"b", bytes(900_000), b"c", batch_size="1")
    consumer = consumer_of(broker, "readers", enable_auto_commit="false")
    consumer.subscribe(["orders"])
    consume(consumer, 5)
    consumer.commit(asynchronous=False)
    consumer.close()
    before = broker.records("orders")
    snapshot = broker.snapshot()
    for number in range(2):
        produce(broker, "orders", b"after", bytes(900_000))
        broker.create_topic(f"other-{number}")
        broker.restore(snapshot)
        assert broker.records("orders") == before
        assert broker.topics() == {"orders": 1}
        assert broker.committed("readers", "orders") == {0: 5}


def test_a_snapshot_of_before_a_kill_is_another_one_than_those_after_it(broker: Broker) -> None:
    broker.create_topic("before")
    before = broker.snapshot()
    broker.kill_and_restart()
    broker.create_topic("after")
    after = broker.snapshot()
    broker.restore(before)
    assert broker.topics() == {"before": 1}
    broker.restore(after)
    assert broker.topics() == {"before": 1, "after": 1}


def test_a_restore_that_was_killed_is_completed_by_the_next_start(tmp_path: Path) -> None:
    with Broker(tmp_path) as broker:
        broker.create_topic("before")
        snapshot = broker.snapshot()
        broker.create_topic("after")
        broker.stop()
        (tmp_path / "data").rename(tmp_path / "data.snapshot-old")
        shutil.copytree(snapshot.directory, tmp_path / "data.snapshot-new")
        broker.start()
        assert broker.topics() == {"before": 1}
        broker.create_topic("later")
        broker.restore(snapshot)
        assert broker.topics() == {"before": 1}
        assert sorted(path.name for path in tmp_path.glob("data*")) == ["data", "data.snapshot-1"]


@pytest.mark.slow
def test_a_directory_stopped_cleanly_is_taken_over(tmp_path: Path) -> None:
    broker = Broker(tmp_path).start()
    broker.create_topic("orders")
    produce(broker, "orders", b"kept")
    broker.stop(clean=True)
    with Broker(tmp_path) as again:
        assert values_of(again, "orders") == [b"kept"]
        assert "recovering" not in again.log_file.read_text()


@pytest.mark.slow
async def test_an_asynchronous_test_has_a_broker_too() -> None:
    async with Broker() as broker:
        directory = broker.log_file.parent
        broker.create_topic("orders")
        assert broker.topics() == {"orders": 1}
    assert not directory.exists()


@pytest.mark.slow
def test_a_broker_that_cannot_start_says_why(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"PLAINTEXT://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(BrokerError, match="cannot listen on"):
            Broker(tmp_path, {"listeners": address}).start()
    with pytest.raises(BrokerError, match=r"num\.partitions"):
        Broker(tmp_path, {"num.partitions": "many"}).start()


@pytest.mark.slow
def test_a_broker_ends_with_the_process_that_has_started_it(tmp_path: Path) -> None:
    program = (
        "import os, sys; from odradek.broker.testing import Broker;"
        "broker = Broker(sys.argv[1]).start(); print(broker.bootstrap_servers, flush=True);"
        "os.kill(os.getpid(), 9)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, check=False
    )
    port = int(done.stdout.decode().strip().partition(":")[2])
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            return
        time.sleep(0.01)
    pytest.fail("the broker lives on")
