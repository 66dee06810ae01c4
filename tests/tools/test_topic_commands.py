"""`odradek topics`, and how all commands that talk to a broker fail."""

import json
import socket
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

import pytest
from click.testing import Result
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, ClusterMetadata, ListOffsetsResultInfo, OffsetSpec
from typer.testing import CliRunner

from odradek.broker.testing import Broker
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.tools.app import app
from odradek.tools.client import admin, request_parts, topics
from odradek.tools.client.failure import CommandError

Run = Callable[..., Result]
LIMIT_S = 20.0


def test_topics_are_created_described_altered_and_deleted(run: Run, broker: Broker) -> None:
    done = run("topics", "create", "orders", "-p", "2", "--set", "retention.ms=1000")
    assert (done.exit_code, done.stdout) == (0, "created orders\n")
    done = run("topics", "alter", "orders", "-p", "3", "--unset", "retention.ms")
    assert (done.exit_code, done.stdout) == (0, "altered orders\n")
    assert run("topics", "alter", "orders", "--set", "cleanup.policy=compact").exit_code == 0
    (topic,) = json.loads(run("topics", "describe", "orders", "--json").stdout)
    assert (topic["topic"], topic["settings"]) == ("orders", {"cleanup.policy": "compact"})
    first = {"partition": 0, "leader": 0, "isr": [0], "first_offset": 0, "end_offset": 0}
    assert (len(topic["partitions"]), topic["partitions"][0]) == (3, first)
    listed = json.loads(run("topics", "list", "--json").stdout)
    assert listed == [{"topic": "orders", "partitions": 3, "offsets": 0}]
    assert run("topics", "delete", "orders").stdout == "deleted orders\n"
    assert json.loads(run("topics", "list", "--json").stdout) == []


def test_tables_show_what_json_says(run: Run, broker: Broker) -> None:
    broker.create_topic("orders", 1, {"retention.ms": "1000"})
    assert run("topics", "list").stdout.splitlines()[-1].split() == ["orders", "1", "0"]
    lines = run("topics", "describe", "orders").stdout.splitlines()
    assert lines[0] == "orders"
    assert lines[2].split() == ["0", "0", "[0]", "0", "0"]
    assert lines[3] == "  retention.ms=1000"


def test_a_partition_without_a_leader_does_not_hide_the_others(
    run_on_cluster: Run, cluster: Broker
) -> None:
    cluster.create_topic("orders", 2)
    for partition in (0, 1):
        cluster.reassign("orders", partition, [partition + 1])
        cluster.produce("orders", b"1", partition=partition)
    cluster.node(2).kill()
    cluster.notice_now()
    lines = run_on_cluster("topics", "describe", "orders").stdout.splitlines()
    assert lines[2].split() == ["0", "1", "[1]", "0", "1"]
    number, leader, *_, first, end = lines[3].split()
    assert (number, leader, first, end) == ("1", "-1", "-", "-")
    assert json.loads(run_on_cluster("topics", "list", "--json").stdout) == [
        {"topic": "orders", "partitions": 2, "offsets": None}
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["create", "taken"], ["taken", "already exists", "--if-not-exists"]),
        (["create", "bad/name"], ["bad/name"]),
        (["create", "new", "--set", "retention.ms=often"], ["retention.ms"]),
        (["describe", "missing"], ["missing", "odradek topics list"]),
        (["delete", "missing"], ["missing", "odradek topics list"]),
        (["alter", "taken", "-p", "1"], ["taken", "can only grow"]),
        (["alter", "taken", "--set", "no.such.key=1"], ["no.such.key"]),
    ],
)
def test_a_refusal_is_one_line_that_says_what_to_do(
    run: Run, broker: Broker, arguments: list[str], words: list[str]
) -> None:
    broker.create_topic("taken", 2)
    done = run("topics", *arguments)
    assert (done.exit_code, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert all(word in line for word in words), line


def test_a_new_topic_has_as_many_replicas_as_the_broker_says(
    run_on_cluster: Run, cluster: Broker
) -> None:
    assert run_on_cluster("topics", "create", "orders").exit_code == 0
    assert len(cluster.partition("orders", 0).replicas) == 2


def test_creating_a_topic_that_exists_can_be_allowed(run: Run, broker: Broker) -> None:
    broker.create_topic("taken")
    done = run("topics", "create", "taken", "new", "--if-not-exists")
    assert (done.exit_code, done.stdout) == (0, "created new\n")


def test_a_topic_that_appears_meanwhile_can_be_allowed(run: Run, broker: Broker) -> None:
    broker.fail_next(ApiKey.CREATE_TOPICS, ErrorCode.TOPIC_ALREADY_EXISTS)
    done = run("topics", "create", "orders", "--if-not-exists")
    assert (done.exit_code, done.output) == (0, "")


@pytest.mark.parametrize(("command", "done"), [("create", "created"), ("delete", "deleted")])
def test_what_is_done_and_all_that_is_not_are_named(
    run: Run, broker: Broker, command: str, done: str
) -> None:
    fits, *others = ("new", "taken", "bad/name") if command == "create" else ("taken", "x", "y")
    broker.create_topic("taken")
    result = run("topics", command, others[0], fits, others[1])
    assert (result.exit_code, result.stdout) == (1, f"{done} {fits}\n")
    (line,) = result.stderr.splitlines()
    assert all(f"{command} topic {name}: " in line for name in others)


@pytest.mark.parametrize(
    "address", ["127.0.0.1:{port}", "nowhere.invalid:9092", "no-port", "a..b:1"]
)
def test_a_broker_that_cannot_be_reached_is_named_at_once(address: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    address = address.format(port=port)
    done = CliRunner().invoke(app, ["topics", "list", "--bootstrap", address])
    assert done.exit_code == 1
    (line,) = done.stderr.splitlines()
    assert address in line
    for words in ("users list", "consume orders", "produce orders", "transactions list"):
        other = CliRunner().invoke(app, [*words.split(), "--bootstrap", address])
        assert (other.exit_code, other.stderr) == (1, done.stderr)


def test_settings_of_java_clients_are_understood(broker: Broker, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text(
        f"bootstrap.servers={broker.bootstrap_servers}\n"
        "key.serializer=org.apache.kafka.common.serialization.StringSerializer\n"
        "security.protocol=PLAINTEXT\n"
    )
    words = ["topics", "list", "--json", "--config", str(file)]
    done = CliRunner().invoke(app, words)
    assert (done.exit_code, done.stdout) == (0, "[]\n"), done.stderr
    file.write_text("ssl.truststore.location=/x.jks\n")
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 1
    assert "JKS" in done.stderr


def test_a_topic_that_is_deleted_meanwhile_does_not_hide_the_others(
    run: Run, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def before_a_deletion(client: AdminClient) -> ClusterMetadata:
        found = admin.cluster(client)
        for future in client.delete_topics(["gone"]).values():
            future.result(LIMIT_S)
        return found

    broker.create_topic("gone")
    broker.create_topic("orders")
    monkeypatch.setattr(topics, "cluster", before_a_deletion)
    assert json.loads(run("topics", "list", "--json").stdout) == [
        {"topic": "gone", "partitions": 1, "offsets": None},
        {"topic": "orders", "partitions": 1, "offsets": 0},
    ]


def test_the_offsets_of_many_partitions_are_asked_for_in_parts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sizes = []

    class Admin(AdminClient):
        def list_offsets(  # type: ignore[override]
            self, wanted: dict[TopicPartition, OffsetSpec], **_: object
        ) -> dict[TopicPartition, Future[ListOffsetsResultInfo]]:
            sizes.append(len(wanted))
            futures = {key: Future[ListOffsetsResultInfo]() for key in wanted}
            for key, future in futures.items():
                future.set_result(ListOffsetsResultInfo(key.partition, -1, -1))
            return futures

    monkeypatch.setattr(request_parts, "ITEMS_OF_A_REQUEST", 2)
    keys = [("orders", index) for index in range(5)]
    found = admin.known_offsets(Admin({}), keys, OffsetSpec.latest())
    assert found == {key: key[1] for key in keys}
    assert sizes == [2, 2, 1]


def test_an_answer_that_does_not_come_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admin, "TIMEOUT_S", 0.0)
    with pytest.raises(CommandError, match=r"^settings of orders: no answer within 0 s; "):
        admin.result("settings of orders", Future())
