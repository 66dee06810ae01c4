"""ACLs, users, quotas and tokens in the console, and what Kafka's clients see of them."""

import asyncio
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from kafka import KafkaAdminClient

from odradek.broker.lifecycle.running import start_broker
from odradek.broker.testing.broker import Broker
from odradek.config.broker_config import BrokerConfig
from odradek.coordinator.metadata.token_changes import NewToken
from tests.support.broker_process import free_ports
from tests.support.console_client import ConsoleClient

from .conftest import console_of

pytestmark = pytest.mark.slow

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
START_MS = 1_700_000_000_000
HOUR_MS = 3_600_000
ACL = {
    "principal": "User:nobody",
    "host": "*",
    "operation": "READ",
    "permission": "ALLOW",
    "resourceType": "TOPIC",
    "resourceName": "orders",
    "patternType": "PREFIXED",
}


def test_an_entry_is_added_found_and_deleted(
    secure_broker: Broker, admin: ConsoleClient, nobody: ConsoleClient
) -> None:
    secure_broker.create_topic("orders-1")
    assert nobody.get("/topics")["total"] == 0
    admin.post("/acls", {"acl": ACL})
    admin.post("/acls", {"acl": {**ACL, "resourceType": "GROUP", "resourceName": "g"}})
    page = admin.get("/acls", search="ORDERS")
    assert page == {
        "total": 1,
        "authorizer": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "mayChange": True,
        "acls": [ACL],
    }
    assert len(admin.get("/acls", limit=1)["acls"]) == 1
    assert nobody.get("/topics")["total"] == 1
    assert admin.delete("/acls", {"acl": {**ACL, "resourceName": "o"}}) == {"deleted": 0}
    assert admin.delete("/acls", {"acl": ACL}) == {"deleted": 1}
    assert nobody.get("/topics")["total"] == 0
    assert admin.get("/acls")["total"] == 1
    admin.delete("/acls", {"acl": {**ACL, "resourceType": "GROUP", "resourceName": "g"}})


@pytest.mark.parametrize(
    "change",
    [
        {"operation": "FLY"},
        {"permission": "PERHAPS"},
        {"resourceType": "topic"},
        {"patternType": "ANY"},
        {"patternType": "MATCH"},
        {"principal": "nobody"},
        {"resourceName": ""},
    ],
)
def test_an_entry_that_makes_no_sense_is_refused(
    admin: ConsoleClient, change: dict[str, str]
) -> None:
    assert admin.ask("POST", "/acls", {"acl": {**ACL, **change}}).status == 400
    assert admin.get("/acls")["total"] == 0


def test_a_filter_deletes_nothing(admin: ConsoleClient) -> None:
    admin.post("/acls", {"acl": ACL})
    refused = admin.ask("DELETE", "/acls", {"acl": {**ACL, "patternType": "ANY"}})
    assert refused.error == (400, "INVALID_REQUEST")
    assert admin.delete("/acls", {"acl": ACL}) == {"deleted": 1}


def test_without_an_authorizer_there_are_no_entries(console: ConsoleClient) -> None:
    page = console.get("/acls")
    assert (page["total"], page["authorizer"], page["mayChange"]) == (0, None, False)
    assert console.ask("POST", "/acls", {"acl": ACL}).error == (400, "SECURITY_DISABLED")


def test_a_new_user_logs_in_until_it_is_deleted(
    secure_broker: Broker, admin: ConsoleClient
) -> None:
    user = {"name": "new", "password": "pass, word=", "mechanism": "SCRAM-SHA-512"}
    admin.post("/users", user)
    found = admin.get("/users", search="NEW")["users"]
    mechanisms = [{"mechanism": "SCRAM-SHA-512", "iterations": 4096}]
    assert found == [{"name": "new", "mechanisms": mechanisms}]
    assert log_in_as(secure_broker, "new", "pass, word=") is not None
    assert console_of(secure_broker, "new", "pass, word=").get("/me")["principal"] == "User:new"
    admin.post("/users", {**user, "password": "other", "iterations": 5000})
    assert console_of(secure_broker, "new", "pass, word=").ask("GET", "/me").status == 401
    admin.delete("/users", {"name": "new", "mechanism": "SCRAM-SHA-512"})
    assert console_of(secure_broker, "new", "other").ask("GET", "/me").status == 401
    assert admin.get("/users", search="new")["total"] == 0


def log_in_as(broker: Broker, user: str, password: str) -> str | None:
    """Ask the broker for its cluster as a user, by Kafka's protocol."""
    settings = broker.client_settings("kafka-python")
    settings |= {"sasl_plain_username": user, "sasl_plain_password": password}
    client = KafkaAdminClient(**settings)
    try:
        found: str | None = client.describe_cluster()["cluster_id"]
        return found
    finally:
        client.close()


@pytest.mark.parametrize(
    "change",
    [
        {"password": ""},
        {"iterations": 4095},
        {"iterations": 10**9},
        {"mechanism": "PLAIN"},
        {"name": "ä"},
        {"name": ""},
    ],
)
def test_a_password_that_cannot_be_used_is_refused(
    admin: ConsoleClient, change: dict[str, object]
) -> None:
    user = {"name": "bad", "password": "p", "mechanism": "SCRAM-SHA-256", **change}
    assert admin.ask("POST", "/users", user).status == 400
    assert [each["name"] for each in admin.get("/users")["users"]] == ["admin", "nobody"]


def test_a_user_that_is_not_there_cannot_be_deleted(admin: ConsoleClient) -> None:
    refused = admin.ask("DELETE", "/users", {"name": "no", "mechanism": "SCRAM-SHA-256"})
    assert refused.error == (404, "RESOURCE_NOT_FOUND")


def test_a_quota_is_set_and_removed(console: ConsoleClient) -> None:
    entity = [{"type": "client-id", "name": "c"}, {"type": "user", "name": None}]
    limits = {"producer_byte_rate": 1000.0, "request_percentage": 12.5}
    console.put("/quotas", {"entity": entity, "set": limits})
    page = console.get("/quotas")
    assert page["total"] == 1
    assert sorted(page["quotas"][0]["entity"], key=lambda each: each["type"]) == entity
    assert page["quotas"][0]["values"] == limits
    console.put("/quotas", {"entity": entity, "remove": ["request_percentage"]})
    assert console.get("/quotas")["quotas"][0]["values"] == {"producer_byte_rate": 1000.0}
    assert console.get("/quotas", search="z")["total"] == 0


@pytest.mark.parametrize(
    "change",
    [
        {"entity": [{"type": "user", "name": "a"}]},
        {"entity": [], "set": {"producer_byte_rate": 1}},
        {"entity": [{"type": "planet", "name": "a"}], "set": {"producer_byte_rate": 1}},
        {"entity": [{"type": "user", "name": "a"}], "set": {"speed": 1}},
        {"entity": [{"type": "user", "name": "a"}], "set": {"producer_byte_rate": -1}},
    ],
)
def test_a_quota_that_makes_no_sense_is_refused(
    console: ConsoleClient, change: dict[str, object]
) -> None:
    assert console.ask("PUT", "/quotas", change).status == 400
    assert console.get("/quotas")["total"] == 0


async def test_tokens_are_shown_without_their_secrets(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    texts = {
        "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
            f'{PLAIN} user_ann="a" user_bob="b";'
        ),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "delegation.token.secret.key": "secret",
        "log.dirs": str(tmp_path),
        "odradek.http.listener": f"127.0.0.1:{port}",
        "odradek.console": "true",
    }
    running = await start_broker(BrokerConfig.from_texts(texts))
    try:
        broker = running.broker
        new = NewToken(
            token_id="t1",
            owner="User:ann",
            requester="User:ann",
            renewers=["User:carl"],
            max_lifetime_ms=HOUR_MS,
        )
        token = broker.controller.create_token(new, broker.security.token_rules, START_MS)
        of_ann = await asyncio.to_thread(ConsoleClient(port, "ann", "a").get, "/tokens")
        of_bob = await asyncio.to_thread(ConsoleClient(port, "bob", "b").get, "/tokens")
    finally:
        await running.stop()
    shown = {
        "tokenId": "t1",
        "owner": "User:ann",
        "requester": "User:ann",
        "issuedMs": START_MS,
        "expiresMs": token.expiration_timestamp,
        "maxTimestampMs": START_MS + HOUR_MS,
        "renewers": ["User:carl"],
    }
    assert of_ann == {"total": 1, "isEnabled": True, "tokens": [shown]}
    assert of_bob == {"total": 0, "isEnabled": True, "tokens": []}


def test_tokens_may_be_switched_off(console: ConsoleClient) -> None:
    assert console.get("/tokens") == {"total": 0, "isEnabled": False, "tokens": []}


def test_an_admin_client_sees_the_entry(secure_broker: Broker, admin: ConsoleClient) -> None:
    admin.post("/acls", {"acl": ACL})
    client = AdminClient(secure_broker.client_settings("confluent-kafka"))
    every = AclBindingFilter(
        ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY,
        AclPermissionType.ANY,
    )  # fmt: skip
    (entry,) = client.describe_acls(every).result()
    assert (entry.principal, entry.name, entry.operation) == (
        "User:nobody",
        "orders",
        AclOperation.READ,
    )
    admin.delete("/acls", {"acl": ACL})
