"""What the views say to a user who may see or change only a part."""

from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from odradek.broker.testing.broker import Broker
from tests.support.console_client import ConsoleClient

from .conftest import Allow

pytestmark = pytest.mark.slow

PARTITION = "/topics/orders/partitions/0"


def refused_changes(view: dict[str, Any]) -> set[str]:
    """The fields of a view that say what the client may do, and are false."""
    return {name for name, value in view.items() if name.startswith("may") and not value}


def begin_transaction(broker: Broker) -> Producer:
    """Begin the transaction "pay" with a record in `orders`."""
    settings = broker.client_settings("confluent-kafka")
    producer = Producer({**settings, "transactional.id": "pay"})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce("orders", b"x")
    assert producer.flush(60) == 0
    return producer


def test_a_topic_says_what_the_client_may_do_with_it(allow: Allow, nobody: ConsoleClient) -> None:
    allow("DESCRIBE", "TOPIC", "orders")
    refused = {"mayChange", "mayWrite", "mayDelete", "mayAlterConfigs"}
    assert refused_changes(nobody.get("/topics/orders")) == refused
    for operation, field in (
        ("ALTER", "mayChange"),
        ("WRITE", "mayWrite"),
        ("DELETE", "mayDelete"),
        ("ALTER_CONFIGS", "mayAlterConfigs"),
    ):
        allow(operation, "TOPIC", "orders")
        refused -= {field}
        assert refused_changes(nobody.get("/topics/orders")) == refused


def test_an_open_transaction_says_whether_the_client_may_abort_it(
    secure_broker: Broker, allow: Allow, nobody: ConsoleClient
) -> None:
    begin_transaction(secure_broker)
    allow("READ", "TOPIC", "orders")
    allow("DESCRIBE", "TRANSACTIONAL_ID", "pay")
    [shown] = nobody.get(f"{PARTITION}/producers")["producers"]
    [listed] = nobody.get("/transactions")["transactions"]
    assert (shown["mayAbort"], listed["mayAbort"]) == (False, False)
    names = ("producerId", "producerEpoch", "transactionStartOffset")
    body = {name: shown[name] for name in names}
    refused = nobody.ask("POST", f"{PARTITION}/abort", body).error
    assert refused == (403, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED")
    allow("WRITE", "TRANSACTIONAL_ID", "pay")
    [shown] = nobody.get(f"{PARTITION}/producers")["producers"]
    [listed] = nobody.get("/transactions")["transactions"]
    assert (shown["mayAbort"], listed["mayAbort"]) == (True, True)
    assert nobody.post(f"{PARTITION}/abort", body) == {"endedBy": "coordinator"}
    [shown] = nobody.get(f"{PARTITION}/producers")["producers"]
    [listed] = nobody.get("/transactions")["transactions"]
    assert (shown["mayAbort"], listed["mayAbort"]) == (False, False)


def test_rules_users_and_quotas_say_whether_the_client_may_change_them(
    allow: Allow, nobody: ConsoleClient
) -> None:
    views = {"/acls": "ALTER", "/users": "ALTER", "/quotas": "ALTER_CONFIGS"}
    for operation in ("DESCRIBE", "DESCRIBE_CONFIGS"):
        allow(operation, "CLUSTER", "kafka-cluster")
    assert [nobody.get(path)["mayChange"] for path in views] == [False, False, False]
    allow("ALTER_CONFIGS", "CLUSTER", "kafka-cluster")
    assert [nobody.get(path)["mayChange"] for path in views] == [False, False, True]
    allow("ALTER", "CLUSTER", "kafka-cluster")
    assert [nobody.get(path)["mayChange"] for path in views] == [True, True, True]


def test_settings_and_directories_are_shown_to_those_who_may_describe_them(
    allow: Allow, nobody: ConsoleClient
) -> None:
    def settings() -> list[object]:
        [listed] = nobody.get("/topics")["topics"]
        view = nobody.get(f"{PARTITION}/segments")
        [segment] = view["segments"]
        shown = [listed["cleanupPolicy"], (view["config"] or {}).get("retentionMs"), segment["why"]]
        return [each is not None for each in shown]

    def directories() -> list[object]:
        [partition] = nobody.get("/topics/orders")["partitions"]
        shown = [partition["directory"], nobody.get(f"{PARTITION}/segments")["directory"]]
        return [each is not None for each in shown]

    allow("DESCRIBE", "TOPIC", "orders")
    assert (settings(), directories()) == ([False] * 3, [False] * 2)
    allow("DESCRIBE_CONFIGS", "TOPIC", "orders")
    assert (settings(), directories()) == ([True] * 3, [False] * 2)
    interval = "retentionCheckIntervalMs"
    assert nobody.get(f"{PARTITION}/segments")["config"][interval] is None
    allow("DESCRIBE", "CLUSTER", "kafka-cluster")
    assert (settings(), directories()) == ([True] * 3, [True] * 2)
    allow("DESCRIBE_CONFIGS", "CLUSTER", "kafka-cluster")
    assert nobody.get(f"{PARTITION}/segments")["config"][interval] > 0


def test_the_producer_that_holds_a_group_back_is_shown_to_those_who_may_read_the_topic(
    secure_broker: Broker, allow: Allow, nobody: ConsoleClient
) -> None:
    consumer = Consumer({**secure_broker.client_settings("confluent-kafka"), "group.id": "readers"})
    consumer.commit(offsets=[TopicPartition("orders", 0, 0)], asynchronous=False)
    consumer.close()
    producer = begin_transaction(secure_broker)
    allow("DESCRIBE", "GROUP", "readers")
    allow("DESCRIBE", "TOPIC", "orders")

    def held_back() -> tuple[dict[str, Any], int | None]:
        [offset] = nobody.get("/groups/readers")["offsets"]
        [partition] = nobody.get("/topics/orders")["partitions"]
        assert offset["waitsFor"]
        return offset["holding"], partition["openTransactions"]

    holding, count = held_back()
    assert (holding["producerId"], holding["producerEpoch"], count) == (None, None, None)
    assert holding["heldBackRecords"] == 1
    allow("READ", "TOPIC", "orders")
    holding, count = held_back()
    assert (holding["producerId"] >= 0, holding["producerEpoch"] >= 0, count) == (True, True, 1)
    producer.abort_transaction(60)
