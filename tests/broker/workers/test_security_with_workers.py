"""Logins and ACLs with workers: what is changed at run time holds in all processes."""

import uuid
from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from tests.support.broker_with_workers import PARTITIONS, BrokerWithWorkers, new_topic
from tests.support.sasl import PLAIN_MODULE, SCRAM_MODULE

pytestmark = pytest.mark.slow

ALICE = "alice-secret"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerWithWorkers]:
    made = BrokerWithWorkers(tmp_path_factory.mktemp("secured"))
    for key in ("listeners", "advertised.listeners"):
        made.settings[key] = made.settings[key].replace("PLAINTEXT:", "SASL_PLAINTEXT:")
    prefix = "listener.name.sasl_plaintext"
    made.settings |= {
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        f"{prefix}.plain.sasl.jaas.config": f'{PLAIN_MODULE} required user_admin="admin-secret";',
        f"{prefix}.scram-sha-256.sasl.jaas.config": f"{SCRAM_MODULE} required;",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin",
    }
    made.start()
    yield made
    assert made.terminate() == 0
    assert made.crashes_in_log() == []


def login(broker: BrokerWithWorkers, user: str, password: str, node: int = 0) -> dict[str, str]:
    mechanism = "PLAIN" if user == "admin" else "SCRAM-SHA-256"
    return {
        "bootstrap.servers": broker.bootstrap_of(node),
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": user,
        "sasl.password": password,
    }


@pytest.fixture(scope="module")
def admin(broker: BrokerWithWorkers) -> AdminClient:
    made = AdminClient(login(broker, "admin", "admin-secret"))
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
    upsertion = UserScramCredentialUpsertion("alice", info, ALICE.encode())
    made.alter_user_scram_credentials([upsertion])["alice"].result(30)
    return made


def codes_of_writes(producer: Producer, topic: str) -> set[int | None]:
    """What is answered to a record in each partition, so by each worker."""
    errors: list[KafkaError | None] = []
    for index in range(PARTITIONS):
        producer.produce(topic, "x", partition=index, on_delivery=lambda e, _: errors.append(e))
    assert producer.flush(30) == 0
    return {error and error.code() for error in errors}


def test_a_new_user_logs_in_at_a_worker_and_an_acl_lets_him_write(
    broker: BrokerWithWorkers, admin: AdminClient
) -> None:
    topic = new_topic(admin, str(uuid.uuid4()))
    allow(admin, topic, AclOperation.DESCRIBE)
    alice = login(broker, "alice", ALICE, node=1)
    # A producer remembers the refusal for a while.
    assert codes_of_writes(Producer(alice), topic) == {KafkaError.TOPIC_AUTHORIZATION_FAILED}
    allow(admin, topic, AclOperation.WRITE)
    assert codes_of_writes(Producer(alice), topic) == {None}


def test_a_forwarded_request_is_authorized_as_its_client(
    broker: BrokerWithWorkers, admin: AdminClient
) -> None:
    assert admin is not None  # alice exists
    name = str(uuid.uuid4())
    alice = AdminClient(login(broker, "alice", ALICE, node=1))
    with pytest.raises(KafkaException) as refused:
        alice.create_topics([NewTopic(name, 1, 1)])[name].result(30)
    assert refused.value.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED


def allow(admin: AdminClient, topic: str, operation: AclOperation) -> None:
    binding = AclBinding(
        ResourceType.TOPIC,
        topic,
        ResourcePatternType.LITERAL,
        "User:alice",
        "*",
        operation,
        AclPermissionType.ALLOW,
    )
    admin.create_acls([binding])[binding].result(30)
