"""`odradek groups`."""

import json
from collections.abc import Callable, Iterator

import pytest
from click.testing import Result
from confluent_kafka import Consumer, Producer, TopicPartition

from odradek.broker.testing import Broker, Fault
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from odradek.protocol.primitives import random_uuid, uuid_text
from tests.support.wire import WireClient

Run = Callable[..., Result]
LIMIT_S = 20.0


@pytest.fixture
def orders(broker: Broker) -> Iterator[Consumer]:
    """Ten records in two partitions, and a member of the group `readers` that has read four."""
    broker.create_topic("orders", 2)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for number in range(10):
        producer.produce("orders", str(number), partition=number % 2, timestamp=1000 + number)
    assert producer.flush(LIMIT_S) == 0
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "readers",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe(["orders"])
    while len(consumer.assignment()) < 2:
        consumer.poll(0.05)
    offsets = [TopicPartition("orders", 0, 1), TopicPartition("orders", 1, 3)]
    consumer.commit(offsets=offsets, asynchronous=False)
    yield consumer
    consumer.close()


def test_groups_are_listed_and_described_with_their_lag(run: Run, orders: Consumer) -> None:
    listed = json.loads(run("groups", "list", "--json").stdout)
    assert listed == [
        {"group": "readers", "type": "classic", "protocol": "consumer", "state": "stable"}
    ]
    (group,) = json.loads(run("groups", "describe", "readers", "--json").stdout)
    assert (group["group"], group["state"], len(group["members"])) == ("readers", "stable", 1)
    lags = [(each["partition"], each["committed"], each["lag"]) for each in group["partitions"]]
    assert lags == [(0, 1, 4), (1, 3, 2)]
    assert {each["member"] for each in group["partitions"]} == {group["members"][0]["member"]}
    lines = run("groups", "describe", "readers").stdout.splitlines()
    assert lines[0] == "readers: stable, 1 member"
    assert lines[2].split()[:5] == ["orders", "0", "1", "5", "4"]


def test_a_partition_without_an_answer_does_not_hide_the_others(
    run: Run, broker: Broker, orders: Consumer
) -> None:
    error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    broker.inject(
        Fault(api=ApiKey.LIST_OFFSETS, topic="orders", partition=0, error=error, times=None)
    )
    lines = run("groups", "describe", "readers").stdout.splitlines()
    assert lines[2].split()[:5] == ["orders", "0", "1", "-", "-"]
    assert lines[3].split()[:5] == ["orders", "1", "3", "5", "2"]
    orders.close()
    done = run("groups", "reset-offsets", "readers", "--to=latest")
    assert (done.exit_code, len(done.stderr.splitlines())) == (1, 1)


@pytest.mark.parametrize(
    ("target", "after"),
    [
        ("earliest", [0, 0]),
        ("latest", [5, 5]),
        ("2", [2, 2]),
        ("+1", [2, 4]),
        ("-9", [0, 0]),
        ("1970-01-01T00:00:01.004", [2, 2]),
        ("0s", [5, 5]),
    ],
)
def test_a_reset_is_shown_before_it_is_made(
    run: Run, broker: Broker, orders: Consumer, target: str, after: list[int]
) -> None:
    orders.close()
    words = ["groups", "reset-offsets", "readers", f"--to={target}", "--json"]
    changes = json.loads(run(*words).stdout)
    assert [(each["before"], each["after"]) for each in changes] == list(
        zip([1, 3], after, strict=True)
    )
    assert broker.committed("readers", "orders") == {0: 1, 1: 3}
    assert run(*words, "--execute").exit_code == 0
    assert broker.committed("readers", "orders") == dict(enumerate(after))


def test_a_group_that_never_was_gets_offsets(run: Run, broker: Broker, orders: Consumer) -> None:
    done = run("groups", "reset-offsets", "new", "--to=latest", "--topic=orders", "--execute")
    assert done.exit_code == 0, done.stderr
    assert broker.committed("new", "orders") == {0: 5, 1: 5}


def test_groups_of_all_kinds_are_listed(run: Run, broker: Broker, orders: Consumer) -> None:
    heartbeat = ShareGroupHeartbeatRequest(
        group_id="workers",
        member_id=uuid_text(random_uuid()),
        member_epoch=0,
        subscribed_topic_names=["orders"],
    )
    with WireClient(int(broker.bootstrap_servers.partition(":")[2])) as client:
        answer = client.ask(heartbeat, ShareGroupHeartbeatResponse, 1)
        assert answer.error_code == 0
        _, listed = json.loads(run("groups", "list", "--json").stdout)
    assert listed == {"group": "workers", "type": "share", "protocol": "share", "state": "stable"}


def test_groups_that_a_broker_does_not_list_are_not_left_out(run: Run, broker: Broker) -> None:
    error = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    broker.inject(Fault(api=ApiKey.LIST_GROUPS, error=error, times=None))
    done = run("groups", "list")
    assert (done.exit_code, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert "COORDINATOR_LOAD_IN_PROGRESS" in line


def test_an_offset_that_is_refused_is_named(run: Run, broker: Broker, orders: Consumer) -> None:
    orders.close()
    error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    broker.inject(Fault(api=ApiKey.OFFSET_COMMIT, topic="orders", partition=1, error=error))
    done = run("groups", "reset-offsets", "readers", "--to=latest", "--execute")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith("odradek: set offset of orders-1: ")
    assert "TOPIC_AUTHORIZATION_FAILED" in done.stderr


def test_groups_with_members_are_left_alone(run: Run, broker: Broker, orders: Consumer) -> None:
    reset = run("groups", "reset-offsets", "readers", "--to=latest", "--execute")
    assert (reset.exit_code, len(reset.stderr.splitlines())) == (1, 1)
    assert "stop them first" in reset.stderr
    deleted = run("groups", "delete", "readers")
    assert (deleted.exit_code, len(deleted.stderr.splitlines())) == (1, 1)
    assert "stop its members first" in deleted.stderr
    orders.close()
    deleted = run("groups", "delete", "missing", "readers")
    assert (deleted.exit_code, deleted.stdout) == (1, "deleted readers\n")
    assert deleted.stderr.startswith("odradek: delete group missing: ")
    assert json.loads(run("groups", "list", "--json").stdout) == []


@pytest.mark.parametrize(
    "words",
    [
        ["describe", "missing"],
        ["delete", "missing"],
        ["reset-offsets", "missing", "--to=latest"],
        ["reset-offsets", "missing", "--to=latest", "--topic=missing"],
        ["reset-offsets", "missing", "--to=yesterday", "--topic=orders"],
        ["reset-offsets", "readers", "--to=6"],
        ["reset-offsets", "readers", "--to=1795422600000"],
        ["reset-offsets", "readers", "--to=2999-01-01"],
        ["reset-offsets", "missing", "--to=+1", "--topic=orders"],
    ],
)
def test_a_mistake_is_one_line(run: Run, orders: Consumer, words: list[str]) -> None:
    done = run("groups", *words)
    assert (done.exit_code, done.stdout, len(done.stderr.splitlines())) == (1, "", 1)
