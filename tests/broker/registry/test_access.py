"""Logins and permissions, on brokers whose listeners require a login."""

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from odradek.broker.testing.broker import Broker
from tests.support.registry_client import RegistryClient

pytestmark = pytest.mark.slow

INT = {"schema": '"int"'}
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    settings = {"connection.failed.authentication.delay.ms": "0"}
    directory = tmp_path_factory.mktemp("secure")
    with Broker(directory, settings, secure=True, registry=True) as broker:
        for name in ("reader", "writer", "nobody"):
            broker.add_user(name, f"{name}'s")
        admin = AdminClient(broker.client_settings("confluent-kafka"))
        allow(admin, "reader", AclOperation.READ)
        allow(admin, "writer", AclOperation.READ)
        allow(admin, "writer", AclOperation.WRITE)
        yield broker


def allow(admin: AdminClient, user: str, operation: AclOperation) -> None:
    entry = AclBinding(
        ResourceType.TOPIC,
        "_schemas",
        ResourcePatternType.LITERAL,
        f"User:{user}",
        "*",
        operation,
        AclPermissionType.ALLOW,
    )
    for result in admin.create_acls([entry]).values():
        result.result()


def login(broker: Broker, user: str, password: str | None = None) -> RegistryClient:
    password = f"{user}'s" if password is None else password
    return RegistryClient(broker.registry_url, user, password)


def test_a_login_is_required(secure: Broker) -> None:
    reply = RegistryClient(secure.registry_url).ask("GET", "/subjects")
    assert (reply.status, reply.body) == (401, {"error_code": 401, "message": "Unauthorized"})


def test_the_browser_is_asked_for_a_name_and_a_password(secure: Broker) -> None:
    import urllib.error
    import urllib.request

    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(f"{secure.registry_url}/subjects", timeout=60)
    assert caught.value.headers["WWW-Authenticate"].startswith("Basic realm=")
    caught.value.close()


@pytest.mark.parametrize("password", ["wrong", "", "writer's"])
def test_a_wrong_password_is_refused(secure: Broker, password: str) -> None:
    assert login(secure, "reader").ask("GET", "/subjects").status == 200
    assert login(secure, "reader", password).ask("GET", "/subjects").status == 401


@pytest.mark.parametrize("user", ["stranger", "a" * 2000, "ä"])
def test_an_unknown_user_is_refused(secure: Broker, user: str) -> None:
    assert login(secure, user).ask("GET", "/subjects").status == 401


@pytest.mark.parametrize(
    "header", ["Basic", "Basic x", "Bearer x", "Basic " + base64.b64encode(b"name").decode()]
)
def test_a_login_of_another_form_is_refused(secure: Broker, header: str) -> None:
    found = RegistryClient(secure.registry_url).ask("GET", "/subjects", Authorization=header)
    assert found.status == 401


def test_the_permissions_on_the_topic_decide(secure: Broker) -> None:
    reader, writer, nobody = (login(secure, each) for each in ("reader", "writer", "nobody"))
    versions = "/subjects/s/versions"
    status, code, message = reader.refused("POST", versions, INT)
    assert (status, code) == (403, 40301)
    assert "User:reader may not WRITE the topic _schemas" in message
    assert writer.post(versions, INT)["id"] == 1
    for path in ("/subjects", versions, "/schemas/ids/1", "/config", "/mode", "/contexts"):
        assert reader.ask("GET", path).status == 200
        assert nobody.ask("GET", path).status == 403
    assert nobody.get("/") == {}
    assert reader.post("/subjects/s", INT)["id"] == 1
    assert reader.post("/compatibility/subjects/s/versions", INT)["is_compatible"]
    for method, path in (
        ("DELETE", "/subjects/s"),
        ("DELETE", f"{versions}/1"),
        ("PUT", "/config"),
        ("DELETE", "/config"),
        ("PUT", "/mode"),
        ("DELETE", "/mode"),
        ("DELETE", "/contexts/x"),
    ):
        assert reader.refused(method, path, {})[:2] == (403, 40301)


def test_a_changed_password_counts_at_once(secure: Broker) -> None:
    secure.add_user("reader", "new")
    assert login(secure, "reader").ask("GET", "/subjects").status == 401
    assert login(secure, "reader", "new").ask("GET", "/subjects").status == 200
    secure.add_user("reader", "reader's")


def test_the_users_of_plain_log_in_too(tmp_path: Path) -> None:
    settings = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{PLAIN} user_ann="s:ecret";',
        "connection.failed.authentication.delay.ms": "0",
    }
    with Broker(tmp_path, settings, registry=True) as broker:
        assert login(broker, "ann", "s:ecret").post("/subjects/s/versions", INT)["id"] == 1
        assert login(broker, "ann", "wrong").ask("GET", "/subjects").status == 401
