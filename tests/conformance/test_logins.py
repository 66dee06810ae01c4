"""The clients of users log in: kafka-python, aiokafka, confluent-kafka, franz-go, Java's tools."""

import asyncio
import itertools
import re
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.abc import AbstractTokenProvider as AiokafkaTokens
from aiokafka.errors import KafkaError as AiokafkaError
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import KafkaError as PythonError
from kafka.net.sasl.oauth import AbstractTokenProvider as PythonTokens

from tests.support.broker_process import (
    BrokerProcess,
    against_apache_kafka,
    make_broker,
    why_no_broker,
)
from tests.support.go_programs import build, why_no_go
from tests.support.java_tools import JavaTools, ToolFailedError
from tests.support.kafka_python import may_leave_a_socket
from tests.support.lengths import by_length, only_long
from tests.support.sasl import (
    OAUTH_MODULE,
    PLAIN_MODULE,
    SCRAM_MODULE,
    add_scram_user,
    log_in_by_plain,
    unsecured_token,
)
from tests.support.secured import MAX_REAUTH_MS, PASSWORDS, authority_of, secure, wait_until_open
from tests.support.topics import create_topic
from tests.support.wire import WireClient

pytestmark = [pytest.mark.slow, may_leave_a_socket]

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
JAVA_MODULES = {"PLAIN": PLAIN_MODULE, "OAUTHBEARER": OAUTH_MODULE}
USER = "alice"
PASSWORD = PASSWORDS[USER]
WAIT_S = 20.0


class Secured:
    """A broker with listeners that need a login, and `alice` in each mechanism."""

    def __init__(self, broker: BrokerProcess, ports: dict[str, int]) -> None:
        self.broker = broker
        self.ports = ports

    def bootstrap(self, mechanism: str, listener: str = "") -> str:
        """Where a client logs in."""
        listener = listener or ("OAUTH" if mechanism == "OAUTHBEARER" else "IN")
        return f"127.0.0.1:{self.ports[listener]}"


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    reason = why_no_broker()
    if reason:
        pytest.skip(reason)
    broker = make_broker(tmp_path_factory.mktemp("secured"))
    ports = secure(broker)
    try:
        broker.start()
        wait_until_open(ports)
        with WireClient(broker.port) as admin:
            for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
                add_scram_user(admin, USER, PASSWORD, mechanism)
        yield Secured(broker, ports)
        assert broker.crashes_in_log() == [], broker.log_text()
    finally:
        broker.stop()


@pytest.fixture
def new_topic(secured: Secured, topic: str) -> str:
    create_topic(secured.broker.bootstrap, topic)
    return topic


def token_of(password: str) -> str:
    """A token that is good if the password is."""
    scope = "kafka" if password == PASSWORD else "other"
    return unsecured_token({"sub": USER, "exp": int(time.time()) + 3600, "scope": scope})


class PythonToken(PythonTokens):
    def __init__(self, password: str) -> None:
        super().__init__()
        self._token = token_of(password)

    def token(self) -> str:
        return self._token


class AiokafkaToken(AiokafkaTokens):
    def __init__(self, password: str) -> None:
        self._token = token_of(password)

    async def token(self) -> str:
        return self._token


Work = Callable[[str, str, str, str, str], bytes]
NO_TLS = ""


def with_kafka_python(
    bootstrap: str, topic: str, mechanism: str, password: str, authority: str
) -> bytes:
    """Write and read one record; over TLS, if `authority` is a file."""
    settings: dict[str, Any] = {
        "bootstrap_servers": bootstrap,
        "security_protocol": "SASL_SSL" if authority else "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "bootstrap_timeout_ms": 2000,
        "ssl_cafile": authority or None,
    }
    if mechanism == "OAUTHBEARER":
        settings["sasl_oauth_token_provider"] = PythonToken(password)
    else:
        settings |= {"sasl_plain_username": USER, "sasl_plain_password": password}
    producer = KafkaProducer(**settings, max_block_ms=5000)
    try:
        producer.send(topic, b"kafka-python").get(WAIT_S)
    finally:
        producer.close(timeout=5)
    consumer = KafkaConsumer(
        topic, **settings, auto_offset_reset="earliest", consumer_timeout_ms=WAIT_S * 1000
    )
    try:
        value: bytes = next(iter(consumer)).value
    finally:
        consumer.close()
    return value


def with_aiokafka(
    bootstrap: str, topic: str, mechanism: str, password: str, authority: str
) -> bytes:
    settings: dict[str, Any] = {
        "bootstrap_servers": bootstrap,
        "security_protocol": "SASL_SSL" if authority else "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "ssl_context": ssl.create_default_context(cafile=authority) if authority else None,
    }

    async def talk() -> bytes:
        if mechanism == "OAUTHBEARER":
            settings["sasl_oauth_token_provider"] = AiokafkaToken(password)
        else:
            settings.update(sasl_plain_username=USER, sasl_plain_password=password)
        async with asyncio.timeout(WAIT_S), AIOKafkaProducer(**settings) as producer:
            await producer.send_and_wait(topic, b"aiokafka")
        consumer = AIOKafkaConsumer(topic, **settings, auto_offset_reset="earliest")
        async with asyncio.timeout(WAIT_S), consumer:
            value: bytes = (await consumer.getone()).value
            return value

    return asyncio.run(talk())


def confluent_settings(
    bootstrap: str, mechanism: str, password: str, authority: str = NO_TLS
) -> dict[str, Any]:
    """The settings of a client."""
    settings: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "security.protocol": "SASL_SSL" if authority else "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        **({"ssl.ca.location": authority} if authority else {}),
    }
    if mechanism == "OAUTHBEARER":
        ends_s = time.time() + 3600
        settings["oauth_cb"] = lambda _: (token_of(password), ends_s, USER, {})
    else:
        settings |= {"sasl.username": USER, "sasl.password": password}
    return settings


def with_confluent(
    bootstrap: str, topic: str, mechanism: str, password: str, authority: str
) -> bytes:
    settings = confluent_settings(bootstrap, mechanism, password, authority)
    refusals: list[KafkaError] = []

    def on_error(error: KafkaError) -> None:
        if error.code() == KafkaError._AUTHENTICATION:
            refusals.append(error)

    producer = Producer({**settings, "error_cb": on_error, "message.timeout.ms": 20_000})
    delivered: list[object] = []
    producer.produce(topic, b"confluent", on_delivery=lambda error, _: delivered.append(error))
    deadline = time.monotonic() + WAIT_S
    while not delivered and not refusals and time.monotonic() < deadline:
        producer.poll(0.1)
    if refusals:
        producer.purge()
        producer.flush(5)
        raise KafkaException(refusals[0])
    assert delivered == [None]
    consumer = Consumer({**settings, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    try:
        message = consumer.poll(WAIT_S)
        assert message is not None
        assert message.error() is None
        value = message.value()
    finally:
        consumer.close()
    assert value is not None
    return value


CLIENTS: dict[str, tuple[Work, tuple[type[Exception], ...]]] = {
    "kafka-python": (with_kafka_python, (PythonError,)),
    # With OAUTHBEARER it does not read the refusal, sends other requests, and gets no answer.
    "aiokafka": (with_aiokafka, (AiokafkaError, TimeoutError)),
    "confluent": (with_confluent, (KafkaException,)),
}


def refuse(name: str, bootstrap: str, topic: str, mechanism: str, password: str) -> None:
    """Expect that a client is refused; in a process, because such clients leave sockets behind."""
    program = (
        "import sys; from tests.conformance.test_logins import CLIENTS\n"
        "name, *arguments = sys.argv[1:]\n"
        "work, error = CLIENTS[name]\n"
        "try: work(*arguments)\n"
        "except error as refusal: print('refused:', refusal)\n"
    )
    arguments = (name, bootstrap, topic, mechanism, password, NO_TLS)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program, *arguments],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.startswith("refused:"), done.stdout + done.stderr


# In short runs each client has one mechanism, and each mechanism a client: that of franz-go and
# Java is SCRAM-SHA-512.
WITH_MECHANISMS = by_length(
    [("kafka-python", "SCRAM-SHA-256"), ("aiokafka", "PLAIN"), ("confluent", "OAUTHBEARER")],
    list(itertools.product(CLIENTS, MECHANISMS)),
)
OTHERS_MECHANISMS = by_length(["SCRAM-SHA-512"], MECHANISMS)


@pytest.mark.parametrize("listener", by_length(["TLS"], ["", "TLS"]))
@pytest.mark.parametrize(("name", "mechanism"), WITH_MECHANISMS)
def test_a_python_client_logs_in_writes_and_reads(
    secured: Secured, new_topic: str, name: str, mechanism: str, listener: str
) -> None:
    work, _ = CLIENTS[name]
    authority = str(authority_of(secured.broker)) if listener else NO_TLS
    bootstrap = secured.bootstrap(mechanism, listener)
    assert work(bootstrap, new_topic, mechanism, PASSWORD, authority) == name.encode()


@pytest.mark.parametrize(("name", "mechanism"), WITH_MECHANISMS)
def test_a_python_client_with_a_wrong_password_is_refused(
    secured: Secured, topic: str, name: str, mechanism: str
) -> None:
    refuse(name, secured.bootstrap(mechanism), topic, mechanism, "wrong")


@pytest.mark.parametrize("name", by_length(["kafka-python"], list(CLIENTS)))
def test_a_python_client_with_a_disabled_mechanism_is_refused(
    secured: Secured, topic: str, name: str
) -> None:
    refuse(name, secured.bootstrap("PLAIN", "OAUTH"), topic, "PLAIN", PASSWORD)


def test_confluent_logs_in_again_when_its_login_ends(secured: Secured) -> None:
    admin = AdminClient(confluent_settings(secured.bootstrap("PLAIN", "SHORT"), "PLAIN", PASSWORD))
    ends = time.monotonic() + MAX_REAUTH_MS / 1000 * 1.5
    while time.monotonic() < ends:
        assert admin.list_topics(timeout=WAIT_S)
        time.sleep(0.2)


# -- Go --------------------------------------------------------------------------------------------

FRANZ_GO = Path(__file__).parents[1] / "support" / "franz_go_client"


@pytest.fixture(scope="module")
def franz_go(tmp_path_factory: pytest.TempPathFactory) -> Path:
    reason = why_no_go(FRANZ_GO)
    if reason:
        pytest.skip(reason)
    return build(FRANZ_GO, tmp_path_factory.mktemp("franz-go"))


def with_franz_go(program: Path, *words: str) -> str:
    """What the program prints: its record, or why it is refused."""
    done = subprocess.run([program, *words], check=False, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.mark.parametrize("version", by_length(["1.3"], ["", "1.2", "1.3"]))
@pytest.mark.parametrize("mechanism", OTHERS_MECHANISMS)
def test_franz_go_logs_in_writes_and_reads(
    secured: Secured, franz_go: Path, new_topic: str, mechanism: str, version: str
) -> None:
    for password, expected in ((PASSWORD, "franz-go"), ("wrong", "refused: ")):
        found = with_franz_go(
            franz_go,
            secured.bootstrap(mechanism, "TLS" if version else ""),
            *(new_topic, mechanism, USER),
            token_of(password) if mechanism == "OAUTHBEARER" else password,
            str(authority_of(secured.broker)) if version else NO_TLS,
            version,
        )
        assert found.startswith(expected)


# -- Java ------------------------------------------------------------------------------------------


def java_settings(
    directory: Path,
    mechanism: str,
    password: str = PASSWORD,
    security_protocol: str = "SASL_PLAINTEXT",
    **more: str,
) -> tuple[str, str]:
    """The options that make a tool log in."""
    module = JAVA_MODULES.get(mechanism, SCRAM_MODULE)
    options = f'username="{USER}" password="{password}"'
    if mechanism == "OAUTHBEARER":
        scope = "kafka" if password == PASSWORD else "other"
        options = (
            f'unsecuredLoginStringClaim_sub="{USER}" unsecuredLoginStringClaim_scope="{scope}"'
        )
    lines = [
        f"security.protocol={security_protocol}",
        f"sasl.mechanism={mechanism}",
        f"sasl.jaas.config={module} required {options};",
        *(f"{name.replace('_', '.')}={value}" for name, value in more.items()),
    ]
    file = directory / "client.properties"
    file.write_text("\n".join(lines) + "\n")
    return "--command-config", str(file)


@pytest.mark.java
@pytest.mark.parametrize("mechanism", OTHERS_MECHANISMS)
def test_javas_client_logs_in_writes_and_reads(
    secured: Secured, java: JavaTools, new_topic: str, tmp_path: Path, mechanism: str
) -> None:
    server = ("--bootstrap-server", secured.bootstrap(mechanism), "--topic", new_topic)
    settings = java_settings(tmp_path, mechanism)
    java.run("ConsoleProducer", *server, *settings, stdin="hello\n")
    read = java.run(
        "consumer.ConsoleConsumer",
        *(*server, *settings, "--from-beginning", "--max-messages", "1"),
        *("--timeout-ms", "20000"),
    )
    assert "hello" in read.splitlines()


@only_long("Java's client logs in above, and over TLS in test_tls.py")
@pytest.mark.java
@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-512", "OAUTHBEARER"])
def test_javas_client_logs_in_over_tls(
    secured: Secured, java: JavaTools, new_topic: str, tmp_path: Path, mechanism: str
) -> None:
    server = ("--bootstrap-server", secured.bootstrap(mechanism, "TLS"))
    settings = java_settings(
        tmp_path,
        mechanism,
        security_protocol="SASL_SSL",
        ssl_truststore_type="PEM",
        ssl_truststore_location=str(authority_of(secured.broker)),
    )
    assert new_topic in java.run("TopicCommand", *server, *settings, "--list").split()


@pytest.mark.java
@pytest.mark.parametrize("mechanism", by_length(["SCRAM-SHA-256"], ["PLAIN", "SCRAM-SHA-256"]))
@only_long("confluent logs in again above")
def test_javas_producer_logs_in_again_on_its_connection(
    secured: Secured, java: JavaTools, new_topic: str, tmp_path: Path, mechanism: str
) -> None:
    _, file = java_settings(tmp_path, mechanism)
    seconds = MAX_REAUTH_MS / 1000 * 2.5
    before = len(secured.broker.log_text())
    sent = java.run(
        "VerifiableProducer",
        *("--bootstrap-server", secured.bootstrap(mechanism, "SHORT"), "--topic", new_topic),
        *("--command-config", file, "--throughput", "20", "--max-messages", f"{20 * seconds:.0f}"),
    )
    assert sent.count("producer_send_success") == 20 * seconds
    assert "producer_send_error" not in sent
    log = secured.broker.log_text()[before:]
    assert "login has expired" not in log
    assert "failed" not in log


@pytest.mark.java
@pytest.mark.skipif(against_apache_kafka(), reason="Kafka refuses it for an open listener")
def test_kafka_configs_changes_the_users_of_plain(secured: Secured, java: JavaTools) -> None:
    tool = ("ConfigCommand", "--bootstrap-server", secured.broker.bootstrap)
    name = "listener.name.short.plain.sasl.jaas.config"
    change = f'{name}=[{PLAIN_MODULE} required user_dora="new, secret";]'
    java.run(*tool, "--alter", "--broker", "0", "--add-config", change)
    described = java.run(*tool, "--describe", "--broker", "0")
    assert f"{name}=null sensitive=true" in described
    assert "new, secret" not in described
    with WireClient(secured.ports["SHORT"]) as client:
        assert log_in_by_plain(client, "dora", "new, secret") == MAX_REAUTH_MS
    java.run(*tool, "--alter", "--broker", "0", "--delete-config", name)
    with WireClient(secured.ports["SHORT"]) as client:
        assert log_in_by_plain(client, USER, PASSWORD) == MAX_REAUTH_MS


@pytest.mark.java
def test_kafka_configs_sets_describes_and_deletes_users(
    secured: Secured, java: JavaTools, tmp_path: Path
) -> None:
    server = ("--bootstrap-server", secured.broker.bootstrap, "--entity-type", "users")
    carol = (*server, "--entity-name", "carol")
    credentials = (
        "SCRAM-SHA-256=[iterations=8192,password=pencil]",
        "SCRAM-SHA-512=[password=pencil]",
    )
    tool = "ConfigCommand"
    for credential in credentials:
        done = java.run(tool, *carol, "--alter", "--add-config", credential)
        assert "Completed updating config for user carol." in done
    described = java.run(tool, *server, "--describe")
    assert re.search(r"user-principal 'carol' are .*SCRAM-SHA-256=iterations=8192", described)
    assert "SCRAM-SHA-512=iterations=4096" in described
    settings = java_settings(tmp_path, "SCRAM-SHA-512")
    text = (tmp_path / "client.properties").read_text()
    text = text.replace(PASSWORD, "pencil").replace(f'"{USER}"', '"carol"')
    (tmp_path / "client.properties").write_text(text)
    listing = ("TopicCommand", "--bootstrap-server", secured.bootstrap("PLAIN"), *settings)
    java.run(*listing, "--list")
    java.run(tool, *carol, "--alter", "--delete-config", "SCRAM-SHA-512")
    assert "SCRAM-SHA-512" not in java.run(tool, *carol, "--describe")
    with pytest.raises(ToolFailedError, match="SaslAuthenticationException"):
        java.run(*listing, "--list")
