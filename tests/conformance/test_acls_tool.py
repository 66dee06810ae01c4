"""kafka-acls grants and revokes what clients may do, on odradek and on Apache Kafka."""

from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

from tests.conformance.conversation import patiently
from tests.support.java_tools import JavaTools
from tests.support.kafka_answers import BROKERS
from tests.support.lengths import only_long
from tests.support.secured_broker import PASSWORD, SecuredBroker, secured_broker
from tests.support.topics import create_topic

pytestmark = [
    pytest.mark.java,
    pytest.mark.slow,
    only_long("entries are in force in tools/test_security_commands.py"),
]

TOPIC, GROUP = "acl-topic", "acl-group"
LIMIT_S = 30.0


@pytest.fixture(scope="module", params=BROKERS)
def secured(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SecuredBroker]:
    directory = tmp_path_factory.mktemp("secured")
    with secured_broker(request.param, directory, tls=False) as broker:
        create_topic(broker.plain_servers, TOPIC)
        yield broker


@pytest.fixture
def acls(java: JavaTools, secured: SecuredBroker) -> Callable[..., str]:
    """The tool, as the administrator runs it."""
    file = secured.client_file("admin", PASSWORD)
    servers = ("--bootstrap-server", secured.sasl_servers, "--command-config", str(file))
    return lambda *words: java.run("AclCommand", *servers, *words)


def as_alice(secured: SecuredBroker, **settings: str) -> dict[str, str]:
    return {
        "bootstrap.servers": secured.sasl_servers,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "alice",
        "sasl.password": "alice-secret",
        **settings,
    }


def produced(secured: SecuredBroker) -> KafkaError | None:
    """The error with which a record of alice comes back, or None."""
    results: list[KafkaError | None] = []
    producer = Producer(as_alice(secured))
    producer.produce(TOPIC, b"x", on_delivery=lambda error, _: results.append(error))
    assert producer.flush(LIMIT_S) == 0
    return results[0]


def consumed(secured: SecuredBroker) -> int | None:
    """The code of the error with which alice's consumer ends, or None when it gets a record."""
    settings = {"group.id": GROUP, "auto.offset.reset": "earliest"}
    consumer = Consumer(as_alice(secured, **settings))
    try:
        consumer.subscribe([TOPIC])
        message = consumer.poll(LIMIT_S)
        assert message is not None
        return None if message.error() is None else message.error().code()
    except KafkaException as error:
        return int(error.args[0].code())
    finally:
        consumer.close()


def test_a_client_may_do_what_the_tool_has_granted(
    acls: Callable[..., str], secured: SecuredBroker
) -> None:
    refused = produced(secured)
    assert refused is not None
    assert refused.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    alice = ("--allow-principal", "User:alice")
    shown = acls("--add", *alice, "--producer", "--topic", TOPIC)
    assert "(principal=User:alice, host=*, operation=WRITE, permissionType=ALLOW)" in shown
    patiently(lambda: produced(secured) is None or None)

    assert consumed(secured) == KafkaError.GROUP_AUTHORIZATION_FAILED
    acls("--add", *alice, "--consumer", "--topic", TOPIC, "--group", GROUP)
    patiently(lambda: consumed(secured) is None or None)

    acls("--add", "--deny-principal", "User:alice", "--operation", "Write", "--topic", TOPIC)
    patiently(lambda: produced(secured) is not None or None)
    shown = acls("--list", "--topic", TOPIC)
    assert "operation=WRITE, permissionType=DENY" in shown
    for kind in (("--topic", TOPIC), ("--group", GROUP)):
        acls("--remove", "--force", *kind)
    assert "User:alice" not in acls("--list")
    patiently(lambda: consumed(secured) == KafkaError.GROUP_AUTHORIZATION_FAILED or None)
