"""The groups of a broker whose clients log in, and may not see or change everything."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from tests.broker.console.groups.members import LOCK_MS, cook
from tests.support.broker_process import running
from tests.support.committing import commit
from tests.support.console_client import ConsoleClient, console_broker
from tests.support.metrics import http_port
from tests.support.secured_broker import PASSWORD, SecuredBroker
from tests.support.topics import create_topic

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    """A broker with topics and groups `seen` and `hidden`; alice may describe the first ones.

    Both groups have offsets in both topics.
    """
    broker = SecuredBroker("odradek", tmp_path_factory.mktemp("secured"), tls=False)
    broker.process.settings |= {
        "odradek.http.listener": "127.0.0.1:0",
        "odradek.console": "true",
        "connection.failed.authentication.delay.ms": "0",
    }
    with running(broker.process):
        for topic in ("seen", "hidden"):
            create_topic(broker.plain_servers, topic, 1)
        for group in ("seen", "hidden"):
            for topic in ("seen", "hidden"):
                commit(broker.process, group, topic, {0: 0})
        entries = [
            AclBinding(
                kind,
                "seen",
                ResourcePatternType.LITERAL,
                "User:alice",
                "*",
                AclOperation.DESCRIBE,
                AclPermissionType.ALLOW,
            )
            for kind in (ResourceType.TOPIC, ResourceType.GROUP)
        ]
        admin = AdminClient({"bootstrap.servers": broker.plain_servers})
        for result in admin.create_acls(entries).values():
            result.result()
        yield broker


def test_a_client_sees_the_groups_that_it_may_describe(secured: SecuredBroker) -> None:
    viewer = ConsoleClient(http_port(secured.process), "alice", "alice-secret")
    admin = ConsoleClient(http_port(secured.process), "admin", PASSWORD)
    for sort in ("name", "lag"):
        assert [each["partitions"] for each in admin.get("/groups", sort=sort)["groups"]] == [2, 2]
        [group] = viewer.get("/groups", sort=sort)["groups"]
        assert group["groupId"] == "seen"
        assert group["partitions"] == 1  # not that in the hidden topic
    view = viewer.get("/groups/seen")
    assert [each["topic"] for each in view["offsets"]] == ["seen"]
    assert not view["mayChange"]
    assert not view["mayDelete"]
    refused = (403, "GROUP_AUTHORIZATION_FAILED")
    assert viewer.ask("GET", "/groups/hidden").error == refused
    assert viewer.ask("GET", "/groups/absent").error == refused


def test_a_client_sees_no_topic_of_members_that_it_may_not_describe(
    secured: SecuredBroker,
) -> None:
    port = http_port(secured.process)
    consumer = Consumer({"bootstrap.servers": secured.plain_servers, "group.id": "seen"})
    consumer.subscribe(["seen", "hidden"])
    try:
        while not consumer.assignment():
            consumer.poll(0.1)
        for user, password, topics in (
            ("admin", PASSWORD, ["hidden", "seen"]),
            ("alice", "alice-secret", ["seen"]),
        ):
            [member] = ConsoleClient(port, user, password).get("/groups/seen")["members"]
            assert member["subscribed"] == topics
            assert sorted(each["topic"] for each in member["assignment"]) == topics
    finally:
        consumer.close()


def test_a_client_changes_only_what_it_may(secured: SecuredBroker) -> None:
    port = http_port(secured.process)
    viewer = ConsoleClient(port, "alice", "alice-secret")
    admin = ConsoleClient(port, "admin", PASSWORD)
    refused = (403, "GROUP_AUTHORIZATION_FAILED")
    for preview in (True, False):
        body = {"topic": "seen", "to": "latest", "preview": preview}
        assert viewer.ask("POST", "/groups/seen/offsets", body).error == refused
    assert viewer.ask("DELETE", "/groups/seen/offsets", {"topic": "seen"}).error == refused
    assert viewer.ask("DELETE", "/groups/seen", {"confirm": "seen"}).error == refused
    assert admin.get("/groups")["total"] == 2
    assert admin.get("/groups/seen")["mayDelete"]


def test_the_name_of_a_transaction_is_kept_from_others(secured: SecuredBroker) -> None:
    producer = Producer({"bootstrap.servers": secured.plain_servers, "transactional.id": "shop"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("seen", b"1")
    assert producer.flush(30) == 0
    port = http_port(secured.process)
    for user, password, name in (
        ("alice", "alice-secret", None),
        ("admin", PASSWORD, "shop"),
    ):
        offsets = ConsoleClient(port, user, password).get("/groups/seen", search="seen")["offsets"]
        assert offsets[0]["holding"]["transactionalId"] == name
        assert ("shop" in offsets[0]["waitsFor"]) == (name is not None)
        assert offsets[0]["holding"]["startedMs"] is not None
    producer.abort_transaction(30)


def test_the_settings_of_a_share_group_are_shown_to_those_who_may_describe_them(
    secured: SecuredBroker,
) -> None:
    port = http_port(secured.process)
    viewer = ConsoleClient(port, "alice", "alice-secret")
    admin = ConsoleClient(port, "admin", PASSWORD)

    def allow(operation: str, kind: str, name: str) -> None:
        acl = {"principal": "User:alice", "operation": operation, "permission": "ALLOW"}
        admin.post("/acls", {"acl": {**acl, "resourceType": kind, "resourceName": name}})

    create_topic(secured.plain_servers, "orders", 1)
    with cook(secured.process):
        allow("DESCRIBE", "TOPIC", "orders")
        allow("DESCRIBE", "GROUP", "cooks")
        assert viewer.get("/groups/cooks")["shareSettings"] is None
        allow("DESCRIBE_CONFIGS", "GROUP", "cooks")
        settings = viewer.get("/groups/cooks")["shareSettings"]
        assert settings["lockDurationMs"] == LOCK_MS
    admin.delete("/groups/cooks", {"confirm": "cooks"})


def test_a_console_that_only_reads(tmp_path: Path) -> None:
    with console_broker(tmp_path, {"odradek.console.read.only": "true"}) as broker:
        create_topic(broker.process.bootstrap, "t", 1)
        commit(broker.process, "readers", "t", {0: 0})
        view = broker.console.get("/groups/readers")
        assert not view["mayChange"]
        assert not view["mayDelete"]
        body = {"topic": "t", "to": "latest"}
        refused = (403, "FORBIDDEN")
        assert broker.console.ask("POST", "/groups/readers/offsets", body).error == refused
        answer = broker.console.ask("DELETE", "/groups/readers", {"confirm": "readers"})
        assert answer.error == refused
