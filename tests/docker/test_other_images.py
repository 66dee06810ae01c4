"""Each row of the table of other_images.py, in a file of the style of its image."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from odradek.config.jaas import parse_jaas
from odradek.config.properties import parse_properties
from tests.support.broker_process import free_ports
from tests.support.certificates import Authority, pkcs12_of
from tests.support.docker_scripts import DOCKER, entrypoint, other_images
from tests.support.java_key_stores import java_key_store

APACHE = {
    "KAFKA_NODE_ID": "1",
    "KAFKA_PROCESS_ROLES": "broker,controller",
    "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
    "KAFKA_LISTENERS": "SASL_PLAINTEXT://:9092,CONTROLLER://:9093,OUT://:9094",
    "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": (
        "CONTROLLER:SASL_PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,OUT:PLAINTEXT"
    ),
    "KAFKA_SASL_ENABLED_MECHANISMS": "PLAIN",
}
CONFLUENT = {
    "KAFKA_NODE_ID": "1",
    "KAFKA_ADVERTISED_LISTENERS": "SSL://kafka:29092,PLAINTEXT://localhost:9092",
}
BITNAMI = {
    "KAFKA_CFG_NODE_ID": "0",
    "KAFKA_CFG_LISTENERS": "IN://:9092,OUT://:9094,CONTROLLER://:9093",
    "KAFKA_CFG_LISTENER_SECURITY_PROTOCOL_MAP": (
        "IN:SASL_PLAINTEXT,OUT:SASL_SSL,CONTROLLER:PLAINTEXT"
    ),
    "KAFKA_CFG_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
    "KAFKA_CFG_INTER_BROKER_LISTENER_NAME": "IN",
    "KAFKA_CFG_SASL_MECHANISM_INTER_BROKER_PROTOCOL": "PLAIN",
    "KAFKA_CLIENT_USERS": "ann,bob",
    "KAFKA_CLIENT_PASSWORDS": 'a"1;b\\2',
    "KAFKA_CERTIFICATE_PASSWORD": "sesame",
}
WURSTMEISTER = {"KAFKA_ZOOKEEPER_CONNECT": "zookeeper:2181", "KAFKA_BROKER_ID": "3"}

JAAS_FILE = """
// the broker's own section, and one for a client
KafkaServer {
    org.apache.kafka.common.security.scram.ScramLoginModule required
    username="inter" password="x";
    org.apache.kafka.common.security.plain.PlainLoginModule required
    username="admin"
    password="admin-secret"
    user_admin="admin-secret"
    user_ann="a\\"1";
};
KafkaClient {
    org.apache.kafka.common.security.plain.PlainLoginModule required username="ann" password="a";
};
"""


@pytest.fixture(autouse=True)
def directories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The places where the images find files, in a directory of the test."""
    secrets, bitnami = tmp_path / "secrets", tmp_path / "bitnami"
    (bitnami / "certs").mkdir(parents=True)
    for name in ("kafka.keystore.jks", "kafka.truststore.jks", "kafka.keystore.pem"):
        (bitnami / "certs" / name).write_text(f"{name}\nlast")
    (bitnami / "certs" / "kafka.keystore.key").write_text("key")
    (bitnami / "certs" / "kafka.truststore.pem").write_text("trusted")
    secrets.mkdir()
    (secrets / "store").touch()
    (secrets / "password").write_text("open sesame\n")
    (secrets / "jaas.conf").write_text(JAAS_FILE)
    monkeypatch.setattr(other_images, "SECRETS", secrets)
    monkeypatch.setattr(other_images, "BITNAMI_CONFIGS", (bitnami,))
    return tmp_path


def printed(environment: Mapping[str, str]) -> dict[str, str]:
    draft = entrypoint.draft_of(environment, ())
    return parse_properties(entrypoint.text_of(draft).encode("latin-1"))


def users_of(properties: Mapping[str, str], listener: str) -> dict[str, str]:
    """Who can log in at a listener by PLAIN, with which password."""
    name = f"listener.name.{listener}.plain.sasl.jaas.config"
    options = parse_jaas(name, properties[name]).options
    return {key.removeprefix("user_"): text for key, text in options.items() if "user_" in key}


# For each variable: a file of its image, and properties that it leads to; None: it is not set.
# {directory} is the directory of the test.
Case = tuple[Mapping[str, str], Mapping[str, str | None]]
JKS = "{directory}/bitnami/certs/kafka"
ANN_AND_BOB = {"ann": 'a"1', "bob": "b\\2"}
CASES: dict[str, Case] = {
    "KAFKA_SSL_KEYSTORE_FILENAME": (
        CONFLUENT | {"KAFKA_SSL_KEYSTORE_FILENAME": "store"},
        {"ssl.keystore.location": "{directory}/secrets/store", "ssl.keystore.filename": None},
    ),
    "KAFKA_SSL_KEYSTORE_CREDENTIALS": (
        CONFLUENT | {"KAFKA_SSL_KEYSTORE_CREDENTIALS": "password"},
        {"ssl.keystore.password": "open sesame"},
    ),
    "KAFKA_SSL_KEY_CREDENTIALS": (
        CONFLUENT | {"KAFKA_SSL_KEY_CREDENTIALS": "password"},
        {"ssl.key.password": "open sesame", "ssl.key.credentials": None},
    ),
    "KAFKA_SSL_TRUSTSTORE_FILENAME": (
        CONFLUENT | {"KAFKA_SSL_TRUSTSTORE_FILENAME": "store"},
        {"ssl.truststore.location": "{directory}/secrets/store"},
    ),
    "KAFKA_SSL_TRUSTSTORE_CREDENTIALS": (
        CONFLUENT | {"KAFKA_SSL_TRUSTSTORE_CREDENTIALS": "password"},
        {"ssl.truststore.password": "open sesame"},
    ),
    "KAFKA_AUTHORIZER_CLASS_NAME": (
        APACHE
        | {
            "KAFKA_LISTENERS": "OUT://:1",
            "KAFKA_AUTHORIZER_CLASS_NAME": "kafka.security.authorizer.AclAuthorizer",
        },
        {"authorizer.class.name": other_images.AUTHORIZER},
    ),
    "KAFKA_CFG_AUTHORIZER_CLASS_NAME": (
        BITNAMI | {"KAFKA_CFG_AUTHORIZER_CLASS_NAME": "kafka.security.auth.SimpleAclAuthorizer"},
        {"authorizer.class.name": other_images.AUTHORIZER},
    ),
    **{
        f"KAFKA_{name}": (
            BITNAMI | {f"KAFKA_CFG_{name}": "new", f"KAFKA_{name}": "old"},
            {name.lower().replace("_", "."): "old"},
        )
        for name in other_images.OLD_NAMES
    },
    "KAFKA_LISTENERS": (
        BITNAMI | {"KAFKA_LISTENERS": "OLD://:1", "KAFKA_CERTIFICATE_PASSWORD": ""},
        {"listeners": "OLD://:1"},
    ),
    "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": (
        BITNAMI | {"KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "IN:PLAINTEXT,OUT:SASL_PLAINTEXT"},
        {"listener.name.in.plain.sasl.jaas.config": None, "ssl.keystore.type": None},
    ),
    "KAFKA_INTER_BROKER_LISTENER_NAME": (
        BITNAMI | {"KAFKA_INTER_BROKER_LISTENER_NAME": "OUT"},
        {"inter.broker.listener.name": "OUT"},
    ),
    "KAFKA_LOGS_DIRS": (BITNAMI | {"KAFKA_LOGS_DIRS": "/d"}, {"log.dirs": "/d"}),
    "KAFKA_SEGMENT_BYTES": (BITNAMI | {"KAFKA_SEGMENT_BYTES": "9"}, {"log.segment.bytes": "9"}),
    "KAFKA_MAX_MESSAGE_BYTES": (
        BITNAMI | {"KAFKA_MAX_MESSAGE_BYTES": "9"},
        {"message.max.bytes": "9"},
    ),
    "KAFKA_TLS_TYPE": (
        BITNAMI | {"KAFKA_TLS_TYPE": "PEM"},
        {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.key": "key",
            "ssl.keystore.certificate.chain": "kafka.keystore.pem\nlast",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.certificates": "trusted",
            "ssl.key.password": "sesame",
            "ssl.keystore.location": None,
            "ssl.keystore.password": None,
        },
    ),
    "KAFKA_TLS_CLIENT_AUTH": (
        BITNAMI | {"KAFKA_TLS_CLIENT_AUTH": "none", "KAFKA_TLS_OUT_CLIENT_AUTH": "requested"},
        {"ssl.client.auth": "none", "listener.name.out.ssl.client.auth": "requested"},
    ),
    "KAFKA_TLS_TRUSTSTORE_FILE": (
        BITNAMI | {"KAFKA_TLS_TRUSTSTORE_FILE": "/t.jks"},
        {"ssl.truststore.location": "/t.jks"},
    ),
    "KAFKA_CERTIFICATE_PASSWORD": (
        BITNAMI,
        {
            "ssl.client.auth": "required",
            "ssl.keystore.location": f"{JKS}.keystore.jks",
            "ssl.keystore.password": "sesame",
            "ssl.key.password": "sesame",
            "ssl.truststore.location": f"{JKS}.truststore.jks",
            "ssl.truststore.password": "sesame",
        },
    ),
    "KAFKA_CREATE_TOPICS": (
        WURSTMEISTER | {"KAFKA_CREATE_TOPICS": "a:1:3, b:16:1:compact"},
        {"odradek.create.topics": "a:1:3,b:16:1:compact", "create.topics": None},
    ),
    "KAFKA_CREATE_TOPICS_SEPARATOR": (
        WURSTMEISTER
        | {"KAFKA_CREATE_TOPICS": "a:1:1\nb:2:1\n", "KAFKA_CREATE_TOPICS_SEPARATOR": "$'\n'"},
        {"odradek.create.topics": "a:1:1,b:2:1"},
    ),
    "CREATE_TOPICS": (
        {"ZOOKEEPER_CONNECT": "zookeeper:2181", "CREATE_TOPICS": "a:1:1,b:1:1:compact"},
        {"odradek.create.topics": "a:1:1,b:1:1:compact"},
    ),
    "KAFKA_ADVERTISED_HOST_NAME": (
        WURSTMEISTER | {"KAFKA_ADVERTISED_HOST_NAME": "kafka"},
        {"advertised.listeners": "PLAINTEXT://kafka:9092", "listeners": "PLAINTEXT://0.0.0.0:9092"},
    ),
    "KAFKA_ADVERTISED_PORT": (
        WURSTMEISTER | {"KAFKA_ADVERTISED_HOST_NAME": "kafka", "KAFKA_ADVERTISED_PORT": "9094"},
        {"advertised.listeners": "PLAINTEXT://kafka:9094", "listeners": "PLAINTEXT://0.0.0.0:9092"},
    ),
    "KAFKA_PORT": (
        WURSTMEISTER | {"KAFKA_ADVERTISED_HOST_NAME": "kafka", "KAFKA_PORT": "9999"},
        {"advertised.listeners": "PLAINTEXT://kafka:9999", "listeners": "PLAINTEXT://0.0.0.0:9999"},
    ),
    "KAFKA_HOST_NAME": (
        WURSTMEISTER | {"KAFKA_HOST_NAME": "127.0.0.1"},
        {"listeners": "PLAINTEXT://127.0.0.1:9092"},
    ),
}
# What the image reads for others: no property, and no message.
WITHOUT_EFFECT = {
    row.variable for row in other_images.TABLE if row.effect is other_images.no_effect
}
# A message or an error names these.
NAMED = {
    "KAFKA_MOUNTED_CONF_DIR": BITNAMI,
    "KAFKA_NODE_ID_COMMAND": {"KAFKA_CFG_PROCESS_ROLES": "broker,controller"},
    "KAFKA_BROKER_ID_COMMAND": {"KAFKA_CFG_PROCESS_ROLES": "broker,controller"},
    "HOSTNAME_COMMAND": WURSTMEISTER,
    "PORT_COMMAND": WURSTMEISTER,
    "RACK_COMMAND": WURSTMEISTER,
    "BROKER_ID_COMMAND": {"KAFKA_ZOOKEEPER_CONNECT": "zookeeper:2181"},
    "CUSTOM_INIT_SCRIPT": WURSTMEISTER,
}
# These have tests of their own below.
LOGINS = {
    *("KAFKA_OPTS", "KAFKA_CLIENT_USERS", "KAFKA_CLIENT_PASSWORDS", "KAFKA_BROKER_USER"),
    *("KAFKA_BROKER_PASSWORD", "KAFKA_INTER_BROKER_USER", "KAFKA_INTER_BROKER_PASSWORD"),
}


def test_each_row_has_a_test() -> None:
    assert {row.variable for row in other_images.TABLE} == {
        *CASES,
        *WITHOUT_EFFECT,
        *NAMED,
        *LOGINS,
    }


@pytest.mark.parametrize("variable", CASES)
def test_a_variable_does_what_its_image_does(variable: str, directories: Path) -> None:
    environment, expected = CASES[variable]
    found = printed(environment)
    for name, text in expected.items():
        wanted = None if text is None else text.replace("{directory}", str(directories))
        assert (name, found.get(name)) == (name, wanted)


@pytest.mark.parametrize("variable", sorted(WITHOUT_EFFECT))
@pytest.mark.parametrize("others", [APACHE | {"KAFKA_LISTENERS": "OUT://:1"}, BITNAMI])
def test_a_variable_without_effect_is_no_property_and_not_mentioned(
    others: Mapping[str, str], variable: str
) -> None:
    draft = entrypoint.draft_of(others | {variable: "x"}, ())
    assert draft.notes == []
    assert draft.lines == entrypoint.draft_of(others, ()).lines


@pytest.mark.parametrize("variable", NAMED)
def test_what_is_not_served_is_named_with_the_way_out(variable: str) -> None:
    try:
        (said,) = entrypoint.draft_of(NAMED[variable] | {variable: "x"}, ()).notes
    except other_images.VariableError as error:
        said = str(error)
    assert said.startswith(variable)
    assert re.search(": (set|mount|the image runs no scripts)", said)


def test_listeners_win_over_the_older_address() -> None:
    advertised = {"KAFKA_ADVERTISED_LISTENERS": "A://a:1,B://b:2"}
    found = printed(WURSTMEISTER | advertised | {"KAFKA_ADVERTISED_HOST_NAME": "kafka"})
    assert found["listeners"] == "A://0.0.0.0:1,B://0.0.0.0:2"
    assert found["advertised.listeners"] == "A://a:1,B://b:2"


def test_another_authorizer_is_left_to_the_broker() -> None:
    found = printed(APACHE | {"KAFKA_LISTENERS": "OUT://:1", "KAFKA_AUTHORIZER_CLASS_NAME": "X"})
    assert found["authorizer.class.name"] == "X"


def test_the_output_of_a_command_is_to_be_written_in_its_place() -> None:
    environment = WURSTMEISTER | {
        "HOSTNAME_COMMAND": "hostname -i",
        "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://_{HOSTNAME_COMMAND}:9092",
    }
    with pytest.raises(other_images.VariableError, match="into KAFKA_ADVERTISED_LISTENERS"):
        entrypoint.draft_of(environment, ())


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        (CONFLUENT | {"KAFKA_SSL_KEYSTORE_FILENAME": "no"}, "KAFKA_SSL_KEYSTORE_FILENAME: "),
        (CONFLUENT | {"KAFKA_SSL_KEY_CREDENTIALS": "no"}, "KAFKA_SSL_KEY_CREDENTIALS: "),
        (APACHE | {"KAFKA_OPTS": "-Djava.security.auth.login.config=/no"}, "KAFKA_OPTS: /no "),
        (BITNAMI | {"KAFKA_CLIENT_PASSWORDS": "a"}, "2 names, and KAFKA_CLIENT_PASSWORDS 1 "),
        (
            BITNAMI | {"KAFKA_CLIENT_USERS": "", "KAFKA_CLIENT_PASSWORDS": ""},
            "set KAFKA_CLIENT_USERS and KAFKA_CLIENT_PASSWORDS",
        ),
        (BITNAMI | {"KAFKA_CLIENT_USERS_FILE": "/no"}, "KAFKA_CLIENT_USERS_FILE: /no "),
    ],
)
def test_a_mistake_is_one_line_that_names_the_variable(
    environment: Mapping[str, str], message: str
) -> None:
    with pytest.raises(other_images.VariableError, match=re.escape(message)) as raised:
        entrypoint.draft_of(environment, ())
    assert "\n" not in str(raised.value)


STORES = {
    "KAFKA_SSL_KEYSTORE_FILENAME": "no",
    "KAFKA_SSL_KEYSTORE_CREDENTIALS": "no",
    "KAFKA_SSL_KEY_CREDENTIALS": "no",
    "KAFKA_SSL_TRUSTSTORE_FILENAME": "no",
    "KAFKA_SSL_TRUSTSTORE_CREDENTIALS": "no",
}


def test_stores_are_not_needed_without_a_listener_with_tls() -> None:
    plain = {"KAFKA_NODE_ID": "1", "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://localhost:9092"}
    found = printed(plain | STORES | {"KAFKA_SSL_CLIENT_AUTH": "required"})
    assert [name for name in found if name.startswith("ssl.")] == ["ssl.client.auth"]


def test_a_trust_store_is_needed_only_if_clients_need_a_certificate() -> None:
    store = {"KAFKA_SSL_TRUSTSTORE_FILENAME": "no", "KAFKA_SSL_TRUSTSTORE_CREDENTIALS": "no"}
    assert "ssl.truststore.location" not in printed(CONFLUENT | store)
    asking = CONFLUENT | store | {"KAFKA_SSL_CLIENT_AUTH": "requested"}
    with pytest.raises(other_images.VariableError, match="KAFKA_SSL_TRUSTSTORE_FILENAME: "):
        entrypoint.draft_of(asking, ())


def test_a_missing_store_of_bitnami_is_named_with_its_places(directories: Path) -> None:
    (directories / "bitnami" / "certs" / "kafka.keystore.jks").unlink()
    with pytest.raises(other_images.VariableError, match=r"keystore\.jks: mount it there"):
        entrypoint.draft_of(BITNAMI, ())


# -- logins ---------------------------------------------------------------------------------------


def with_jaas_file(directories: Path, text: str = JAAS_FILE) -> dict[str, str]:
    (directories / "secrets" / "jaas.conf").write_text(text)
    file = directories / "secrets" / "jaas.conf"
    options = f"-Xmx1g -Djava.security.auth.login.config={file} -Dother=x"
    return APACHE | {"KAFKA_OPTS": options}


def test_the_users_of_a_jaas_file_are_those_of_its_section(directories: Path) -> None:
    found = printed(with_jaas_file(directories))
    assert users_of(found, "sasl_plaintext") == {"admin": "admin-secret", "ann": 'a"1'}
    lines = [name for name in found if name.endswith("sasl.jaas.config")]
    assert lines == ["listener.name.sasl_plaintext.plain.sasl.jaas.config"]


def test_a_section_of_the_listener_is_preferred_and_a_property_is_kept(directories: Path) -> None:
    module = other_images.LOGIN_MODULES["PLAIN"]
    own = f"{JAAS_FILE} sasl_plaintext.KafkaServer {{ {module} required user_b=c; }};"
    assert users_of(printed(with_jaas_file(directories, own)), "sasl_plaintext") == {"b": "c"}
    variable = "KAFKA_LISTENER_NAME_SASL__PLAINTEXT_PLAIN_SASL_JAAS_CONFIG"
    given = with_jaas_file(directories, own) | {variable: f"{module} required user_d=e;"}
    assert users_of(printed(given), "sasl_plaintext") == {"d": "e"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("KafkaClient { };", "has no org.apache.kafka.common.security.plain.PlainLoginModule"),
        ("KafkaServer { x required a=; };", "no value after"),
        ("KafkaServer { x required; ", "must end with };"),
        ("KafkaServer x", "no section"),
    ],
)
def test_a_jaas_file_that_does_not_do_is_named(text: str, message: str, directories: Path) -> None:
    with pytest.raises(other_images.VariableError, match=re.escape(message)) as raised:
        printed(with_jaas_file(directories, text))
    assert str(raised.value).startswith("KAFKA_OPTS: ")


def test_bitnamis_users_log_in_by_each_mechanism_at_each_listener() -> None:
    draft = entrypoint.draft_of(BITNAMI, ())
    found = printed(BITNAMI)
    assert found["sasl.enabled.mechanisms"] == "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512"
    assert users_of(found, "in") == users_of(found, "out") == ANN_AND_BOB
    assert "listener.name.out.scram-sha-512.sasl.jaas.config" in found
    assert not any(name.startswith("listener.name.controller") for name in found)
    assert draft.users == [
        f"SCRAM-SHA-{size}=[name={user},password={password}]"
        for size in (256, 512)
        for user, password in ANN_AND_BOB.items()
    ]


def test_bitnamis_older_names_of_the_user_win() -> None:
    old = {"KAFKA_BROKER_USER": "old", "KAFKA_BROKER_PASSWORD": "secret"}
    assert users_of(printed(BITNAMI | old), "out") == {"old": "secret"}


def test_bitnamis_user_between_brokers_logs_in_at_their_listener() -> None:
    between = {"KAFKA_INTER_BROKER_USER": "brokers", "KAFKA_INTER_BROKER_PASSWORD": "between"}
    draft = entrypoint.draft_of(BITNAMI | between, ())
    found = printed(BITNAMI | between)
    assert users_of(found, "in") == {**ANN_AND_BOB, "brokers": "between"}
    assert users_of(found, "out") == ANN_AND_BOB
    assert "SCRAM-SHA-512=[name=brokers,password=between]" in draft.users


def test_a_value_of_bitnami_may_be_in_a_file(directories: Path) -> None:
    (directories / "passwords").write_text("1,2\n")
    environment = {name: text for name, text in BITNAMI.items() if "PASSWORDS" not in name}
    environment["KAFKA_CLIENT_PASSWORDS_FILE"] = str(directories / "passwords")
    assert users_of(printed(environment), "out") == {"ann": "1", "bob": "2"}


# -- with a broker --------------------------------------------------------------------------------


@contextmanager
def container(environment: Mapping[str, str], directory: Path) -> Iterator["subprocess.Popen[str]"]:
    """The entry point, with files below a directory of the test; it ends with exit code 0."""
    program = (
        f"import sys; sys.path.insert(0, {str(DOCKER)!r})\n"
        "from pathlib import Path\nimport entrypoint, other_images\n"
        f"other_images.SECRETS = Path({str(directory / 'secrets')!r})\n"
        "entrypoint.main(['--print-address'])\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
            "TMPDIR": str(directory),
            **environment,
        },
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=directory,
    )
    assert process.stdout is not None
    try:
        lines = iter(process.stdout.readline, "")
        if not any(line.startswith("{") for line in lines):
            raise AssertionError(process.communicate()[1])
        yield process
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=60)
        assert process.returncode == 0, log
    finally:
        process.kill()
        process.communicate()


def topics_seen(settings: Mapping[str, str]) -> set[str]:
    """The topics that a client sees. Raises KafkaException."""
    return set(AdminClient(dict(settings)).list_topics(timeout=20).topics)


def by_password(port: int, mechanism: str, user: str, password: str) -> dict[str, str]:
    return {
        "bootstrap.servers": f"localhost:{port}",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": user,
        "sasl.password": password,
    }


@pytest.mark.slow
def test_a_client_logs_in_as_a_user_of_the_jaas_file(directories: Path) -> None:
    (port,) = free_ports(1)
    environment = with_jaas_file(directories) | {
        "KAFKA_LISTENERS": f"SASL_PLAINTEXT://127.0.0.1:{port},CONTROLLER://:9093",
        "KAFKA_LOG_DIRS": str(directories / "data"),
        "KAFKA_CREATE_TOPICS": "orders:1:1",
    }
    with container(environment, directories):
        assert topics_seen(by_password(port, "PLAIN", "ann", 'a"1')) == {"orders"}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["JKS", "PKCS12"])
def test_a_client_is_served_by_tls_with_the_stores_below_secrets(
    kind: str, directories: Path
) -> None:
    (port,) = free_ports(1)
    authority = Authority()
    signed = authority.sign("localhost")
    secrets = directories / "secrets"
    store = (
        java_key_store("sesame", keys={"broker": [signed, authority.root]})
        if kind == "JKS"
        else pkcs12_of(signed, authority, "sesame")
    )
    (secrets / "kafka.keystore").write_bytes(store)
    (secrets / "kafka.truststore").write_bytes(
        java_key_store("sesame", trusted={"ca": authority.root})
    )
    (secrets / "creds").write_text("sesame\n")
    (directories / "ca.pem").write_text(authority.pem)
    (directories / "client.pem").write_text(signed.pem)
    (directories / "client.key").write_text(signed.key_pem())
    environment = {
        "KAFKA_NODE_ID": "1",
        "KAFKA_ADVERTISED_LISTENERS": f"SSL://localhost:{port}",
        "KAFKA_SSL_KEYSTORE_FILENAME": "kafka.keystore",
        "KAFKA_SSL_KEYSTORE_CREDENTIALS": "creds",
        "KAFKA_SSL_KEY_CREDENTIALS": "creds",
        "KAFKA_SSL_TRUSTSTORE_FILENAME": "kafka.truststore",
        "KAFKA_SSL_TRUSTSTORE_CREDENTIALS": "creds",
        "KAFKA_SSL_CLIENT_AUTH": "required",
        "KAFKA_LOG_DIRS": str(directories / "data"),
    }
    client = {
        "bootstrap.servers": f"localhost:{port}",
        "security.protocol": "SSL",
        "ssl.ca.location": str(directories / "ca.pem"),
        "ssl.certificate.location": str(directories / "client.pem"),
        "ssl.key.location": str(directories / "client.key"),
    }
    with container(environment, directories):
        assert topics_seen(client) == set()
        checked = subprocess.run(
            [sys.executable, str(DOCKER / "healthcheck.py")],
            env={"TMPDIR": str(directories)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (checked.returncode, checked.stderr) == (0, "")


@pytest.mark.slow
def test_a_container_has_scram_users_from_its_first_start_on(directories: Path) -> None:
    (port,) = free_ports(1)
    environment = {
        "KAFKA_NODE_ID": "1",
        "KAFKA_LISTENERS": f"SASL_PLAINTEXT://127.0.0.1:{port}",
        "KAFKA_SASL_ENABLED_MECHANISMS": "SCRAM-SHA-512",
        "KAFKA_CLIENT_USERS": "admin",
        "KAFKA_CLIENT_PASSWORDS": "admin-secret",
        "KAFKA_LOG_DIRS": str(directories / "data"),
    }
    admin = by_password(port, "SCRAM-SHA-512", "admin", "admin-secret")
    with container(environment, directories):
        assert topics_seen(admin) == set()
    # A user is made once: a new password in the file does not change it.
    with container(environment | {"KAFKA_CLIENT_PASSWORDS": "other"}, directories):
        assert topics_seen(admin) == set()
        with pytest.raises(KafkaException):
            topics_seen(admin | {"sasl.password": "other", "socket.timeout.ms": "2000"})


@pytest.mark.slow
def test_the_topics_of_a_file_for_wurstmeister_exist_after_the_start(directories: Path) -> None:
    (port,) = free_ports(1)
    environment = WURSTMEISTER | {
        "KAFKA_ADVERTISED_HOST_NAME": "localhost",
        "KAFKA_PORT": str(port),
        "KAFKA_LOG_DIRS": str(directories / "data"),
        "KAFKA_CREATE_TOPICS": "a:1:3,b:2:1:compact",
    }
    with container(environment, directories):
        assert topics_seen({"bootstrap.servers": f"localhost:{port}"}) == {"a", "b"}
