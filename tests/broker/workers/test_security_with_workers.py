"""TLS, logins and ACLs with workers: what is changed at run time holds in all processes."""

import base64
import uuid
from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
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

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from odradek.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.support.broker_with_workers import (
    PARTITIONS,
    BrokerWithWorkers,
    free_base,
    new_topic,
)
from tests.support.certificates import TlsFiles
from tests.support.sasl import (
    PLAIN_MODULE,
    SCRAM_MODULE,
    LoginRefusedError,
    log_in_by_plain,
    log_in_by_scram,
)
from tests.support.wire import WireClient

pytestmark = pytest.mark.slow

ALICE = "alice-secret"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> TlsFiles:
    return TlsFiles(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def tls_port() -> int:
    return free_base(2)


@pytest.fixture(scope="module")
def broker(
    tmp_path_factory: pytest.TempPathFactory, files: TlsFiles, tls_port: int
) -> Iterator[BrokerWithWorkers]:
    made = BrokerWithWorkers(tmp_path_factory.mktemp("secured"))
    for key in ("listeners", "advertised.listeners"):
        addresses = made.settings[key].replace("PLAINTEXT:", "SASL_PLAINTEXT:")
        made.settings[key] = f"{addresses},SSL://127.0.0.1:{tls_port}"
    prefix = "listener.name.sasl_plaintext"
    made.settings |= {
        **files.broker_settings(),
        "inter.broker.listener.name": "SASL_PLAINTEXT",
        "delegation.token.secret.key": "key",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        f"{prefix}.plain.sasl.jaas.config": f'{PLAIN_MODULE} required user_admin="admin-secret";',
        f"{prefix}.scram-sha-256.sasl.jaas.config": f"{SCRAM_MODULE} required;",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin;User:ANONYMOUS",  # ANONYMOUS: a client of the TLS listener
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


def test_a_new_user_logs_in_at_a_worker_and_writes_while_an_acl_lets_him(
    broker: BrokerWithWorkers, admin: AdminClient
) -> None:
    topic = new_topic(admin, str(uuid.uuid4()))
    allow(admin, topic, AclOperation.DESCRIBE)
    alice = login(broker, "alice", ALICE, node=1)
    # A producer remembers the refusal for a while.
    assert codes_of_writes(Producer(alice), topic) == {KafkaError.TOPIC_AUTHORIZATION_FAILED}
    allow(admin, topic, AclOperation.WRITE)
    producer = Producer(alice)
    assert codes_of_writes(producer, topic) == {None}
    rule = AclBindingFilter(
        ResourceType.TOPIC,
        topic,
        ResourcePatternType.LITERAL,
        "User:alice",
        "*",
        AclOperation.WRITE,
        AclPermissionType.ANY,
    )
    admin.delete_acls([rule])[rule].result(30)
    assert codes_of_writes(producer, topic) == {KafkaError.TOPIC_AUTHORIZATION_FAILED}


def test_a_forwarded_request_is_authorized_as_its_client(
    broker: BrokerWithWorkers, admin: AdminClient
) -> None:
    assert admin is not None  # alice exists
    name = str(uuid.uuid4())
    alice = AdminClient(login(broker, "alice", ALICE, node=1))
    with pytest.raises(KafkaException) as refused:
        alice.create_topics([NewTopic(name, 1, 1)])[name].result(30)
    assert refused.value.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED


def test_clients_are_sent_to_the_tls_listener_of_each_worker(
    broker: BrokerWithWorkers, admin: AdminClient, files: TlsFiles, tls_port: int
) -> None:
    topic = new_topic(admin, str(uuid.uuid4()))
    encrypted = {
        "bootstrap.servers": f"127.0.0.1:{tls_port}",
        "security.protocol": "SSL",
        "ssl.ca.location": str(files.ca),
    }
    assert codes_of_writes(Producer(encrypted), topic) == {None}


def test_a_new_delegation_token_is_a_login_at_a_worker(broker: BrokerWithWorkers) -> None:
    request = CreateDelegationTokenRequest(renewers=[], max_lifetime_ms=-1)
    with WireClient(broker.port_of(2)) as owner:
        log_in_by_plain(owner, "admin", "admin-secret")
        token = owner.ask(request, CreateDelegationTokenResponse, 3)
        password = base64.b64encode(token.hmac).decode()
        with WireClient(broker.port_of(1)) as client:
            log_in_by_scram(client, "SCRAM-SHA-256", token.token_id, password, ",tokenauth=true")
            assert client.ask(MetadataRequest(topics=[]), MetadataResponse, 12).brokers
            # A token makes no tokens, also where the request is forwarded.
            refused = client.ask(request, CreateDelegationTokenResponse, 3)
        assert refused.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        expiry = ExpireDelegationTokenRequest(hmac=token.hmac, expiry_time_period_ms=-1)
        assert owner.ask(expiry, ExpireDelegationTokenResponse, 2).error_code == ErrorCode.NONE
    with WireClient(broker.port_of(1)) as client, pytest.raises(LoginRefusedError):
        log_in_by_scram(client, "SCRAM-SHA-256", token.token_id, password, ",tokenauth=true")


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
