"""Settings of Kafka's Java client, for librdkafka."""

from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer

from odradek.config.errors import ConfigError
from odradek.config.java_client import (
    _RANGES,
    IGNORED,
    TRANSLATED,
    librdkafka_settings,
    refused_settings,
)

REFUSED = refused_settings()


def test_javas_names_become_librdkafkas() -> None:
    given = {
        "fetch.max.wait.ms": "5",
        "buffer.memory": "33554432",
        "max.poll.records": "500",
        "ssl.endpoint.identification.algorithm": "",
        "client.id": "c",
    }
    assert librdkafka_settings(given) == {
        "fetch.wait.max.ms": "5",
        "queue.buffering.max.kbytes": "32768",
        "ssl.endpoint.identification.algorithm": "none",
        "client.id": "c",
    }


def test_each_setting_of_kafkas_client_is_passed_on_translated_ignored_or_refused() -> None:
    """The file has ProducerConfig.configNames() and ConsumerConfig.configNames() of Kafka 4.3."""
    names = Path(__file__).with_name("java_client_settings.txt").read_text().split()
    tables = (TRANSLATED.keys(), IGNORED, REFUSED.keys())
    assert sum(map(len, tables)) == len(frozenset().union(*tables)), "in two tables"
    passed_on = set(names).difference(*tables)
    unknown = {name for name in passed_on if "No such configuration" in refusal({name: "\0"})}
    assert unknown == set()


def refusal(settings: dict[str, str]) -> str:
    """Why librdkafka refuses settings, or an empty text."""
    try:
        Producer({"log_level": 0, **settings})
    except KafkaException as error:
        return str(error)
    return ""


@pytest.mark.parametrize("name", sorted(_RANGES))
def test_a_number_out_of_librdkafkas_range_becomes_the_nearest(name: str) -> None:
    assert librdkafka_settings({name: "x"}) == {name: "x"}
    for number, end in zip((-(1 << 63), (1 << 63) - 1), _RANGES[name], strict=True):
        (found,) = librdkafka_settings({name: str(number)}).items()
        assert found == (name, str(end))
        assert "range" not in refusal(dict([found]))


def test_a_consumer_of_java_may_fetch_less_than_a_record() -> None:
    # librdkafka refuses fewer bytes than message.max.bytes, but only if a consumer is made.
    settings = librdkafka_settings({"fetch.max.bytes": "524288", "group.id": "g"})
    Consumer(settings, logger=None).close()


def test_an_empty_group_id_is_left_out() -> None:
    # confluent-kafka would end the process.
    assert librdkafka_settings({"group.id": " ", "client.id": "c"}) == {"client.id": "c"}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"max.request.size": "5000000"}, {"message.max.bytes": "5000000"}),
        ({"request.timeout.ms": "600000"}, {"socket.timeout.ms": "300000"}),
        ({"receive.buffer.bytes": "-1"}, {"socket.receive.buffer.bytes": "0"}),
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
    assert librdkafka_settings(given) == expected


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_settings_that_would_change_what_a_client_does_are_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=f"kafka.{name} is not supported: ."):
        librdkafka_settings({name: "org.example.Mine"}, "kafka.")


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
    assert librdkafka_settings({"sasl.jaas.config": jaas}) == {
        "sasl.username": 'al"ice',
        "sasl.password": "p;w",
    }


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"sasl.jaas.config": "Krb5LoginModule required;"}, "only PlainLoginModule"),
        (
            {"sasl.login.callback.handler.class": "software.amazon.msk.auth.iam.Handler"},
            "callback.handler.class is not supported: .*sasl.oauthbearer.method=oidc",
        ),
        ({"compression.type": "gzip", "compression.gzip.level": "x"}, "a number"),
        ({"buffer.memory": "much"}, "buffer.memory must be a number"),
        ({"sasl.jaas.config": "PlainLoginModule required username=u;"}, "no password"),
        ({"ssl.truststore.location": "/t"}, "truststore.type is JKS: librdkafka reads PEM"),
        ({"ssl.keystore.location": "/t", "ssl.keystore.type": "jks"}, "reads PEM and PKCS12"),
    ],
)
def test_settings_that_librdkafka_cannot_use_are_errors(given: dict[str, str], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        librdkafka_settings(given)


def test_stores_that_it_can_read() -> None:
    given = {
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": "/ca.pem",
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": "/me.p12",
        "ssl.keystore.password": "pw",
        "ssl.key.password": "kp",
    }
    assert librdkafka_settings(given) == {
        "ssl.ca.location": "/ca.pem",
        "ssl.keystore.location": "/me.p12",
        "ssl.keystore.password": "pw",
        "ssl.key.password": "kp",
    }
    pem = {"ssl.keystore.type": "PEM", "ssl.keystore.location": "/me.pem"}
    assert librdkafka_settings(pem) == {
        "ssl.certificate.location": "/me.pem",
        "ssl.key.location": "/me.pem",
    }
