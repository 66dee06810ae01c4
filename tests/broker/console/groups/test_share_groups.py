"""Share groups: what is in flight, and their offsets."""

import time

import pytest
from confluent_kafka import Producer

from tests.broker.console.groups.members import LOCK_MS, cook
from tests.conformance.share_reader import ACCEPT, RELEASE, prepare_group
from tests.support.broker_process import BrokerProcess
from tests.support.committing import produce
from tests.support.console_client import ConsoleClient
from tests.support.topics import create_topic
from tests.support.waiting import wait_until
from tests.support.wire import WireClient

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def orders(broker: BrokerProcess) -> None:
    create_topic(broker.bootstrap, "orders", 1)
    produce(broker, "orders", 6)


def test_locks_and_deliveries_are_shown(broker: BrokerProcess, console: ConsoleClient) -> None:
    with cook(broker) as anna:
        before_ms = time.time() * 1000
        anna.fetch(0, max_records=6)
        anna.acknowledge((0, 1, [ACCEPT]), (3, 3, [RELEASE]))
        view = console.get("/groups/cooks")
        [member] = view["members"]
        assert view["type"] == "share"
        assert member["memberId"] == "anna"
        assert member["clientId"] == "kitchen"
        assert member["assignment"] == [{"topic": "orders", "partitions": [0]}]
        assert view["shareSettings"]["lockDurationMs"] == LOCK_MS
        [delivery] = view["share"]
        assert delivery["isRead"]
        assert delivery["startOffset"] == 2
        assert delivery["inFlight"] == 4
        ranges = [
            (each["firstOffset"], each["lastOffset"], each["state"], each["deliveryCount"])
            for each in delivery["acquired"]
            if each["lastOffset"] >= delivery["startOffset"]
        ]
        assert ranges == [(2, 2, "ACQUIRED", 1), (3, 3, "AVAILABLE", 1), (4, 5, "ACQUIRED", 1)]
        locked = [each for each in delivery["acquired"] if each["state"] == "ACQUIRED"]
        assert {each["memberId"] for each in locked} == {"anna"}
        for each in locked:
            assert before_ms + LOCK_MS - 100 < each["lockedUntilMs"]
            assert each["lockedUntilMs"] < time.time() * 1000 + LOCK_MS + 100
        [offset] = view["offsets"]
        assert offset["committed"] == 2
        assert offset["lag"] == view["lag"] == 4


def test_a_group_without_members_shows_what_is_stored(
    broker: BrokerProcess, console: ConsoleClient
) -> None:
    with cook(broker) as anna:
        anna.fetch(0)
        anna.acknowledge((0, 1, [ACCEPT]))
    [delivery] = console.get("/groups/cooks")["share"]
    assert not delivery["isRead"]
    assert delivery["startOffset"] == 2
    assert all(each["lockedUntilMs"] is None for each in delivery["acquired"])


def test_start_offsets_are_previewed_set_and_deleted(
    broker: BrokerProcess, console: ConsoleClient
) -> None:
    with cook(broker) as anna:
        anna.fetch(0)
        body = {"topic": "orders", "to": "offset", "value": 4}
        preview = console.post("/groups/cooks/offsets", body)
        assert "has members (1)" in preview["refusal"]
        answer = console.ask("POST", "/groups/cooks/offsets", {**body, "preview": False})
        assert answer.error == (409, "NON_EMPTY_GROUP")
    done = console.post("/groups/cooks/offsets", {**body, "preview": False})
    assert done == {
        "offsets": [{"topic": "orders", "partition": 0, "from": 0, "to": 4}],
        "refusal": None,
    }
    [offset] = console.get("/groups/cooks")["offsets"]
    assert offset["committed"] == 4
    with cook(broker, "berta") as berta:
        acquired = berta.fetch(0).responses[0].partitions[0].acquired_records
        assert [(each.first_offset, each.last_offset) for each in acquired] == [(4, 5)]
    console.delete("/groups/cooks/offsets", {"topic": "orders"})
    assert console.get("/groups/cooks")["offsets"] == []
    console.delete("/groups/cooks", {"confirm": "cooks"})
    assert console.get("/groups")["total"] == 0


def test_open_transactions_hold_back_groups_that_read_committed(
    broker: BrokerProcess, console: ConsoleClient
) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "payments"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("orders", b"open", partition=0)
    assert producer.flush(30) == 0
    with cook(broker, **{"share.isolation.level": "read_committed"}) as anna:
        anna.fetch(0)
        [offset] = console.get("/groups/cooks")["offsets"]
        assert offset["holding"]["transactionalId"] == "payments"
    with WireClient(broker.port) as client:
        prepare_group(client, "cooks", "orders", **{"share.isolation.level": "read_uncommitted"})

    def is_free() -> bool:
        return console.get("/groups/cooks")["offsets"][0]["holding"] is None

    wait_until(is_free)
    producer.abort_transaction(30)
