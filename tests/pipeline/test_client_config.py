"""Settings of Kafka's Java client, for librdkafka."""

import pytest

from odradek.pipeline.client_config import ClientConfigError, client_config


def test_only_options_that_begin_with_kafka_are_for_the_client() -> None:
    given = {"Kafka.Bootstrap.Servers": "h:1", "subscribe": "a", "kafka.client.id": "c"}
    assert client_config(given) == {"bootstrap.servers": "h:1", "client.id": "c"}


def test_javas_names_become_librdkafkas() -> None:
    given = {
        "kafka.fetch.max.wait.ms": "5",
        "kafka.buffer.memory": "33554432",
        "kafka.max.poll.records": "500",
        "kafka.ssl.endpoint.identification.algorithm": "",
    }
    assert client_config(given) == {
        "fetch.wait.max.ms": "5",
        "queue.buffering.max.kbytes": "32768",
        "ssl.endpoint.identification.algorithm": "none",
    }


@pytest.mark.parametrize(
    "jaas",
    [
        'org.apache.kafka.common.security.plain.PlainLoginModule required username="al\\"ice" '
        'password="p;w";',
        "org.apache.kafka.common.security.scram.ScramLoginModule required\n"
        "  username='al\"ice'\n  password='p;w';",
    ],
)
def test_credentials_are_taken_out_of_the_jaas_line(jaas: str) -> None:
    assert client_config({"kafka.sasl.jaas.config": jaas}) == {
        "sasl.username": 'al"ice',
        "sasl.password": "p;w",
    }


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"kafka.sasl.jaas.config": "Krb5LoginModule required;"}, "only PlainLoginModule"),
        ({"kafka.sasl.jaas.config": "PlainLoginModule required username=u;"}, "no password"),
        ({"kafka.ssl.truststore.location": "/t"}, "truststore.type is JKS: librdkafka reads PEM"),
        (
            {"kafka.ssl.keystore.location": "/t", "kafka.ssl.keystore.type": "jks"},
            "reads PEM and PKCS12",
        ),
    ],
)
def test_settings_that_librdkafka_cannot_use_are_errors(given: dict[str, str], says: str) -> None:
    with pytest.raises(ClientConfigError, match=says):
        client_config(given)


def test_stores_that_it_can_read() -> None:
    given = {
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.location": "/ca.pem",
        "kafka.ssl.keystore.type": "PKCS12",
        "kafka.ssl.keystore.location": "/me.p12",
        "kafka.ssl.keystore.password": "pw",
        "kafka.ssl.key.password": "kp",
    }
    assert client_config(given) == {
        "ssl.ca.location": "/ca.pem",
        "ssl.keystore.location": "/me.p12",
        "ssl.keystore.password": "pw",
        "ssl.key.password": "kp",
    }
    pem = {"kafka.ssl.keystore.type": "PEM", "kafka.ssl.keystore.location": "/me.pem"}
    assert client_config(pem) == {
        "ssl.certificate.location": "/me.pem",
        "ssl.key.location": "/me.pem",
    }
