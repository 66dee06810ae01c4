"""Faults that a test injects: which requests they are about, how often, and what they do."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka import TopicPartition as Place
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import TopicAuthorizationFailedError

from odradek.broker.testing import ApiKey, Broker, BrokerError, ErrorCode, Fault, FaultEvent
from odradek.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
)
from odradek.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from odradek.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from odradek.protocol.messages.produce import (
    ProducePartitionData,
    ProduceRequest,
    ProduceResponse,
    ProduceTopicData,
)
from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from tests.support.kafka_python import may_leave_a_socket
from tests.support.wire import ConnectionEndedError, WireClient

pytestmark = may_leave_a_socket

LIMIT_S = 60.0
LIMIT_MS = 60_000
PRODUCE_VERSION = 12  # the last that names topics
COORDINATOR = FindCoordinatorRequest(coordinator_keys=["readers"])
GROUPS = ListGroupsRequest()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with Broker(tmp_path_factory.mktemp("broker")) as broker:
        yield broker


@pytest.fixture
def broker(shared: Broker) -> Broker:
    shared.reset()
    return shared


@pytest.fixture
def client(broker: Broker) -> Iterator[WireClient]:
    with connected(broker) as made:
        yield made


def connected(broker: Broker, client_id: str = "wire") -> WireClient:
    return WireClient(int(broker.bootstrap_servers.rpartition(":")[2]), client_id=client_id)


def list_groups(client: WireClient) -> ErrorCode:
    return ErrorCode(client.ask(GROUPS, ListGroupsResponse, 4).error_code)


def produce_request(*values: bytes, topic: str = "orders", acks: int = -1) -> ProduceRequest:
    """A record for each partition, from 0 on."""
    partitions = [
        ProducePartitionData(index=index, records=build_batch([Record(None, value, 1, ())]))
        for index, value in enumerate(values)
    ]
    topics = [ProduceTopicData(name=topic, partition_data=partitions)]
    return ProduceRequest(acks=acks, timeout_ms=1000, topic_data=topics)


def produce(client: WireClient, *values: bytes) -> dict[int, ErrorCode]:
    """Send a record to each partition. Returns the errors."""
    answer = client.ask(produce_request(*values), ProduceResponse, PRODUCE_VERSION)
    [topic] = answer.responses
    return {each.index: ErrorCode(each.error_code) for each in topic.partition_responses}


def values_of(broker: Broker, topic: str = "orders") -> list[bytes | None]:
    return [record.value for record in broker.records(topic)]


def producer_of(broker: Broker, **settings: str) -> Producer:
    return Producer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "log_level": 0,
            "retry.backoff.ms": 10,
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
    )


def send(producer: Producer, topic: str, *values: bytes, partition: int = 0) -> list[object]:
    """Send the values; the errors of those that were not acknowledged."""
    errors: list[object] = []
    for value in values:
        producer.produce(
            topic, value, partition=partition, on_delivery=lambda error, _: errors.append(error)
        )
    assert producer.flush(LIMIT_S) == 0
    return [error for error in errors if error is not None]


# -- which requests, and how often ----------------------------------------------------------------


def test_a_fault_is_about_one_api(broker: Broker, client: WireClient) -> None:
    fault = broker.inject(Fault(api="LIST_GROUPS", error="COORDINATOR_NOT_AVAILABLE"))
    client.ask(COORDINATOR, FindCoordinatorResponse, 4)
    assert fault.fired() == 0
    assert list_groups(client) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert list_groups(client) is ErrorCode.NONE
    assert fault.events() == [FaultEvent(0, 1, ApiKey.LIST_GROUPS, 0, "wire")]


def test_a_fault_is_about_one_client(broker: Broker, client: WireClient) -> None:
    error = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    fault = broker.inject(Fault(api=ApiKey.LIST_GROUPS, client_id="other", error=error))
    assert list_groups(client) is ErrorCode.NONE
    with connected(broker, "other") as other:
        assert list_groups(other) is error
    assert [event.client_id for event in fault.events()] == ["other"]


def test_a_fault_is_about_one_node(broker: Broker, client: WireClient) -> None:
    error = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    with pytest.raises(BrokerError, match=r"there is no node 7: the nodes are \[0\]"):
        broker.inject(Fault(api=ApiKey.LIST_GROUPS, node=7, error=error))
    assert list_groups(client) is ErrorCode.NONE
    here = broker.inject(Fault(api=ApiKey.LIST_GROUPS, node=0, error=error))
    assert list_groups(client) is error
    assert here.fired() == 1


def test_a_fault_skips_requests_and_ends(broker: Broker, client: WireClient) -> None:
    fault = Fault(api=ApiKey.LIST_GROUPS, error=ErrorCode.NOT_COORDINATOR, after=2, times=3)
    broker.inject(fault)
    failed = [list_groups(client) is ErrorCode.NOT_COORDINATOR for _ in range(7)]
    assert failed == [False, False, True, True, True, False, False]


def test_a_fault_without_an_end_is_removed(broker: Broker, client: WireClient) -> None:
    fault = broker.inject(Fault(api=ApiKey.LIST_GROUPS, error="NOT_COORDINATOR", times=None))
    assert {list_groups(client) for _ in range(5)} == {ErrorCode.NOT_COORDINATOR}
    fault.remove()
    assert list_groups(client) is ErrorCode.NONE
    assert fault.fired() == 5
    fault.remove()
    broker.clear_faults()
    with pytest.raises(BrokerError, match="does not have these faults any more"):
        fault.fired()


def test_a_script_goes_from_fault_to_fault(broker: Broker, client: WireClient) -> None:
    script = broker.inject(
        [
            Fault(api=ApiKey.LIST_GROUPS, error=ErrorCode.COORDINATOR_NOT_AVAILABLE, times=2),
            Fault(api=ApiKey.LIST_GROUPS, error=ErrorCode.NOT_COORDINATOR, times=0),
            Fault(api=ApiKey.FIND_COORDINATOR, error=ErrorCode.COORDINATOR_NOT_AVAILABLE),
            Fault(api=ApiKey.LIST_GROUPS, error=ErrorCode.NOT_COORDINATOR),
        ]
    )
    errors = [list_groups(client) for _ in range(3)]
    client.ask(COORDINATOR, FindCoordinatorResponse, 4)
    errors += [list_groups(client) for _ in range(2)]
    assert errors == [15, 15, 0, 16, 0]
    assert [(event.fault, event.match) for event in script.events()] == [
        (0, 1),
        (0, 2),
        (2, 1),
        (3, 1),
    ]


def test_one_seed_gives_one_sequence_a_hundred_times(broker: Broker, client: WireClient) -> None:
    def sequence(seed: int) -> list[FaultEvent]:
        script = [
            Fault(error="NOT_COORDINATOR", probability=0.4, seed=seed, times=5),
            Fault(api="LIST_GROUPS", delay_after_ms=1, probability=0.7, seed=seed + 1, times=None),
        ]
        injected = broker.inject(script)
        for _ in range(20):
            list_groups(client)
        injected.remove()
        return injected.events()

    first = sequence(7)
    assert 5 < len(first) < 20
    assert all(sequence(7) == first for _ in range(99))
    assert sequence(8) != first


def test_requests_without_a_fault_do_not_change_a_sequence(broker: Broker) -> None:
    def hits(*, is_busy: bool) -> list[int]:
        fault = broker.inject(
            Fault(client_id="one", error="NOT_COORDINATOR", probability=0.5, seed=3, times=None)
        )
        with connected(broker, "one") as one, connected(broker, "two") as two:
            for _ in range(20):
                list_groups(one)
                if is_busy:
                    list_groups(two)
        fault.remove()
        return [event.match for event in fault.events()]

    assert hits(is_busy=True) == hits(is_busy=False) != []


def test_a_test_waits_for_a_fault(broker: Broker, client: WireClient) -> None:
    fault = broker.inject(Fault(api=ApiKey.LIST_GROUPS))
    with pytest.raises(BrokerError, match="the fault has fired 0 times, not 1"):
        fault.wait(within=20)
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(fault.wait, within=LIMIT_MS)
        assert list_groups(client) is ErrorCode.NONE  # it only counts
        waiting.result(LIMIT_S)


def test_a_wrong_fault_is_refused() -> None:
    with pytest.raises(ValueError, match="there is no ApiKey PRODUCES"):
        Fault(api="PRODUCES")
    with pytest.raises(ValueError, match="there is no ErrorCode NONSENSE"):
        Fault(error="NONSENSE")
    with pytest.raises(ValueError, match="probability is 2"):
        Fault(probability=2)
    with pytest.raises(ValueError, match="after is -1"):
        Fault(after=-1)


# -- what it does ---------------------------------------------------------------------------------


def test_a_connection_is_cut_before_the_work(broker: Broker, client: WireClient) -> None:
    broker.create_topic("orders")
    broker.inject(Fault(api=ApiKey.PRODUCE, cut="before_work"))
    with pytest.raises(ConnectionEndedError):
        produce(client, b"1")
    assert values_of(broker) == []


def test_a_connection_is_cut_before_the_answer(broker: Broker, client: WireClient) -> None:
    broker.create_topic("orders")
    broker.inject(Fault(api=ApiKey.PRODUCE, cut="before_answer"))
    with pytest.raises(ConnectionEndedError):
        produce(client, b"1")
    assert values_of(broker) == [b"1"]


@pytest.mark.parametrize("error", [None, ErrorCode.NOT_LEADER_OR_FOLLOWER])
def test_a_connection_is_cut_after_the_answer(
    broker: Broker, client: WireClient, error: ErrorCode | None
) -> None:
    broker.create_topic("orders")
    broker.inject(Fault(api=ApiKey.PRODUCE, cut="after_answer", error=error))
    assert produce(client, b"1") == {0: error or ErrorCode.NONE}
    with pytest.raises(ConnectionError):
        list_groups(client)
    assert values_of(broker) == ([] if error else [b"1"])


def test_a_request_is_served_late_although_its_client_is_gone(broker: Broker) -> None:
    broker.create_topic("orders")
    late = [Fault(api="PRODUCE", delay_before_ms=delay_ms) for delay_ms in (1, 500)]
    script = broker.inject(late)
    with connected(broker) as client:
        assert produce(client, b"first") == {0: ErrorCode.NONE}
        client.send(client.frame_of(produce_request(b"late"), PRODUCE_VERSION))
        script.wait(2, within=LIMIT_MS)
    assert broker.wait_for_records("orders", 2, within=LIMIT_MS)[1].value == b"late"


def test_a_request_that_waits_before_it_is_refused_gets_the_error(
    broker: Broker, client: WireClient
) -> None:
    broker.inject(Fault(api=ApiKey.ALTER_SHARE_GROUP_OFFSETS, delay_before_ms=1))
    request = AlterShareGroupOffsetsRequest(group_id="", topics=[])
    answer = client.ask(request, AlterShareGroupOffsetsResponse, 0)
    assert answer.error_code == ErrorCode.INVALID_GROUP_ID


def test_delays_add_up_and_the_first_error_counts(broker: Broker, client: WireClient) -> None:
    slow = Fault(api=ApiKey.LIST_GROUPS, delay_after_ms=50, times=None)
    injected = [
        broker.inject(slow),
        broker.inject(Fault(error=ErrorCode.NOT_COORDINATOR)),
        broker.inject(Fault(error=ErrorCode.COORDINATOR_NOT_AVAILABLE)),
        broker.inject(slow),
    ]
    started = time.monotonic()
    assert list_groups(client) is ErrorCode.NOT_COORDINATOR
    assert time.monotonic() - started > 0.09  # each timer may fire a millisecond early
    assert [each.fired() for each in injected] == [1, 1, 0, 1]
    assert list_groups(client) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert list_groups(client) is ErrorCode.NONE


def test_the_whole_request_fails_because_of_a_topic(broker: Broker, client: WireClient) -> None:
    broker.create_topic("orders", 2)
    broker.create_topic("payments", 2)
    error = ErrorCode.NOT_LEADER_OR_FOLLOWER
    broker.inject(Fault(topic="orders", partition=1, error=error, where="request"))
    assert produce(client, b"0") == {0: ErrorCode.NONE}
    assert produce(client, b"0", b"1") == {0: error, 1: error}
    assert values_of(broker) == [b"0"]


def test_a_request_without_an_answer_is_cut(broker: Broker) -> None:
    broker.create_topic("orders", 2)
    for fault in (
        Fault(api=ApiKey.PRODUCE, error=ErrorCode.NOT_LEADER_OR_FOLLOWER),
        Fault(topic="orders", partition=1, error=ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ):
        broker.inject(fault)
        with connected(broker) as client:
            client.send(client.frame_of(produce_request(b"0", b"1", acks=0), PRODUCE_VERSION))
            assert client.socket.recv(1) == b""
    assert values_of(broker) == [b"0"]  # the partition that did not fail


# -- clients --------------------------------------------------------------------------------------


def test_a_producer_sends_again_what_one_partition_has_refused(broker: Broker) -> None:
    broker.create_topic("orders", 2)
    producer = producer_of(broker)
    assert send(producer, "orders", b"first") == []
    error = ErrorCode.NOT_LEADER_OR_FOLLOWER
    fault = broker.inject(
        Fault(api=ApiKey.PRODUCE, topic="orders", partition=1, error=error, times=2)
    )
    assert send(producer, "orders", b"to 0", partition=0) == []
    assert fault.fired() == 0
    assert send(producer, "orders", b"to 1", partition=1) == []
    assert fault.fired() == 2
    assert values_of(broker) == [b"first", b"to 0", b"to 1"]


def test_an_idempotent_producer_loses_an_answer_in_a_script_of_faults(broker: Broker) -> None:
    broker.create_topic("orders")
    script = broker.inject(
        [
            Fault(api=ApiKey.PRODUCE, cut="before_answer"),
            Fault(api=ApiKey.PRODUCE, partition=0, error=ErrorCode.NOT_ENOUGH_REPLICAS),
            Fault(api=ApiKey.PRODUCE, cut="after_answer"),
        ]
    )
    producer = producer_of(broker, enable_idempotence="true")
    assert send(producer, "orders", b"once") == []
    assert send(producer, "orders", b"again") == []
    script.wait(3, within=LIMIT_MS)
    assert values_of(broker) == [b"once", b"again"]


def test_a_consumer_goes_on_after_an_error_in_one_partition(broker: Broker) -> None:
    broker.create_topic("orders", 2)
    for partition in range(2):
        broker.produce("orders", b"before", partition=partition)
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "readers",
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
    )
    consumer.subscribe(["orders"])
    assert len(consumer.consume(2, LIMIT_S)) == 2
    fault = broker.inject(
        Fault(api=ApiKey.FETCH, topic="orders", partition=1, error="NOT_LEADER_OR_FOLLOWER")
    )
    fault.wait(within=LIMIT_MS)
    broker.produce("orders", b"after", partition=1)
    (message,) = consumer.consume(1, LIMIT_S)
    assert (message.partition(), message.offset(), message.value()) == (1, 1, b"after")
    consumer.close()


def test_kafka_python_sees_the_errors_of_a_partition(broker: Broker) -> None:
    broker.create_topic("orders", 2)
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, retries=0)
    refused = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    broker.inject(Fault(api=ApiKey.PRODUCE, topic="orders", partition=1, error=refused))
    producer.send("orders", b"to 0", partition=0).get(LIMIT_S)
    with pytest.raises(TopicAuthorizationFailedError):
        producer.send("orders", b"to 1", partition=1).get(LIMIT_S)
    producer.send("orders", b"again", partition=1).get(LIMIT_S)
    producer.close()
    consumer = KafkaConsumer(
        bootstrap_servers=broker.bootstrap_servers,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        group_id="readers",
    )
    consumer.assign([TopicPartition("orders", 0), TopicPartition("orders", 1)])
    script = broker.inject(
        [
            Fault(api="OFFSET_FETCH", topic="orders", error="UNSTABLE_OFFSET_COMMIT"),
            Fault(api="LIST_OFFSETS", topic="orders", error="LEADER_NOT_AVAILABLE"),
            Fault(api="FETCH", topic="orders", partition=0, error="NOT_LEADER_OR_FOLLOWER"),
        ]
    )
    values = {next(consumer).value for _ in range(2)}
    assert values == {b"to 0", b"again"}
    script.wait(3, within=LIMIT_MS)
    consumer.close()


def test_a_producer_waits_for_the_leader_of_one_partition(broker: Broker) -> None:
    broker.create_topic("orders", 2)
    fault = broker.inject(
        Fault(api="METADATA", topic="orders", partition=1, error="LEADER_NOT_AVAILABLE", times=2)
    )
    producer = producer_of(broker)
    assert send(producer, "orders", b"one coffee", partition=1) == []
    fault.wait(2, within=LIMIT_MS)
    assert values_of(broker) == [b"one coffee"]


def test_a_consumer_commits_all_offsets_but_the_one_that_fails(broker: Broker) -> None:
    broker.create_topic("orders", 2)
    settings = {"bootstrap.servers": broker.bootstrap_servers, "log_level": 0}
    consumer = Consumer({**settings, "group.id": "readers"})
    error = ErrorCode.OFFSET_METADATA_TOO_LARGE
    broker.inject(Fault(api="OFFSET_COMMIT", topic="orders", partition=1, error=error))
    wanted = [Place("orders", partition, 5) for partition in range(2)]
    with pytest.raises(KafkaException, match="OFFSET_METADATA_TOO_LARGE"):
        consumer.commit(offsets=wanted, asynchronous=False)
    assert broker.committed("readers", "orders") == {0: 5}
    consumer.close()


# -- all requests ---------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "after"])
def test_clients_do_not_notice_delays_of_all_requests(tmp_path: Path, when: str) -> None:
    delay = {f"delay_{when}_ms": 1}
    with Broker(tmp_path, secure=True) as broker:
        fault = broker.inject(Fault(**delay, times=None))
        settings = broker.client_settings("confluent-kafka") | {"log_level": 0}
        producer = Producer({**settings, "transactional.id": "sender"})
        producer.init_transactions(LIMIT_S)
        producer.begin_transaction()
        assert send(producer, "orders", *(b"%d" % number for number in range(5))) == []
        producer.commit_transaction(LIMIT_S)
        reading = {"group.id": "readers", "auto.offset.reset": "earliest"}
        consumer = Consumer({**settings, **reading, "enable.auto.commit": False})
        consumer.subscribe(["orders"])
        values = [message.value() for message in consumer.consume(5, LIMIT_S)]
        assert values == [b"0", b"1", b"2", b"3", b"4"]
        consumer.commit(asynchronous=False)
        consumer.close()
        assert broker.committed("readers", "orders") == {0: 5}
        apis = {event.api for event in fault.events()}
        assert {ApiKey.API_VERSIONS, ApiKey.SASL_AUTHENTICATE, ApiKey.METADATA} < apis
        assert {ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.JOIN_GROUP, ApiKey.END_TXN} < apis
        assert broker.is_running


def test_what_a_fault_delays_is_not_done_in_the_next_test(broker: Broker) -> None:
    broker.create_topic("orders")
    fault = broker.inject(Fault(api="PRODUCE", delay_before_ms=3_600_000))
    writer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    writer.produce("orders", b"late")
    fault.wait(within=LIMIT_MS)
    broker.reset()
    broker.create_topic("orders")
    assert writer.flush(LIMIT_S) == 0
    assert broker.records("orders") == []


def test_cleared_faults_delay_no_answer_any_more(broker: Broker) -> None:
    broker.create_topic("orders")
    fault = broker.inject(Fault(api="PRODUCE", delay_after_ms=3_600_000))
    writer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    writer.produce("orders", b"one")
    fault.wait(within=LIMIT_MS)
    broker.clear_faults()
    assert writer.flush(LIMIT_S) == 0


@pytest.mark.parametrize("end", [Broker.clear_faults, Broker.reset])
def test_a_request_that_is_delayed_twice_waits_no_second_time_when_its_faults_end(
    end: Callable[[Broker], None], broker: Broker, client: WireClient
) -> None:
    hour_ms = 3_600_000
    fault = broker.inject(Fault(api="LIST_GROUPS", delay_before_ms=hour_ms, delay_after_ms=hour_ms))
    with ThreadPoolExecutor() as pool:
        asked = pool.submit(list_groups, client)
        fault.wait(within=LIMIT_MS)
        end(broker)
        assert asked.result(LIMIT_S) is ErrorCode.NONE


def test_a_restore_ends_delays_and_no_faults(broker: Broker) -> None:
    snapshot = broker.snapshot()
    late = broker.inject(Fault(api="LIST_GROUPS", delay_before_ms=3_600_000, times=2))
    broker.pretend({ApiKey.FIND_COORDINATOR: 3})
    with connected(broker) as client, ThreadPoolExecutor() as pool:
        asked = pool.submit(list_groups, client)
        late.wait(within=LIMIT_MS)
        broker.restore(snapshot)
        assert asked.exception(LIMIT_S) is None or isinstance(asked.exception(), OSError)
    assert late.fired() == 1
    late.remove()
    fails = broker.inject(Fault(api="LIST_GROUPS", error="COORDINATOR_NOT_AVAILABLE", times=2))
    broker.restore(snapshot)
    with connected(broker) as client:
        assert list_groups(client) is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert fails.fired() == 1
        with pytest.raises(ConnectionEndedError):
            client.ask(COORDINATOR, FindCoordinatorResponse, 4)


def test_a_long_script_of_faults_that_never_fire(broker: Broker) -> None:
    script = broker.inject([*[Fault(times=0)] * 10_000, Fault(api="LIST_GROUPS")])
    with connected(broker) as client:
        list_groups(client)
    assert [event.fault for event in script.events()] == [10_000]


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"api": 9999}, "api"),
        ({"times": "3"}, "times"),
        ({"probability": None}, "probability"),
        ({"topic": b"orders"}, "topic"),
        ({"partition": -1}, "partition"),
        ({"delay_after_ms": 10**30}, "delay_after_ms"),
        ({"cut": "sometimes"}, "cut"),
    ],
)
def test_wrong_fields_of_a_fault_are_named(fields: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        Fault(**fields)


def test_a_clean_stop_does_not_wait_for_what_a_fault_delays() -> None:
    with Broker() as broker:
        fault = broker.inject(Fault(api="LIST_GROUPS", delay_before_ms=3_600_000))
        with connected(broker) as client:
            client.send(client.frame_of(GROUPS, 4))
            fault.wait(within=LIMIT_MS)
            broker.stop(clean=True)
            assert client.read_answer(ListGroupsResponse, 4).error_code == ErrorCode.NONE
