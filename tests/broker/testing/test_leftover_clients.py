"""Clients of earlier tests that make topics or join groups after a reset."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from odradek.broker.security.session import Session
from odradek.broker.testing import Broker, LeftoverClient
from odradek.broker.testing.leftover_clients import JOIN_GROUPS, MAKE_TOPICS, LeftoverClients
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from odradek.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from odradek.protocol.messages.create_topics import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    CreateTopicsResult,
    CreateTopicsTopic,
)
from odradek.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from odradek.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from odradek.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from tests.broker.testing.test_plugin import run_pytest
from tests.support.wire import WireClient

SESSION_MS = 45_000
PHASE = "PYTEST_CURRENT_TEST"


@pytest.fixture(scope="module")
def started() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def broker(started: Broker) -> Broker:
    started.reset()
    return started


def client_of(broker: Broker, client_id: str = "forgotten") -> WireClient:
    client = WireClient(int(broker.bootstrap_servers.rpartition(":")[2]), client_id=client_id)
    request = ApiVersionsRequest(client_software_name="wire", client_software_version="1.0")
    client.ask(request, ApiVersionsResponse, 3)
    return client


def make_by_metadata(client: WireClient, *names: str, creates: bool = True) -> None:
    topics = [MetadataRequestTopic(name=name) for name in names]
    request = MetadataRequest(topics=topics, allow_auto_topic_creation=creates)
    client.ask(request, MetadataResponse, 9)


def new_topic(name: str) -> CreateTopicsTopic:
    return CreateTopicsTopic(
        name=name, num_partitions=1, replication_factor=1, assignments=[], configs=[]
    )


def create(client: WireClient, *names: str) -> None:
    topics = [new_topic(name) for name in names]
    request = CreateTopicsRequest(topics=topics, timeout_ms=SESSION_MS)
    client.ask(request, CreateTopicsResponse, 5)


def join(client: WireClient, group: str) -> None:
    client.ask(FindCoordinatorRequest(coordinator_keys=[group]), FindCoordinatorResponse, 4)
    request = JoinGroupRequest(
        group_id=group,
        member_id="",
        group_instance_id=None,
        session_timeout_ms=SESSION_MS,
        rebalance_timeout_ms=SESSION_MS,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    answer = client.ask(request, JoinGroupResponse, 5)
    assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED


def heartbeat(client: WireClient, group: str, epoch: int) -> None:
    client.ask(FindCoordinatorRequest(coordinator_keys=[group]), FindCoordinatorResponse, 4)
    request = ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id="kJXhNG2ISDWqP4bkVqGqpw",
        member_epoch=epoch,
        rebalance_timeout_ms=SESSION_MS,
        subscribed_topic_names=["orders"],
        topic_partitions=[],
    )
    client.ask(request, ConsumerGroupHeartbeatResponse, 1)


def test_a_client_that_was_connected_before_the_reset_is_named(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PHASE, "test_it.py::test_a (setup)")
    broker.reset()
    with client_of(broker) as client:
        join(client, "readers")
        make_by_metadata(client, "orders")
        assert broker.leftover_clients() == [], "it is a client of this test"
        monkeypatch.setenv(PHASE, "test_it.py::test_b (setup)")
        broker.reset()
        assert broker.leftover_clients() == [], "it has done nothing yet"
        make_by_metadata(client, "orders", "payments")
        make_by_metadata(client, "orders")
        join(client, "readers")
        join(client, "readers")
        assert broker.leftover_clients() == [
            LeftoverClient(
                client_id="forgotten",
                software="wire",
                software_version="1.0",
                address=f"127.0.0.1:{client.local_port}",
                connected_after="test_it.py::test_a",
                topics=["orders", "payments"],
                groups=["readers"],
            )
        ]
        broker.reset()
        assert broker.leftover_clients() == []
        heartbeat(client, "modern", 0)
        (leftover,) = broker.leftover_clients()
        assert (leftover.groups, leftover.connected_after) == (["modern"], "test_it.py::test_a")


def test_only_what_changes_something_makes_a_client_a_leftover_one(broker: Broker) -> None:
    with client_of(broker) as client:
        broker.reset()
        broker.create_topic("orders")
        make_by_metadata(client, "orders")
        make_by_metadata(client, "payments", creates=False)
        create(client, "orders")
        heartbeat(client, "modern", 3)
        assert broker.leftover_clients() == []
        create(client, "orders", "payments")
        assert [leftover.topics for leftover in broker.leftover_clients()] == [["payments"]]


async def test_a_topic_of_another_client_is_not_that_of_the_leftover_one() -> None:
    topics: set[str] = set()

    async def refuse(_: object, __: object) -> CreateTopicsResponse:
        topics.add("orders")
        refused = CreateTopicsResult(name="orders", error_code=ErrorCode.TOPIC_ALREADY_EXISTS)
        return CreateTopicsResponse(topics=[refused])

    leftover_clients = LeftoverClients(dict.fromkeys((*MAKE_TOPICS, *JOIN_GROUPS), refuse))
    session = cast(Session, object())
    leftover_clients.begin("test_it", [session])
    broker = SimpleNamespace(metadata=SimpleNamespace(topics=topics))
    context = SimpleNamespace(session=session, broker=broker)
    handle = cast(Any, leftover_clients.handlers[ApiKey.CREATE_TOPICS])
    await handle(context, CreateTopicsRequest(topics=[new_topic("orders")], timeout_ms=SESSION_MS))
    assert leftover_clients.found() == []


def test_a_client_that_connects_after_the_reset_is_no_leftover_one(broker: Broker) -> None:
    with client_of(broker), client_of(broker, "later") as later:
        later.close()
        broker.reset()
        with client_of(broker, "new") as new:
            make_by_metadata(new, "orders")
            join(new, "readers")
            assert broker.leftover_clients() == []
        snapshot = broker.snapshot()
        broker.restore(snapshot)
        with client_of(broker, "new") as new:
            make_by_metadata(new, "payments")
            assert broker.leftover_clients() == []


TESTS = """
import pytest
from confluent_kafka import Consumer, Producer

forgotten = []

@pytest.fixture(scope="session")
def producer(odradek_session_broker):
    return Producer({"bootstrap.servers": odradek_session_broker.bootstrap_servers})

def send(producer):
    producer.produce("orders", b"coffee")
    assert producer.flush(20) == 0

def test_forgets_a_consumer(odradek_broker, producer):
    send(producer)
    servers = odradek_broker.bootstrap_servers
    settings = {"group.id": "readers", "client.id": "till", "auto.offset.reset": "earliest"}
    consumer = Consumer({"bootstrap.servers": servers, **settings})
    consumer.subscribe(["orders"])
    while consumer.poll(1) is None:
        pass
    forgotten.append(consumer)

def test_fails(odradek_broker, producer):
    send(producer)
    for _ in range(600):  # a minute
        if any(each.groups for each in odradek_broker.leftover_clients()):
            break
        forgotten[0].poll(0.1)
    assert False

def test_fails_too(odradek_broker):
    forgotten.pop().close()
    odradek_broker.stop()
    assert False
"""


@pytest.mark.slow
def test_the_report_of_a_failed_test_names_a_consumer_that_another_test_has_forgotten(
    tmp_path: Path,
) -> None:
    (tmp_path / "test_orders.py").write_text(TESTS)
    output = run_pytest(tmp_path, "-p", "no:randomly")
    assert "2 failed, 1 passed" in output
    first, _, second = output.partition("test_fails_too")
    assert "Clients of earlier tests" in first
    (line,) = [line for line in output.splitlines() if line.startswith("till (")]
    assert line.startswith("till (confluent-kafka-python ")
    assert "which connected after the start of test_orders.py::test_forgets_a_consumer" in line
    assert line.endswith(", joined the group readers")
    (line,) = [line for line in output.splitlines() if line.startswith("rdkafka (")]
    assert line.endswith(", made the topic orders")
    assert "Clients of earlier tests" not in second.partition("short test summary")[0]
