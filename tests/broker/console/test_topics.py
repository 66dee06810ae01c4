"""Topics in the console: the list, one topic, its settings and segments, and what it changes."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from tests.support.broker_process import against_apache_kafka, running
from tests.support.console_client import CONSOLE, ConsoleBroker, ConsoleClient, console_broker
from tests.support.metrics import http_port
from tests.support.secured_broker import PASSWORD, SecuredBroker
from tests.support.topics import create_topic

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(against_apache_kafka(), reason="odradek's own console"),
]

SEGMENT = {"segment.bytes": "1048576", "segment.ms": "3600000"}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleBroker]:
    """A broker whose cleaner is off, so that segments stay as they are."""
    settings = {"log.cleaner.enable": "false"}
    with console_broker(tmp_path_factory.mktemp("topics"), settings) as found:
        yield found


@pytest.fixture
def console(broker: ConsoleBroker) -> ConsoleClient:
    for topic in broker.console.get("/topics", internal="true")["topics"]:
        broker.console.delete(f"/topics/{topic['name']}", {"confirm": topic["name"]})
    return broker.console


def create(console: ConsoleClient, name: str, partitions: int = 1, **config: str) -> None:
    settings = {key.replace("_", "."): value for key, value in config.items()}
    console.post("/topics", {"name": name, "partitions": partitions, "config": settings})


def produce(broker: ConsoleBroker, topic: str, *values: bytes, timestamp: int = 0) -> None:
    producer = Producer({"bootstrap.servers": broker.process.bootstrap})
    for value in values:
        producer.produce(topic, value, key=b"key", partition=0, timestamp=timestamp)
        assert producer.flush(30) == 0


def names(console: ConsoleClient, **query: object) -> list[str]:
    return [topic["name"] for topic in console.get("/topics", **query)["topics"]]


def test_the_list_is_searched_sorted_and_paged(
    broker: ConsoleBroker, console: ConsoleClient
) -> None:
    create(console, "orders", 3)
    create(console, "Payments", 1)
    create(console, "bills.of.orders", 2)
    produce(broker, "bills.of.orders", b"1", b"2")
    produce(broker, "Payments", b"a longer value than the others, to have the largest size")
    assert names(console) == ["Payments", "bills.of.orders", "orders"]
    assert names(console, descending="true") == ["orders", "bills.of.orders", "Payments"]
    assert names(console, search="ORDER") == ["bills.of.orders", "orders"]
    assert names(console, sort="records", descending="true") == [
        "bills.of.orders",
        "Payments",
        "orders",
    ]
    assert names(console, sort="messagesIn") == ["orders", "Payments", "bills.of.orders"]
    assert names(console, sort="partitions") == ["Payments", "bills.of.orders", "orders"]
    assert names(console, sort="size", search="p") == ["Payments"]
    second = console.get("/topics", **{"from": 1, "limit": 1})
    assert (second["total"], [each["name"] for each in second["topics"]]) == (
        3,
        ["bills.of.orders"],
    )
    (bills,) = second["topics"]
    assert (bills["records"], bills["messagesIn"], bills["partitions"]) == (2, 2, 2)
    assert bills["sizeBytes"] == bills["bytesIn"] > 0
    assert (bills["cleanupPolicy"], bills["offlinePartitions"]) == ("delete", 0)
    console.delete("/topics/orders", {"confirm": "orders"})
    create(console, "another")
    assert names(console) == ["Payments", "another", "bills.of.orders"]
    assert names(console, sort="partitions") == ["Payments", "another", "bills.of.orders"]


def test_a_topic_is_validated_before_it_is_created(console: ConsoleClient) -> None:
    wanted = {"name": "new", "partitions": 4, "config": {"retention.ms": "5"}, "validateOnly": True}
    result = console.post("/topics", wanted)
    assert (result["partitions"], result["replicationFactor"], result["topicId"]) == (4, 1, None)
    sources = {each["name"]: (each["value"], each["source"]) for each in result["config"]}
    assert sources["retention.ms"] == ("5", "DYNAMIC_TOPIC_CONFIG")
    assert sources["segment.bytes"] == ("1073741824", "DEFAULT_CONFIG")
    assert names(console) == []
    wrong = {**wanted, "config": {"retention.ms": "soon"}}
    assert console.ask("POST", "/topics", wrong).error == (400, "INVALID_CONFIG")
    assert console.ask("POST", "/topics", {"name": "a b"}).error == (400, "INVALID_TOPIC_EXCEPTION")
    console.post("/topics", {**wanted, "validateOnly": False})
    assert console.ask("POST", "/topics", wanted).error == (409, "TOPIC_ALREADY_EXISTS")
    assert len(console.get("/topics/new")["partitions"]) == 4


def test_a_topic_grows_and_is_deleted_by_its_name(console: ConsoleClient) -> None:
    create(console, "t")
    console.post("/topics/t/partitions", {"total": 3, "validateOnly": True})
    assert len(console.get("/topics/t")["partitions"]) == 1
    console.post("/topics/t/partitions", {"total": 3})
    view = console.get("/topics/t")
    assert (view["mayChange"], [each["partition"] for each in view["partitions"]]) == (
        True,
        [0, 1, 2],
    )
    fewer = console.ask("POST", "/topics/t/partitions", {"total": 2})
    assert fewer.error == (400, "INVALID_PARTITIONS")
    assert console.ask("DELETE", "/topics/t", {"confirm": "T"}).error == (400, "BAD_REQUEST")
    console.delete("/topics/t", {"confirm": "t"})
    for path in ("", "/config", "/partitions/0/segments", "/partitions/0/producers"):
        error = console.ask("GET", f"/topics/t{path}").error
        assert error == (404, "UNKNOWN_TOPIC_OR_PARTITION"), path


def test_records_are_deleted_before_an_offset(
    broker: ConsoleBroker, console: ConsoleClient
) -> None:
    create(console, "t", 2)
    produce(broker, "t", b"1", b"2", b"3")
    answer = console.post("/topics/t/delete-records", {"offsets": {"0": 2, "1": -1, "7": 0}})
    assert answer == {
        "lowWatermarks": {"0": 2, "1": 0},
        "failures": [{"partition": 7, "error": "UNKNOWN_TOPIC_OR_PARTITION"}],
    }
    first = console.get("/topics/t")["partitions"][0]
    assert (first["logStartOffset"], first["logEndOffset"]) == (2, 3)
    too_far = console.ask("POST", "/topics/t/delete-records", {"offsets": {"0": 4}})
    assert too_far.error == (400, "OFFSET_OUT_OF_RANGE")


def test_settings_have_their_sources_and_are_edited(console: ConsoleClient) -> None:
    create(console, "t", retention_ms="1000")

    def setting(name: str) -> dict[str, object]:
        configs = console.get("/topics/t/config")["configs"]
        (found,) = (each for each in configs if each["name"] == name)
        return dict(found)

    retention = setting("retention.ms")
    assert (retention["value"], retention["source"]) == ("1000", "DYNAMIC_TOPIC_CONFIG")
    assert (retention["type"], retention["isReadOnly"]) == ("LONG", False)
    assert retention["documentation"]
    assert retention["synonyms"] == [
        {"name": "retention.ms", "value": "1000", "source": "DYNAMIC_TOPIC_CONFIG"},
        {"name": "log.retention.ms", "value": "-1", "source": "STATIC_BROKER_CONFIG"},
        {"name": "log.retention.hours", "value": "168", "source": "DEFAULT_CONFIG"},
    ]
    change = {"set": {"cleanup.policy": "compact"}, "remove": ["retention.ms"]}
    console.put("/topics/t/config", {**change, "validateOnly": True})
    assert setting("retention.ms") == retention
    console.put("/topics/t/config", change)
    assert setting("retention.ms")["source"] == "STATIC_BROKER_CONFIG"
    assert setting("cleanup.policy")["value"] == "compact"
    wrong = {"set": {"cleanup.policy": "both"}, "remove": []}
    assert console.ask("PUT", "/topics/t/config", wrong).error == (400, "INVALID_CONFIG")


def test_segments_say_why_they_are_still_there(
    broker: ConsoleBroker, console: ConsoleClient
) -> None:
    create(console, "t", retention_ms="86400000", cleanup_policy="compact,delete")
    value = bytes(700_000)
    console.put("/topics/t/config", {"set": SEGMENT})
    produce(broker, "t", value, value, value, timestamp=1_000_000_000_000)
    view = console.get("/topics/t/partitions/0/segments")
    assert (view["total"], view["logStartOffset"], view["logEndOffset"]) == (3, 0, 3)
    assert (view["config"]["retentionMs"], view["config"]["segmentBytes"]) == (86400000, 1048576)
    assert "log.cleaner.enable is false" in view["cleaning"]
    first, second, active = view["segments"]
    assert (first["baseOffset"], first["endOffset"], first["isActive"]) == (0, 1, False)
    assert first["newestTimestampMs"] == 1_000_000_000_000
    assert first["deletedBy"] == "retention.ms"
    assert first["why"].startswith("the next check deletes it: its newest record is of 2001-09-09")
    assert "it is dirty" in first["cleaning"]
    assert first["notCleanedBecause"] is None
    assert active["isActive"]
    assert active["notCleanedBecause"].startswith("it is the active segment")
    sizes = {each["name"]: each["sizeBytes"] for each in second["files"]}
    assert sizes["00000000000000000001.log"] == second["sizeBytes"]
    # The index of a closed segment has 12 bytes for each entry.
    assert sizes["00000000000000000001.timeindex"] == 12 * second["timeIndexEntries"] > 0
    console.put("/topics/t/config", {"set": {"retention.ms": "-1"}})
    page = console.get("/topics/t/partitions/0/segments", **{"from": 1, "limit": 1})
    assert (page["total"], [each["baseOffset"] for each in page["segments"]]) == (3, [1])
    assert "retention.ms is -1" in page["segments"][0]["why"]
    assert page["segments"][0]["deletedBy"] is None


def test_bad_requests_are_refused(console: ConsoleClient) -> None:
    for path in (
        "/topics?limit=1001",
        "/topics?from=-1",
        "/topics?sort=age",
        "/topics/t/partitions/x/segments",
    ):
        assert console.ask("GET", path).error == (400, "BAD_REQUEST"), path


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    """A broker with the topics `seen` and `hidden`. alice may describe the first one."""
    broker = SecuredBroker("odradek", tmp_path_factory.mktemp("secured"), tls=False)
    broker.process.settings |= {
        **CONSOLE,
        "connection.failed.authentication.delay.ms": "0",
    }
    with running(broker.process):
        for topic in ("seen", "hidden"):
            create_topic(broker.plain_servers, topic, 1)
        entry = AclBinding(
            ResourceType.TOPIC,
            "seen",
            ResourcePatternType.LITERAL,
            "User:alice",
            "*",
            AclOperation.DESCRIBE,
            AclPermissionType.ALLOW,
        )
        admin = AdminClient({"bootstrap.servers": broker.plain_servers})
        for result in admin.create_acls([entry]).values():
            result.result()
        yield broker


def test_a_client_sees_what_it_may_describe(secured: SecuredBroker) -> None:
    port = http_port(secured.process)
    viewer = ConsoleClient(port, "alice", "alice-secret")
    assert viewer.get("/topics")["total"] == 1
    assert names(viewer) == names(viewer, sort="size") == ["seen"]
    view = viewer.get("/topics/seen")
    assert (view["mayChange"], view["partitions"][0]["logEndOffset"]) == (False, 0)
    assert viewer.get("/topics/seen/partitions/0/segments")["total"] == 1
    refused = (403, "TOPIC_AUTHORIZATION_FAILED")
    for path in ("hidden", "absent", "hidden/partitions/0/segments", "seen/config"):
        assert viewer.ask("GET", f"/topics/{path}").error == refused, path
    assert viewer.ask("GET", "/topics/seen/partitions/0/producers").error == refused
    assert viewer.ask("POST", "/topics", {"name": "new"}).error == refused
    assert viewer.ask("DELETE", "/topics/seen", {"confirm": "seen"}).error == refused
    assert viewer.ask("POST", "/topics/seen/partitions", {"total": 2}).error == refused
    assert viewer.ask("PUT", "/topics/seen/config", {"set": {}}).error == refused
    emptied = viewer.ask("POST", "/topics/seen/delete-records", {"offsets": {"0": -1}})
    assert emptied.error == refused
    admin = ConsoleClient(port, "admin", PASSWORD)
    assert names(admin) == ["hidden", "seen"]
    assert admin.get("/topics/seen")["mayChange"]


def test_a_transaction_is_seen_and_ended_by_those_who_may(secured: SecuredBroker) -> None:
    producer = Producer({"bootstrap.servers": secured.plain_servers, "transactional.id": "shop"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("seen", b"1")
    assert producer.flush(30) == 0
    port = http_port(secured.process)
    admin = ConsoleClient(port, "admin", PASSWORD)
    viewer = ConsoleClient(port, "alice", "alice-secret")
    assert admin.get("/transactions")["total"] == 1
    assert viewer.get("/transactions")["total"] == 0
    body = {"transactionalId": "shop"}
    refused = viewer.ask("POST", "/transactions/terminate", body)
    assert refused.error == (403, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED")
    assert admin.post("/transactions/terminate", body) == {}


def test_a_console_that_only_reads(tmp_path: Path) -> None:
    settings = {"odradek.console.read.only": "true"}
    with console_broker(tmp_path, settings) as broker:
        create_topic(broker.process.bootstrap, "t", 1)
        assert broker.console.get("/topics/t")["mayChange"] is False
        for method, path, body in (
            ("POST", "/topics", {"name": "new"}),
            ("DELETE", "/topics/t", {"confirm": "t"}),
            ("PUT", "/topics/t/config", {"set": {}}),
            ("POST", "/topics/t/partitions", {"total": 2}),
            ("POST", "/topics/t/delete-records", {"offsets": {"0": -1}}),
            ("POST", "/transactions/terminate", {"transactionalId": "x"}),
        ):
            assert broker.console.ask(method, path, body).error == (403, "FORBIDDEN"), path
