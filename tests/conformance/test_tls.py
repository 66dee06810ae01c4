"""Real clients over TLS 1.2 and 1.3, with a certificate and without one."""

import asyncio
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import aiokafka
import confluent_kafka
import kafka
import pytest
from confluent_kafka.admin import AdminClient

from tests.support.certificates import PASSWORD, Authority, pkcs12_of
from tests.support.java_key_stores import java_key_store
from tests.support.java_tools import JavaTools
from tests.support.kafka_python import may_leave_a_socket
from tests.support.lengths import SEED, by_length
from tests.support.tls_broker import TLS_1_2, TLS_1_3, TlsBroker, tls_broker
from tests.support.topics import create_topic

pytestmark = may_leave_a_socket

VERSIONS = {"TLSv1.2": TLS_1_2, "TLSv1.3": TLS_1_3}
VALUES = [random.Random(SEED).randbytes(size) for size in (1, 1_000, 100_000, 900_000, 10)]
LIMIT_SECONDS = 60.0

Exchange = Callable[[TlsBroker, str, str, Path | None], list[bytes]]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsBroker]:
    listeners = {"SSL": {"ssl.client.auth": "requested"}, "MUTUAL": {"ssl.client.auth": "required"}}
    with tls_broker(tmp_path_factory.mktemp("tls"), listeners) as made:
        yield made


def by_kafka_python(
    broker: TlsBroker, listener: str, version: str, certificate: Path | None
) -> list[bytes]:
    context = broker.context(VERSIONS[version], certificate=certificate)
    settings = {
        "bootstrap_servers": f"127.0.0.1:{broker.ports[listener]}",
        "security_protocol": "SSL",
        "ssl_context": context,
    }
    topic = f"kafka-python-{listener}-{version}"
    producer = kafka.KafkaProducer(**settings)
    for value in VALUES:
        producer.send(topic, value)
    producer.flush()
    producer.close()
    consumer = kafka.KafkaConsumer(topic, auto_offset_reset="earliest", group_id=topic, **settings)
    values = [next(consumer).value for _ in VALUES]
    consumer.close()
    return values


def by_aiokafka(
    broker: TlsBroker, listener: str, version: str, certificate: Path | None
) -> list[bytes]:
    context = broker.context(VERSIONS[version], certificate=certificate)
    topic = f"aiokafka-{listener}-{version}"

    async def exchange() -> list[bytes]:
        settings = {
            "bootstrap_servers": f"127.0.0.1:{broker.ports[listener]}",
            "security_protocol": "SSL",
            "ssl_context": context,
        }
        async with aiokafka.AIOKafkaProducer(**settings) as producer:
            for value in VALUES:
                await producer.send_and_wait(topic, value)
        async with aiokafka.AIOKafkaConsumer(
            topic, auto_offset_reset="earliest", group_id=topic, **settings
        ) as consumer:
            return [(await consumer.getone()).value for _ in VALUES]

    return asyncio.run(asyncio.wait_for(exchange(), LIMIT_SECONDS))


def by_confluent_kafka(
    broker: TlsBroker, listener: str, version: str, certificate: Path | None
) -> list[bytes]:
    settings = {
        "bootstrap.servers": f"127.0.0.1:{broker.ports[listener]}",
        "security.protocol": "SSL",
        "ssl.ca.location": str(broker.files.ca),
    }
    if version == "TLSv1.2":
        settings["ssl.cipher.suites"] = "ECDHE-ECDSA-AES128-GCM-SHA256"
    if certificate is not None:
        settings["ssl.certificate.location"] = str(certificate)
        settings["ssl.key.location"] = str(certificate)
    topic = f"confluent-{listener}-{version}"
    producer = confluent_kafka.Producer(settings)
    for value in VALUES:
        producer.produce(topic, value)
    assert producer.flush(LIMIT_SECONDS) == 0
    consumer = confluent_kafka.Consumer(
        settings | {"group.id": topic, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    found = consumer.consume(len(VALUES), LIMIT_SECONDS)
    consumer.close()
    return [message.value() for message in found]


CLIENTS: dict[str, Exchange] = {
    "kafka-python": by_kafka_python,
    "aiokafka": by_aiokafka,
    "confluent-kafka": by_confluent_kafka,
}


@pytest.mark.slow
@pytest.mark.parametrize("version", by_length(["TLSv1.3"], VERSIONS))
@pytest.mark.parametrize("name", CLIENTS)
def test_a_client_reads_what_it_has_sent(broker: TlsBroker, name: str, version: str) -> None:
    assert CLIENTS[name](broker, "SSL", version, None) == VALUES
    assert CLIENTS[name](broker, "MUTUAL", version, broker.files.client_pem) == VALUES


@pytest.mark.slow
def test_a_client_reports_a_broker_of_another_authority(broker: TlsBroker) -> None:
    other = broker.files.directory / "strangers.pem"
    other.write_text(Authority("strangers").pem)
    errors: list[confluent_kafka.KafkaError] = []
    client = AdminClient(
        {
            "bootstrap.servers": f"127.0.0.1:{broker.ports['SSL']}",
            "security.protocol": "SSL",
            "ssl.ca.location": str(other),
            "error_cb": errors.append,
        }
    )
    with pytest.raises(confluent_kafka.KafkaException):
        client.list_topics(timeout=2)
    client.poll(0)
    assert confluent_kafka.KafkaError._SSL in [error.code() for error in errors]


# -- Java -----------------------------------------------------------------------------------------


def java_settings(broker: TlsBroker, path: Path, *, kind: str, version: str) -> str:
    """The file of a Java client's settings, with stores of a kind: PKCS12 or JKS."""
    files = broker.files
    key_store, trust_store = path.with_suffix(".keys"), path.with_suffix(".trusted")
    trust_store.write_bytes(java_key_store(PASSWORD, trusted={"ca": files.authority.root}))
    if kind == "JKS":
        key_store.write_bytes(java_key_store(PASSWORD, keys={"client": [files.client]}))
    else:
        key_store.write_bytes(pkcs12_of(files.client, files.authority))
    path.write_text(
        f"""
        security.protocol=SSL
        ssl.enabled.protocols={version}
        ssl.truststore.type=JKS
        ssl.truststore.location={trust_store}
        ssl.truststore.password={PASSWORD}
        ssl.keystore.type={kind}
        ssl.keystore.location={key_store}
        ssl.keystore.password={PASSWORD}
        ssl.key.password={PASSWORD}
        """
    )
    return str(path)


STORES = [("JKS", "TLSv1.2"), ("PKCS12", "TLSv1.3")]


@pytest.mark.java
@pytest.mark.parametrize(("kind", "version"), by_length(STORES[:1], STORES))
def test_apache_kafkas_clients_read_what_they_have_sent(
    broker: TlsBroker, java: JavaTools, tmp_path: Path, kind: str, version: str
) -> None:
    settings = java_settings(broker, tmp_path / "client.properties", kind=kind, version=version)
    server = f"127.0.0.1:{broker.ports['MUTUAL']}"
    topic = f"java-{version}"
    create_topic(broker.process.bootstrap, topic)
    java.run(
        "VerifiableProducer",
        *("--bootstrap-server", server, "--topic", topic, "--max-messages", "1000"),
        *("--command-config", settings),
    )
    read = java.run(
        "VerifiableConsumer",
        *("--bootstrap-server", server, "--topic", topic, "--group-id", topic),
        *("--max-messages", "1000", "--command-config", settings),
        *("--reset-policy", "earliest", "--verbose"),
    )
    lines = [json.loads(line) for line in read.splitlines() if line.startswith("{")]
    values = [line["value"] for line in lines if line["name"] == "record_data"]
    assert sorted(values, key=int) == [str(number) for number in range(1_000)]
