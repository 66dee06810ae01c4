"""The file of --config, in the words of Kafka's own clients."""

from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from odradek.tools.client.client_config import client_settings
from odradek.tools.client.failure import CommandError

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
# What files of Java clients have, beside the address and the login.
USUAL = """\
auto.offset.reset=none
compression.gzip.level=6
compression.type=gzip
group.id=
interceptor.classes=org.example.Interceptor
partition.assignment.strategy=org.apache.kafka.clients.consumer.RangeAssignor
partitioner.class=org.example.Mine
partitioner.ignore.keys=true
receive.buffer.bytes=-1
request.timeout.ms=600000
sasl.kerberos.ticket.renew.jitter=0.05
sasl.login.refresh.window.factor=0.8
sasl.oauthbearer.scope.claim.name=scope
send.buffer.bytes=-1
ssl.endpoint.identification.algorithm=
ssl.truststore.password=x
"""


def test_a_usual_file_of_a_java_client_can_be_given(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text(USUAL)
    settings = client_settings("127.0.0.1:1", file)
    assert settings == {
        "bootstrap.servers": "127.0.0.1:1",
        "compression.level": "6",
        "compression.type": "gzip",
        "partitioner": "random",
        "socket.receive.buffer.bytes": "0",
        "socket.send.buffer.bytes": "0",
        "socket.timeout.ms": "300000",
        "ssl.endpoint.identification.algorithm": "none",
    }
    AdminClient({**settings, "log_level": 0}, logger=None)  # librdkafka accepts it


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ("PLAINTEXT://h:1, SASL-1://[::1]:2,::1:3", "h:1,[::1]:2,::1:3"),
        ("SSL://:9092", "localhost:9092"),
        (":9092,", "localhost:9092,"),
        ("9092", "9092"),
    ],
)
def test_addresses_are_taken_as_java_takes_them(given: str, used: str, tmp_path: Path) -> None:
    assert client_settings(given, None) == {"bootstrap.servers": used}
    file = tmp_path / "client.properties"
    file.write_text(f"bootstrap.servers={given}\n")
    assert client_settings(None, file) == {"bootstrap.servers": used}


@pytest.mark.parametrize(
    "options",
    [
        'username="ann" \\\n  password="p;w"',
        "username='ann' password='p;w'",
        "username=ann password='p;w'",
    ],
)
def test_user_and_password_are_read_as_java_reads_them(options: str, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text(f"sasl.jaas.config={PLAIN} {options};\n")
    assert client_settings("x:1", file) == {
        "bootstrap.servers": "x:1",
        "sasl.username": "ann",
        "sasl.password": "p;w",
    }


@pytest.mark.parametrize(
    ("jaas", "reason"),
    [
        (f"{PLAIN};", "no username and no password"),
        (f"{PLAIN} username='ann'", "sasl.jaas.config"),
    ],
)
def test_a_login_that_cannot_be_read_is_one_line_without_its_text(
    jaas: str, reason: str, tmp_path: Path
) -> None:
    file = tmp_path / "client.properties"
    file.write_text(f"sasl.jaas.config={jaas}\n")
    with pytest.raises(CommandError, match=reason) as failure:
        client_settings(None, file)
    assert "LoginModule" not in str(failure.value)
