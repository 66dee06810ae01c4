"""The commands of Kafka's images that the image of odradek has, beside Kafka's own."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from odradek.tools.client.failure import CommandError
from tests.support.broker_process import BrokerProcess, free_ports
from tests.support.docker_scripts import DOCKER, kafka_commands
from tests.support.java_tools import JavaTools

pytestmark = pytest.mark.slow

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    broker = BrokerProcess(tmp_path_factory.mktemp("broker"), {})
    broker.start()
    yield broker
    broker.stop()


def started(directory: Path, name: str, *words: str) -> "subprocess.Popen[str]":
    """A command, called by its name as the links of the image call it."""
    link = directory / name
    if not link.is_symlink():
        link.symlink_to(DOCKER / "kafka_commands.py")
    return subprocess.Popen(
        [sys.executable, str(link), *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def run(name: str, *words: str) -> "subprocess.CompletedProcess[str]":
        with started(tmp_path, name, *words) as process:
            out, error = process.communicate(timeout=120)
        assert "Traceback" not in error
        return subprocess.CompletedProcess(words, process.returncode, out, error)

    return run


def test_a_topic_is_made_once_enlarged_and_deleted(broker: BrokerProcess, run: Run) -> None:
    def topics(*words: str) -> tuple[int, str, str]:
        done = run("kafka-topics.sh", "--bootstrap-server", broker.bootstrap, *words)
        return done.returncode, done.stdout, done.stderr

    make = ("--create", "--topic", "orders", "--partitions", "2", "--replication-factor", "1")
    retention = ("--config", "retention.ms=60000", "--config", "cleanup.policy=compact,delete")
    assert topics(*make, *retention) == (0, "Created topic orders.\n", "")
    failed = "Error while executing topic command : "
    assert topics(*make) == (1, "", f"{failed}Topic 'orders' already exists.\n")
    assert topics(*make, "--if-not-exists") == (0, "", "")
    assert topics("--alter", "--topic", "orders", "--partitions", "3") == (0, "", "")
    assert topics("--list", "--topic", "or.*|x") == (0, "orders\n", "")
    code, described, _ = topics("--describe", "--topic", "orders")
    assert code == 0
    assert "PartitionCount: 3" in described
    assert "Configs: cleanup.policy=compact,delete," in described
    assert "retention.ms=60000" in described
    last = "\tTopic: orders\tPartition: 2\tLeader: 0\tReplicas: 0\tIsr: 0\tElr: \tLastKnownElr: \n"
    assert described.endswith(last)
    assert topics("--delete", "--topic", "orders") == (0, "", "")
    missing = f"{failed}Topic 'orders' does not exist as expected\n"
    for action in ("--describe", "--delete", "--alter"):
        assert topics(action, "--topic", "orders") == (1, "", missing)
        assert topics(action, "--topic", "orders", "--if-exists") == (0, "", "")
    assert topics(*make[:-1], "9")[0] == 1, "there are not so many brokers"


@pytest.mark.java
def test_topics_are_shown_as_by_kafkas_own_command(
    broker: BrokerProcess, run: Run, java: JavaTools
) -> None:
    server = ("--bootstrap-server", broker.bootstrap)
    for name, partitions in (("b.c", "3"), ("a", "1")):
        run("kafka-topics", *server, "--create", "--topic", name, "--partitions", partitions)
    for words in (["--list"], ["--describe", "--topic", "a|b.c"]):
        own = run("kafka-topics", *server, *words).stdout.splitlines()
        theirs = java.run("TopicCommand", *server, *words).splitlines()
        shown = sorted(line.rstrip() for line in own)
        assert shown == sorted(line.rstrip() for line in theirs)


def test_the_commands_of_health_checks_in_public_compose_files_succeed(
    broker: BrokerProcess, tmp_path: Path
) -> None:
    for name in ("kafka-topics", "kafka-cluster.sh", "nc"):
        (tmp_path / "links").mkdir(exist_ok=True)
        (tmp_path / "links" / name).symlink_to(DOCKER / "kafka_commands.py")
        start = f'#!/bin/sh\nexec {sys.executable} {tmp_path}/links/{name} "$@"\n'
        (tmp_path / name).write_text(start)
        (tmp_path / name).chmod(0o755)
    script = """
        set -e -o pipefail
        kafka-topics -bootstrap-server localhost:$PORT -create -topic checked
        kafka-topics --bootstrap-server :$PORT --describe checked | grep -q 'Leader: 0'
        kafka-topics --bootstrap-server PLAINTEXT://localhost:$PORT --list | head -1
        kafka-topics --bootstrap-server localhost:$PORT --describe --unavailable-partitions
        kafka-topics --bootstrap-server localhost:$PORT --describe --under-replicated-partitions
        kafka-cluster.sh cluster-id --bootstrap-server localhost:$PORT | grep -q '^Cluster ID: .'
        kafka-topics --version
        nc -z localhost $PORT -w 2
        echo well
    """
    done = subprocess.run(
        ["bash", "-c", script],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "PORT": str(broker.port)},
    )
    assert (done.returncode, done.stderr) == (0, "")
    first, *_, last = done.stdout.splitlines()
    assert (first, last) == ("Created topic checked.", "well")
    assert "Partition:" not in done.stdout, "no partition has a problem"


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["INT", "TERM"]
)
def test_a_signal_ends_a_command_that_waits(number: int, code: int, tmp_path: Path) -> None:
    with started(tmp_path, "cub", "zk-ready", "127.0.0.1:1", "60") as cub:
        deadline = time.monotonic() + 30
        while not has_handler(cub.pid, signal.SIGTERM) and time.monotonic() < deadline:
            time.sleep(0.01)
        cub.send_signal(number)
        _, error = cub.communicate(timeout=30)
    assert (cub.returncode, error) == (code, "")


def has_handler(pid: int, number: int) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    (caught,) = re.findall(r"^SigCgt:\s*([0-9a-f]+)", status, re.MULTILINE)
    return bool(int(caught, 16) >> (number - 1) & 1)


def test_settings_and_users_are_made(broker: BrokerProcess, run: Run) -> None:
    server = ("--bootstrap-server", broker.bootstrap)
    run("kafka-topics", *server, "--create", "--topic", "set", "--if-not-exists")
    of_topic = (*server, "--entity-type", "topics", "--entity-name", "set")
    change = ("--alter", "--add-config", "retention.ms=5,cleanup.policy=[compact,delete]")
    assert run("kafka-configs", *of_topic, *change).stdout == (
        "Completed updating config for topic set.\n"
    )
    run("kafka-configs", *of_topic, "--alter", "--delete-config", "retention.ms")
    assert run("kafka-configs", *of_topic, "--describe").stdout == (
        "Dynamic configs for topic set are:\n"
        "  cleanup.policy=compact,delete sensitive=false synonyms="
        "{DYNAMIC_TOPIC_CONFIG:cleanup.policy=compact,delete,"
        " DEFAULT_CONFIG:log.cleanup.policy=delete}\n"
    )
    password = "SCRAM-SHA-512=[iterations=8192,password=a],SCRAM-SHA-256=[password=c]"
    user = (*server, "--alter", "--entity-type", "users", "--entity-name", "ann")
    done = run("kafka-configs.sh", *user, "--add-config", password)
    assert (done.stdout, done.stderr) == ("Completed updating config for user ann.\n", "")
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    found = admin.describe_user_scram_credentials(["ann"])["ann"].result(30)
    made = {(one.mechanism.name, one.iterations) for one in found.scram_credential_infos}
    assert made == {("SCRAM_SHA_512", 8192), ("SCRAM_SHA_256", 4096)}
    shown = run("kafka-configs", *server, "--describe", "--entity-type", "users").stdout
    assert shown == (
        "SCRAM credential configs for user-principal 'ann' are "
        "SCRAM-SHA-256=iterations=4096, SCRAM-SHA-512=iterations=8192\n"
    )
    for wrong in ("consumer_byte_rate=5", "x", "SCRAM-SHA-256=[iterations=many,password=a]"):
        assert run("kafka-configs.sh", *user, "--add-config", wrong).returncode == 1


def test_settings_are_shown_of_all_if_none_is_named(broker: BrokerProcess, run: Run) -> None:
    server = ("--bootstrap-server", broker.bootstrap)
    of_brokers = (*server, "--entity-type", "brokers")
    change = ("--alter", "--add-config", "log.cleaner.threads=2")
    assert run("kafka-configs", *of_brokers, "--entity-default", *change).stdout == (
        "Completed updating default config for brokers in the cluster.\n"
    )
    assert run("kafka-configs", *of_brokers, "--describe").stdout == (
        "Dynamic configs for broker 0 are:\n"
        "Default configs for brokers in the cluster are:\n"
        "  log.cleaner.threads=2 sensitive=false synonyms="
        "{DYNAMIC_DEFAULT_BROKER_CONFIG:log.cleaner.threads=2}\n"
        "  min.insync.replicas=1 sensitive=false synonyms="
        "{DYNAMIC_DEFAULT_BROKER_CONFIG:min.insync.replicas=1}\n"
    )
    all_of_broker = (*server, "--describe", "--all", "--broker", "0")
    secret = "  sasl.jaas.config=null sensitive=true synonyms={}\n"
    assert secret in run("kafka-configs", *all_of_broker).stdout
    run("kafka-topics", *server, "--create", "--topic", "shown")
    shown = run("kafka-configs", *server, "--describe", "--entity-type", "topics").stdout
    assert "Dynamic configs for topic shown are:\n" in shown


def test_an_id_for_a_new_cluster_is_random(run: Run) -> None:
    first, second = (run("kafka-storage.sh", "random-uuid").stdout for _ in range(2))
    assert re.fullmatch(r"[\w][\w-]{21}\n", first)
    assert first != second


def test_the_broker_says_what_it_serves(broker: BrokerProcess, run: Run) -> None:
    done = run("kafka-broker-api-versions.sh", "--bootstrap-server", broker.bootstrap)
    assert done.returncode == 0
    assert done.stdout.startswith(f"{broker.bootstrap} (id: 0 rack: null isFenced: false) -> (\n")
    assert "\tProduce(0): 0 to 13 [usable: 13],\n" in done.stdout


def test_cub_and_topics_wait_until_the_broker_is_there(tmp_path: Path, run: Run) -> None:
    broker = BrokerProcess(tmp_path / "later", {})
    host, _, port = broker.bootstrap.partition(":")
    words = ("kafka-ready", "-b", broker.bootstrap, "1", "100")
    listing = ("--bootstrap-server", broker.bootstrap, "--list")
    with (
        started(tmp_path, "cub", *words) as cub,
        started(tmp_path, "kafka-topics", *listing) as topics,
    ):
        # Docker does this at a published port before the container listens.
        with socket.create_server((host, int(port))) as early:
            early.settimeout(100)
            for _ in range(20):  # an attempt makes three connections
                early.accept()[0].close()
        broker.start()
        try:
            assert (cub.wait(100), topics.wait(100)) == (0, 0)
        finally:
            broker.stop()
    assert run("cub", "kafka-ready", "-b", broker.bootstrap, "1", "0").returncode == 1


def test_a_command_with_the_wrong_protocol_does_not_wait(
    broker: BrokerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: float) -> None:
        raise AssertionError("the broker has answered")

    settings = {"bootstrap.servers": broker.bootstrap, "security.protocol": "SSL"}
    monkeypatch.setattr(time, "sleep", fail)
    with pytest.raises(CommandError, match="speaks Kafka's protocol without TLS"):
        kafka_commands.connection_within(100, settings)


def test_cub_fails_if_there_are_too_few_brokers(broker: BrokerProcess, run: Run) -> None:
    done = run("cub", "kafka-ready", "-b", broker.bootstrap, "2", "1")
    assert (done.returncode, done.stderr) == (1, "expected 2 brokers, found 1\n")
    place = broker.bootstrap + "/chroot"
    assert run("cub", "zk-ready", place, "1").returncode == 0


def test_nc_says_whether_a_port_is_open(run: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        assert run("nc", "-z", "127.0.0.1", port).returncode == 0
        assert "succeeded" in run("nc", "-zvw1", "127.0.0.1", port).stderr
    assert run("nc", "-z", "127.0.0.1", port).returncode == 1


@pytest.mark.parametrize(
    "words",
    [
        ("kafka-topics", "--zookeeper", "zookeeper:2181", "--list"),
        ("kafka-topics", "--bootstrap-server", "127.0.0.1:1", "--list", "--nonsense"),
        ("kafka-topics", "--bootstrap-server", "127.0.0.1:1", "--create"),
        (
            *("kafka-topics", "--bootstrap-server", "127.0.0.1:1", "--describe"),
            *("--unavailable-partitions", "--under-replicated-partitions"),
        ),
        ("kafka-topics", "--bootstrap-server", "127.0.0.1", "--list"),
        ("kafka-cluster", "unregister", "--bootstrap-server", "127.0.0.1:1"),
        ("kafka-storage", "format", "-t", "id", "-c", "server.properties"),
        ("cub", "kafka-ready", "-b", "no..host:1", "1", "0"),
        ("kafka-configs", "--bootstrap-server", "127.0.0.1:1", "--describe"),
        ("cub", "ensure-topic", "a"),
        ("cub", "kafka-ready", "-z", "zookeeper:2181", "1", "1"),
        ("nc", "-z", "127.0.0.1"),
        ("nc", "-z", "127.0.0.1", "no-port"),
    ],
)
def test_what_is_not_there_fails_at_once_with_a_reason(words: tuple[str, ...], run: Run) -> None:
    done = run(*words)
    assert (done.returncode, done.stdout) == (1, "")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ("kafka-topics --list --bootstrap-server {} --command-config", "--command-config"),
        ("kafka-cluster cluster-id --bootstrap-server {} --command-config", "--command-config"),
        ("kafka-cluster cluster-id --bootstrap-server {} --config", "--command-config"),
        ("cub kafka-ready 1 9 -b {} -c", "-c"),
    ],
)
def test_advice_names_an_option_that_the_command_has(
    given: str, named: str, broker: BrokerProcess, run: Run, tmp_path: Path
) -> None:
    file = tmp_path / "client.properties"
    file.write_text("security.protocol=SASL_PLAINTEXT\nsasl.mechanism=GSSAPI\n")
    done = run(*given.format(broker.bootstrap).split(), str(file))
    assert done.returncode == 1
    assert done.stderr.endswith(f" in the file of {named}\n")


def test_a_command_that_is_not_there_names_those_that_are(run: Run) -> None:
    done = run("kafka-acls.sh", "--list")
    assert done.returncode == 127
    assert done.stderr.startswith("kafka-acls: the image of odradek has only kafka-topics, ")


def test_the_image_has_a_link_for_each_name(tmp_path: Path) -> None:
    kafka_commands.install(tmp_path)
    for path in (
        *("usr/bin/kafka-topics", "opt/kafka/bin/kafka-topics.sh", "usr/local/bin/cub"),
        "opt/bitnami/kafka/bin/kafka-console-producer.sh",
    ):
        assert (tmp_path / path).readlink() == Path("/opt/odradek/docker/kafka_commands.py")
    targets = {path.readlink() for path in tmp_path.rglob("*") if path.is_symlink()}
    for target in targets:
        script = DOCKER / target.name
        assert os.access(script, os.X_OK), f"{script} is a program"
        assert script.read_text().startswith("#!/usr/local/bin/python\n")


def test_the_entry_point_runs_another_command(tmp_path: Path) -> None:
    (port,) = free_ports(1)

    def entry(*words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, str(DOCKER / "entrypoint.py"), *words],
            check=False,
            capture_output=True,
            text=True,
            env={**os.environ, "KAFKA_LISTENERS": f"PLAINTEXT://:{port}"},
            cwd=tmp_path,
        )

    assert entry("echo", "--print", "1").stdout == "--print 1\n"
    assert entry("no-such-command").returncode == 127
    bitnami = "/opt/bitnami/scripts/kafka"
    printed = entry("/etc/confluent/docker/run", "--print").stdout
    assert printed == entry("--print").stdout
    assert printed == entry(f"{bitnami}/entrypoint.sh", f"{bitnami}/run.sh", "--print").stdout
    assert f"listeners=PLAINTEXT://:{port}" in printed
