"""The secure broker that users' tests get, with each client library that they use."""

import asyncio
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError as AioKafkaError
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from kafka import KafkaProducer
from typer.testing import CliRunner

from odradek.broker.testing import Broker, BrokerError
from odradek.tools.app import app
from tests.support.java_tools import JavaTools

pytestmark = pytest.mark.slow

LIMIT_S = 100.0


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with Broker(tmp_path_factory.mktemp("broker"), secure=True) as broker:
        yield broker


@pytest.fixture
def broker(shared: Broker) -> Broker:
    shared.reset()
    return shared


def values(broker: Broker) -> list[bytes | None]:
    return [record.value for record in broker.records("orders")]


def send(broker: Broker, user: str | None = None) -> object:
    """Send a record with librdkafka; the error, or None."""
    errors: list[object] = []
    settings = broker.client_settings("confluent-kafka", user)
    producer = Producer({**settings, "log_level": 0, "message.timeout.ms": 5000})
    producer.produce("orders", b"coffee", on_delivery=lambda error, _: errors.append(error))
    producer.flush(LIMIT_S)
    (error,) = errors
    return error


def allow_writing(broker: Broker, user: str) -> None:
    admin = AdminClient({**broker.client_settings("confluent-kafka"), "log_level": 0})
    binding = AclBinding(
        ResourceType.TOPIC,
        "orders",
        ResourcePatternType.LITERAL,
        f"User:{user}",
        "*",
        AclOperation.WRITE,
        AclPermissionType.ALLOW,
    )
    for future in admin.create_acls([binding]).values():
        future.result(LIMIT_S)


def test_each_library_gets_its_settings(broker: Broker) -> None:
    broker.create_topic("orders")
    assert send(broker) is None
    producer = KafkaProducer(**broker.client_settings("kafka-python"))
    producer.send("orders", b"tea").get(LIMIT_S)
    producer.close()

    async def send_with_aiokafka() -> None:
        async with AIOKafkaProducer(**broker.client_settings("aiokafka")) as asynchronous:
            await asynchronous.send_and_wait("orders", b"water")

    asyncio.run(send_with_aiokafka())
    assert values(broker) == [b"coffee", b"tea", b"water"]


@pytest.mark.java
def test_javas_tools_get_theirs(broker: Broker, java: JavaTools, tmp_path: Path) -> None:
    broker.create_topic("orders")
    settings = broker.client_settings("java")
    file = tmp_path / "client.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    server = ("--bootstrap-server", broker.bootstrap_servers)
    assert "orders" in java.run("TopicCommand", *server, "--command-config", str(file), "--list")
    done = CliRunner().invoke(app, ["topics", "list", "--config", str(file)])
    assert "orders" in done.stdout


def test_a_user_may_do_what_acls_allow(broker: Broker) -> None:
    broker.create_topic("orders")
    broker.add_user("alice")
    assert "TOPIC_AUTHORIZATION_FAILED" in str(send(broker, "alice"))
    allow_writing(broker, "alice")
    assert send(broker, "alice") is None
    assert values(broker) == [b"coffee"]


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")  # aiokafka, when it is refused
def test_strangers_and_wrong_passwords_are_refused(broker: Broker) -> None:
    settings = broker.client_settings("aiokafka")

    async def connect(**changed: object) -> None:
        producer = AIOKafkaProducer(**{**settings, **changed})
        try:
            await producer.start()
        finally:
            await producer.stop()

    for changed in ({"sasl_plain_password": "wrong"}, {"security_protocol": "PLAINTEXT"}):
        with pytest.raises((AioKafkaError, ValueError)):
            asyncio.run(connect(**changed))
    untrusted = {**broker.client_settings("confluent-kafka"), "log_level": 0}
    del untrusted["ssl.ca.location"]
    with pytest.raises(KafkaException):
        AdminClient(untrusted).list_topics(timeout=2)


def test_a_reset_removes_users_acls_quotas_and_tokens(broker: Broker) -> None:
    broker.create_topic("orders")
    broker.add_user("alice")
    allow_writing(broker, "alice")
    run = CliRunner()
    file = broker.log_file.with_name("client.properties")
    settings = broker.client_settings("java")
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    client = ["--config", str(file)]
    for words in (
        ["quotas", "set", "producer_byte_rate=1", "--default-user"],
        ["tokens", "create"],
    ):
        done = run.invoke(app, [*words, *client])
        assert done.exit_code == 0, done.stderr
    broker.reset()
    for group, count in (("users", 2), ("acls", 0), ("quotas", 0), ("tokens", 0)):
        shown = run.invoke(app, [group, "list", "--json", *client]).stdout
        assert shown.count("{\n") == count, shown  # both mechanisms of admin
    with pytest.raises(BrokerError, match="there is no user alice"):
        broker.client_settings("java", "alice")
    broker.create_topic("orders")
    assert send(broker) is None


def test_users_and_certificates_stay_when_it_is_killed(broker: Broker) -> None:
    broker.create_topic("orders")
    broker.add_user("alice", "secret of alice")
    allow_writing(broker, "alice")
    before = broker.client_settings("confluent-kafka", "alice")
    broker.kill_and_restart()
    assert broker.client_settings("confluent-kafka", "alice") == before
    assert send(broker, "alice") is None


def test_what_clients_change_of_users_stays_when_it_is_killed_until_the_reset(
    broker: Broker,
) -> None:
    broker.create_topic("orders")
    broker.add_user("alice")
    admin = AdminClient({**broker.client_settings("confluent-kafka"), "log_level": 0})
    new = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    changes = [
        UserScramCredentialDeletion("alice", ScramMechanism.SCRAM_SHA_512),
        UserScramCredentialUpsertion("admin", new, b"another password"),
    ]
    for changed in admin.alter_user_scram_credentials(changes).values():
        changed.result(LIMIT_S)
    broker.kill_and_restart()
    for user in ("alice", "admin"):
        settings = {**broker.client_settings("confluent-kafka", user), "log_level": 0}
        with pytest.raises(KafkaException):
            AdminClient(settings).list_topics(timeout=2)
    broker.reset()
    broker.create_topic("orders")
    assert send(broker) is None


def test_a_snapshot_has_its_users(broker: Broker) -> None:
    broker.add_user("alice")
    before = broker.client_settings("java", "alice")
    snapshot = broker.snapshot()
    broker.reset()
    broker.add_user("bob")
    broker.restore(snapshot)
    assert broker.client_settings("java", "alice") == before
    with pytest.raises(BrokerError, match="there is no user bob"):
        broker.client_settings("java", "bob")


def test_the_certificate_is_that_of_the_authority(broker: Broker) -> None:
    done = subprocess.run(
        [
            *["openssl", "s_client", "-connect", broker.bootstrap_servers, "-verify_return_error"],
            *["-CAfile", str(broker.certificate_authority), "-verify_ip", "127.0.0.1"],
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    assert b"Verify return code: 0 (ok)" in done.stdout


def test_a_broker_that_is_not_secure_has_settings_too_and_no_users() -> None:
    with Broker() as broker:
        assert broker.client_settings("java") == {"bootstrap.servers": broker.bootstrap_servers}
        assert broker.client_settings("aiokafka") == {"bootstrap_servers": broker.bootstrap_servers}
        for ask in (
            lambda: broker.client_settings("java", "alice"),
            lambda: broker.add_user("alice"),
            lambda: broker.certificate_authority,
        ):
            with pytest.raises(BrokerError, match="not secure"):
                ask()


def test_settings_of_the_test_win() -> None:
    with Broker(settings={"authorizer.class.name": ""}, secure=True) as broker:
        broker.create_topic("orders")
        broker.add_user("alice")
        assert send(broker, "alice") is None
