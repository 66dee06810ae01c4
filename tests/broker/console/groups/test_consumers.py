"""Classic and consumer groups with real clients, and what a console changes of them."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from kafka import KafkaConsumer, TopicPartition

from tests.support.broker_process import BrokerProcess
from tests.support.committing import commit, committed, produce
from tests.support.console_client import ConsoleClient
from tests.support.kafka_python import may_leave_a_socket
from tests.support.topics import create_topic
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.slow, may_leave_a_socket]


@pytest.fixture(autouse=True)
def orders(broker: BrokerProcess) -> None:
    """A topic with 10 records in partition 0, and 4 in partition 1; a record each second."""
    create_topic(broker.bootstrap, "orders", 2)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(14):
        partition = int(number >= 10)
        producer.produce("orders", b"x", partition=partition, timestamp=1000 * number + 1)
    assert producer.flush(30) == 0


@contextmanager
def classic_consumer(broker: BrokerProcess) -> Iterator[KafkaConsumer]:
    """A member of the group "readers" that has read and committed all."""
    consumer = KafkaConsumer(
        "orders",
        group_id="readers",
        client_id="billing",
        bootstrap_servers=broker.bootstrap,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    try:
        count = 0
        while count < 14:
            count += sum(map(len, consumer.poll(timeout_ms=1000).values()))
        consumer.commit()
        yield consumer
    finally:
        consumer.close()


def offsets(view: Any, key: str) -> dict[int, Any]:
    return {each["partition"]: each[key] for each in view["offsets"]}


def test_a_classic_group_has_its_members_and_live_lag(
    broker: BrokerProcess, console: ConsoleClient
) -> None:
    with classic_consumer(broker):
        produce(broker, "orders", 1)
        view = console.get("/groups/readers")
        [member] = view["members"]
        assert view["type"] == "classic"
        assert view["state"] == "Stable"
        assert view["assignor"] == "range"
        assert member["clientId"] == "billing"
        assert member["host"] == "127.0.0.1"
        assert member["subscribed"] == ["orders"]
        assert member["assignment"] == [{"topic": "orders", "partitions": [0, 1]}]
        assert offsets(view, "committed") == {0: 10, 1: 4}
        assert offsets(view, "logEndOffset") == {0: 11, 1: 4}
        assert offsets(view, "lag") == {0: 1, 1: 0}
        assert offsets(view, "memberId") == dict.fromkeys((0, 1), member["memberId"])
        assert offsets(view, "expiresMs") == {0: None, 1: None}  # it is subscribed to
        assert view["lag"] == 1
        assert console.get("/groups")["groups"][0]["members"] == 1


def test_a_consumer_group_has_epochs_and_its_target(
    broker: BrokerProcess, console: ConsoleClient
) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "readers",
            "group.protocol": "consumer",
            "client.id": "billing",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe(["orders"])
    try:
        for _ in range(14):
            assert consumer.poll(30) is not None
        view = console.get("/groups/readers")
    finally:
        consumer.close()
    [member] = view["members"]
    assert view["type"] == "consumer"
    assert view["groupEpoch"] == view["assignmentEpoch"] == member["memberEpoch"]
    assert member["state"] == "Stable"
    assert member["clientId"] == "billing"
    assert member["subscribed"] == ["orders"]
    assigned = [{"topic": "orders", "partitions": [0, 1]}]
    assert member["assignment"] == member["targetAssignment"] == assigned
    # Nothing is committed, but it reads them.
    assert offsets(view, "committed") == {0: None, 1: None}
    assert offsets(view, "memberId") == dict.fromkeys((0, 1), member["memberId"])


def reset(console: ConsoleClient, to: str, value: int | None = None, **more: Any) -> Any:
    """Preview, set, and see what is committed then."""
    body = {"topic": "orders", "to": to, "value": value, **more}
    preview = console.post("/groups/readers/offsets", body)
    before = offsets(console.get("/groups/readers"), "committed")
    done = console.post("/groups/readers/offsets", {**body, "preview": False})
    assert done == preview
    assert {each["partition"]: each["from"] for each in done["offsets"]}.items() <= before.items()
    after = offsets(console.get("/groups/readers"), "committed")
    assert {each["partition"]: each["to"] for each in done["offsets"]}.items() <= after.items()
    return after


def test_offsets_are_previewed_and_set(broker: BrokerProcess, console: ConsoleClient) -> None:
    commit(broker, "readers", "orders", {0: 5, 1: 1})
    assert reset(console, "earliest") == {0: 0, 1: 0}
    assert reset(console, "latest") == {0: 10, 1: 4}
    assert reset(console, "shift", -3, partitions=[0]) == {0: 7, 1: 4}
    assert reset(console, "offset", 2, partitions=[1]) == {0: 7, 1: 2}
    assert reset(console, "offset", 8) == {0: 8, 1: 4}  # partition 1 ends before
    assert reset(console, "time", 6001) == {0: 6, 1: 0}
    assert reset(console, "time", 11_001) == {0: 10, 1: 1}  # nothing in 0 is so new
    assert reset(console, "shift", -100) == {0: 0, 1: 0}
    assert committed(broker, "readers", "orders") == {0: 0, 1: 0}


def test_a_consumer_begins_where_the_console_has_set_it(
    broker: BrokerProcess, console: ConsoleClient
) -> None:
    with classic_consumer(broker):
        pass
    reset(console, "offset", 7, partitions=[0])
    reader = KafkaConsumer(group_id="readers", bootstrap_servers=broker.bootstrap)
    reader.assign([TopicPartition("orders", 0)])
    [records] = reader.poll(timeout_ms=30_000).values()
    reader.close()
    assert [record.offset for record in records] == [7, 8, 9]


def test_the_offsets_of_a_group_with_members_are_not_set(
    broker: BrokerProcess, console: ConsoleClient
) -> None:
    with classic_consumer(broker):
        body = {"topic": "orders", "to": "earliest"}
        preview = console.post("/groups/readers/offsets", body)
        assert [each["to"] for each in preview["offsets"]] == [0, 0]
        assert "is Stable, and has members (1)" in preview["refusal"]
        answer = console.ask("POST", "/groups/readers/offsets", {**body, "preview": False})
        assert answer.error == (400, "UNKNOWN_MEMBER_ID")
        assert answer.body["message"] == preview["refusal"]
        assert offsets(console.get("/groups/readers"), "committed") == {0: 10, 1: 4}


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({"topic": "orders", "to": "somewhere"}, (400, "BAD_REQUEST")),
        ({"topic": "orders", "to": "offset"}, (400, "BAD_REQUEST")),
        ({"topic": "orders", "to": "time", "value": -1}, (400, "BAD_REQUEST")),
        ({"topic": "orders", "to": "shift", "value": 1}, (400, "BAD_REQUEST")),  # 1 has none
        ({"topic": "none", "to": "latest"}, (404, "UNKNOWN_TOPIC_OR_PARTITION")),
        (
            {"topic": "orders", "to": "latest", "partitions": [7]},
            (404, "UNKNOWN_TOPIC_OR_PARTITION"),
        ),
    ],
)
def test_what_cannot_be_set_is_refused(
    broker: BrokerProcess, console: ConsoleClient, body: Any, error: tuple[int, str]
) -> None:
    commit(broker, "readers", "orders", {0: 5})
    for preview in (True, False):
        answer = console.ask("POST", "/groups/readers/offsets", {**body, "preview": preview})
        assert answer.error == error
    assert committed(broker, "readers", "orders") == {0: 5}


def test_offsets_and_the_group_are_deleted(broker: BrokerProcess, console: ConsoleClient) -> None:
    commit(broker, "readers", "orders", {0: 5, 1: 1})
    console.delete("/groups/readers/offsets", {"topic": "orders", "partitions": [1]})
    assert committed(broker, "readers", "orders") == {0: 5}
    answer = console.ask("DELETE", "/groups/readers", {"confirm": "reader"})
    assert answer.error == (400, "BAD_REQUEST")
    console.delete("/groups/readers", {"confirm": "readers"})
    assert console.get("/groups")["total"] == 0
    assert console.ask("GET", "/groups/readers").error == (404, "GROUP_ID_NOT_FOUND")


def test_a_group_with_members_is_not_deleted(broker: BrokerProcess, console: ConsoleClient) -> None:
    with classic_consumer(broker):
        answer = console.ask("DELETE", "/groups/readers", {"confirm": "readers"})
        assert answer.error == (409, "NON_EMPTY_GROUP")
        answer = console.ask("DELETE", "/groups/readers/offsets", {"topic": "orders"})
        assert answer.error == (400, "GROUP_SUBSCRIBED_TO_TOPIC")


def test_an_open_transaction_that_holds_a_group_back_is_named(
    broker: BrokerProcess, console: ConsoleClient
) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "payments"})
    producer.init_transactions(30)
    producer.begin_transaction()
    for _ in range(3):
        producer.produce("orders", b"open", partition=0)
    assert producer.flush(30) == 0
    commit(broker, "waiting", "orders", {0: 10, 1: 4})
    commit(broker, "slow", "orders", {0: 2})
    before_ms = time.time() * 1000

    held, free = console.get("/groups/waiting")["offsets"]
    holding = held["holding"]
    assert held["lastStableOffset"] == 10
    assert held["logEndOffset"] == 13
    assert held["lag"] == 3
    assert holding["transactionalId"] == "payments"
    assert holding["startOffset"] == 10
    assert holding["heldBackRecords"] == 3
    assert not holding["isHanging"]
    assert before_ms - 60_000 < holding["startedMs"] <= before_ms
    assert "read_committed wait at offset 10: transaction of producer" in held["waitsFor"]
    assert "(payments), open since 20" in held["waitsFor"]
    assert free["holding"] is None
    assert free["waitsFor"] is None
    for sort in ("name", "lag"):
        listed = console.get("/groups", sort=sort)["groups"]
        assert {each["groupId"]: each["heldBack"] for each in listed} == {"slow": 0, "waiting": 1}
    [slow] = console.get("/groups/slow")["offsets"]
    assert "will wait at offset 10" in slow["waitsFor"]

    producer.abort_transaction(30)

    def is_free() -> bool:
        return console.get("/groups/waiting")["offsets"][0]["waitsFor"] is None

    wait_until(is_free)


def test_an_offset_in_an_open_transaction_is_said(
    broker: BrokerProcess, console: ConsoleClient
) -> None:
    with classic_consumer(broker):
        consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "copiers"})
        producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "copier"})
        producer.init_transactions(30)
        producer.begin_transaction()
        from confluent_kafka import TopicPartition as Offset

        position = [Offset("orders", 1, 3)]
        producer.send_offsets_to_transaction(position, consumer.consumer_group_metadata(), 30)
        [pending] = console.get("/groups/copiers")["offsets"]
        assert pending["committed"] is None
        assert pending["waitsFor"].startswith("an open transaction has an offset for it")
        producer.commit_transaction(30)
        [committed] = console.get("/groups/copiers")["offsets"]
        assert committed["committed"] == 3
        assert committed["waitsFor"] is None
        consumer.close()
