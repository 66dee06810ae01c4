"""A consumer that does not move because of an open transaction: it is found, and ended."""

from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, KafkaException, Producer

from tests.support.broker_process import against_apache_kafka
from tests.support.console_client import ConsoleBroker, ConsoleClient, console_broker
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(against_apache_kafka(), reason="odradek's own console"),
]

TOPIC = "orders"
STATES = "__transaction_state"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleBroker]:
    settings = {"transaction.state.log.num.partitions": "1", "offsets.topic.num.partitions": "1"}
    with console_broker(tmp_path_factory.mktemp("transactions"), settings) as found:
        yield found


@pytest.fixture
def console(broker: ConsoleBroker) -> ConsoleClient:
    """The console of a broker with one empty topic, and nothing else."""
    for topic in broker.console.get("/topics", internal="true")["topics"]:
        broker.console.delete(f"/topics/{topic['name']}", {"confirm": topic["name"]})
    broker.console.post("/topics", {"name": TOPIC, "partitions": 2})
    return broker.console


class Client:
    """A program that has begun a transaction, sent records, and stopped there."""

    def __init__(self, broker: ConsoleBroker, transactional_id: str = "shop") -> None:
        self.servers = broker.process.bootstrap
        self.producer = Producer(
            {"bootstrap.servers": self.servers, "transactional.id": transactional_id}
        )
        self.producer.init_transactions(30)
        self.producer.begin_transaction()
        for value in (b"1", b"2", b"3"):
            self.producer.produce(TOPIC, value, partition=0)
        assert self.producer.flush(30) == 0
        other = Producer({"bootstrap.servers": self.servers})
        other.produce(TOPIC, b"of another producer", partition=0)
        assert other.flush(30) == 0


def read_committed(broker: ConsoleBroker, count: int) -> list[bytes]:
    """The next records of the topic, as a consumer of committed records gets them."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.process.bootstrap,
            "group.id": "readers",
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        }
    )
    consumer.subscribe([TOPIC])
    try:
        return [message.value() for message in consumer.consume(count, timeout=30)]
    finally:
        consumer.close()


def producers_of(console: ConsoleClient) -> dict[str, object]:
    view = console.get(f"/topics/{TOPIC}/partitions/0/producers")
    assert (view["lastStableOffset"], view["highWatermark"], view["heldBackRecords"]) == (0, 4, 4)
    found = view["producers"][0]
    assert (found["transactionStartOffset"], found["heldBackRecords"]) == (0, 4)
    assert found["transactionStartMs"] > 1_600_000_000_000
    return dict(found)


def abort(console: ConsoleClient, producer: dict[str, object], **changed: object) -> object:
    names = ("producerId", "producerEpoch", "transactionStartOffset")
    wanted = {**{name: producer[name] for name in names}, **changed}
    answer = console.ask("POST", f"/topics/{TOPIC}/partitions/0/abort", wanted)
    return answer.error if answer.status >= 400 else answer.body["endedBy"]


def test_a_transaction_is_found_and_aborted_by_its_coordinator(
    broker: ConsoleBroker, console: ConsoleClient
) -> None:
    client = Client(broker)
    first, second = console.get(f"/topics/{TOPIC}")["partitions"]
    assert (first["openTransactions"], second["openTransactions"]) == (1, 0)
    (transaction,) = console.get("/transactions", openOnly="true")["transactions"]
    assert (transaction["transactionalId"], transaction["state"]) == ("shop", "Ongoing")
    assert transaction["partitions"] == [
        {"topic": TOPIC, "partition": 0, "startOffset": 0, "heldBackRecords": 4}
    ]
    assert "its producer ends it, or the broker aborts it after" in transaction["ends"]
    producer = producers_of(console)
    assert (producer["transactionalId"], producer["isHanging"]) == ("shop", False)
    assert transaction["startedMs"] == producer["transactionStartMs"]
    assert 0 <= transaction["runningMs"] <= transaction["timeoutMs"]
    assert abort(console, producer, transactionStartOffset=1) == (409, "CONFLICT")
    assert abort(console, producer) == "coordinator"
    assert read_committed(broker, 1) == [b"of another producer"]
    with pytest.raises(KafkaException, match="fenced"):
        client.producer.commit_transaction(30)
    assert console.get("/transactions", openOnly="true")["total"] == 0
    (ended,) = console.get("/transactions", search="SHO")["transactions"]
    assert ended["state"] == "Empty"
    assert (ended["startedMs"], ended["runningMs"], ended["ends"]) == (None, None, None)
    assert console.get("/transactions", search="shoe")["total"] == 0
    assert abort(console, producer) == (409, "CONFLICT")


def test_a_transactional_id_is_terminated_everywhere(
    broker: ConsoleBroker, console: ConsoleClient
) -> None:
    client = Client(broker)
    client.producer.produce(TOPIC, b"4", partition=1)
    client.producer.flush(30)
    console.post("/transactions/terminate", {"transactionalId": "shop"})
    stable = [each["lastStableOffset"] for each in console.get(f"/topics/{TOPIC}")["partitions"]]
    assert stable == [5, 2]  # an abort marker each
    again = console.ask("POST", "/transactions/terminate", {"transactionalId": "shop"})
    assert again.error == (409, "CONFLICT")
    unknown = console.ask("POST", "/transactions/terminate", {"transactionalId": "nobody"})
    assert unknown.error == (404, "TRANSACTIONAL_ID_NOT_FOUND")


def test_a_hanging_transaction_is_found_and_ended_by_a_marker(
    broker: ConsoleBroker, console: ConsoleClient
) -> None:
    Client(broker)
    console.delete(f"/topics/{STATES}", {"confirm": STATES})  # its coordinator forgets it
    (transaction,) = console.get("/transactions", search="orders")["transactions"]
    assert (transaction["transactionalId"], transaction["state"]) == (None, "Hanging")
    assert transaction["partitions"][0]["heldBackRecords"] == 4
    assert "nobody will end it" in transaction["ends"]
    producer = producers_of(console)
    assert (producer["transactionalId"], producer["isHanging"]) == (None, True)
    assert transaction["startedMs"] == producer["transactionStartMs"]
    assert (transaction["runningMs"] >= 0, transaction["timeoutMs"]) == (True, None)
    assert abort(console, producer) == "marker"
    assert read_committed(broker, 1) == [b"of another producer"]
    assert console.get("/transactions")["total"] == 0


def test_only_a_marker_is_written_if_that_is_wanted(
    broker: ConsoleBroker, console: ConsoleClient
) -> None:
    Client(broker)
    assert abort(console, producers_of(console), markerOnly=True) == "marker"
    assert read_committed(broker, 1) == [b"of another producer"]
    (transaction,) = console.get("/transactions")["transactions"]
    assert transaction["state"] == "Ongoing"  # the coordinator was not asked
    assert transaction["partitions"][0]["startOffset"] is None


def test_producers_come_in_pages_with_open_transactions_first(
    broker: ConsoleBroker, console: ConsoleClient
) -> None:
    servers = Client(broker).servers
    path = f"/topics/{TOPIC}/partitions/0/producers"
    for number in range(2):
        idle = Producer({"bootstrap.servers": servers, "enable.idempotence": True})
        idle.produce(TOPIC, b"5", partition=0, timestamp=1_000_000_000_000 + number)
        assert idle.flush(30) == 0
    shown = console.get(path)["producers"]
    assert shown[0]["transactionalId"] == "shop"
    times = [each["lastTimestampMs"] for each in shown[1:]]
    assert times == [1_000_000_000_001, 1_000_000_000_000]
    for first, expected in enumerate(shown):
        page = console.get(path, **{"from": first, "limit": 1})
        assert (page["total"], page["producers"]) == (3, [expected])
    assert console.get(path, **{"from": 3}) == {**page, "producers": []}
    assert console.ask("GET", path, limit=1001).error == (400, "BAD_REQUEST")


def test_the_oldest_transaction_comes_first(broker: ConsoleBroker, console: ConsoleClient) -> None:
    clients = [Client(broker, name) for name in ("z", "b", "a")]
    clients[1].producer.commit_transaction(30)

    def ids() -> list[str]:
        found = console.get("/transactions")["transactions"]
        return [each["transactionalId"] for each in found]

    wait_until(lambda: console.get("/transactions", openOnly="true")["total"] == 2)
    assert ids() == ["z", "a", "b"]
