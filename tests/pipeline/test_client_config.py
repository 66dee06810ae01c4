"""Settings of Kafka's Java client, for librdkafka."""

from pathlib import Path

import pytest
from confluent_kafka import KafkaException, Producer

from odradek.pipeline.client_config import (
    IGNORED,
    REFUSED,
    TRANSLATED,
    ClientConfigError,
    client_config,
)


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


def test_each_setting_of_kafkas_client_is_passed_on_translated_ignored_or_refused() -> None:
    """The file has ProducerConfig.configNames() and ConsumerConfig.configNames() of Kafka 4.3."""
    names = Path(__file__).with_name("java_client_settings.txt").read_text().split()
    tables = (TRANSLATED.keys(), IGNORED, REFUSED.keys())
    assert sum(map(len, tables)) == len(frozenset().union(*tables)), "in two tables"
    passed_on = set(names).difference(*tables)
    assert {name for name in passed_on if not is_known_to_librdkafka(name)} == set()


def is_known_to_librdkafka(name: str) -> bool:
    try:
        Producer({"log_level": 0, name: "\0"})
    except KafkaException as error:
        return "No such configuration property" not in str(error)
    return True


def test_settings_that_only_java_has_are_ignored_with_one_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    given = {f"kafka.{name}": "1" for name in ("max.poll.records", "partition.assignment.strategy")}
    for _ in range(2):
        assert client_config({**given, "kafka.client.id": "c"}) == {"client.id": "c"}
    (line,) = caplog.messages
    assert "kafka.max.poll.records, kafka.partition.assignment.strategy" in line


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"max.request.size": "5000000"}, {"message.max.bytes": "5000000"}),
        (
            {
                "compression.type": "gzip",
                "compression.gzip.level": "6",
                "compression.lz4.level": "9",
            },
            {"compression.type": "gzip", "compression.level": "6"},
        ),
        (
            {"compression.type": "zstd", "compression.zstd.level": "19"},
            {"compression.type": "zstd", "compression.level": "12"},
        ),
        (
            {"compression.type": "zstd", "compression.zstd.level": "-5"},
            {"compression.type": "zstd"},
        ),
        ({"compression.gzip.level": "6"}, {}),
        ({"partitioner.ignore.keys": "true"}, {"partitioner": "random"}),
        ({"partitioner.ignore.keys": "false"}, {}),
        (
            {"partitioner.class": "org.apache.kafka.clients.producer.internals.DefaultPartitioner"},
            {},
        ),
        (
            {
                "sasl.login.callback.handler.class": "org.apache.kafka.common.security.oauthbearer."
                "OAuthBearerLoginCallbackHandler",
                "sasl.jaas.config": "org.apache.kafka.common.security.oauthbearer."
                'OAuthBearerLoginModule required clientId="me" clientSecret="s" scope="a b";',
                "sasl.oauthbearer.token.endpoint.url": "http://localhost/token",
            },
            {
                "sasl.oauthbearer.method": "oidc",
                "sasl.oauthbearer.client.id": "me",
                "sasl.oauthbearer.client.secret": "s",
                "sasl.oauthbearer.scope": "a b",
                "sasl.oauthbearer.token.endpoint.url": "http://localhost/token",
            },
        ),
    ],
)
def test_settings_with_another_form(given: dict[str, str], expected: dict[str, str]) -> None:
    assert client_config({f"kafka.{name}": text for name, text in given.items()}) == expected


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_settings_that_would_change_what_a_job_does_are_refused(name: str) -> None:
    with pytest.raises(ClientConfigError, match=f"kafka.{name} is not supported: ."):
        client_config({f"kafka.{name}": "org.example.Mine"})


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
        (
            {"kafka.sasl.login.callback.handler.class": "software.amazon.msk.auth.iam.Handler"},
            "callback.handler.class is not supported: .*kafka.sasl.oauthbearer.method=oidc",
        ),
        ({"kafka.compression.type": "gzip", "kafka.compression.gzip.level": "x"}, "a number"),
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
