"""Records that a share group gives up, in its dead-letter queue (KIP-1191)."""

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from odradek.broker.shares.dead_letter_queues import QueueCounts
from odradek.broker.testing import Broker
from odradek.broker.testing.broker import Record
from odradek.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from odradek.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from odradek.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsResponse
from odradek.protocol.messages.read_share_group_state import (
    ReadShareGroupStatePartition,
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
    ReadShareGroupStateTopic,
)
from odradek.protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from odradek.protocol.messages.write_share_group_state import (
    WriteShareGroupStateBatch,
    WriteShareGroupStatePartition,
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
    WriteShareGroupStateTopic,
)
from odradek.storage.files import Files
from tests.conformance.share_reader import ACCEPT, GROUP_RESOURCE, REJECT, RELEASE
from tests.support.broker_in_loop import broker_in_loop
from tests.support.config_requests import alter_configs_request
from tests.support.share_queue import Queue, acknowledged, acquired
from tests.support.waiting import wait_until
from tests.support.wire import WireClient

LOCK = timedelta(seconds=30)
MAY_BE_QUEUE = {"errors.deadletterqueue.group.enable": "true"}
NAME = "errors.deadletterqueue.topic.name"
COPIES = {"errors.deadletterqueue.copy.record.enable": "true"}
SETTINGS = {"errors.deadletterqueue.auto.create.topics.enable": "true"}
ARCHIVING, ARCHIVED = 3, 4
REJECTED = "Offset rejected by client."
TOO_OFTEN = "Offset delivery count exceeded the threshold."


@pytest.fixture(scope="module")
def shared() -> Iterator[Broker]:
    with Broker(settings=SETTINGS) as broker:
        yield broker


@pytest.fixture
def open_queue(shared: Broker) -> Iterator[Callable[..., Queue]]:
    queues: list[Queue] = []

    def open_one(**settings: str) -> Queue:
        queues.append(Queue(shared, **{NAME: "dlq.orders"} | settings))
        return queues[-1]

    yield open_one
    for queue in queues:
        queue.close()
    shared.reset()


def headers(offset: int, count: int, cause: str) -> list[tuple[str, bytes]]:
    return [
        ("__dlq.errors.topic", b"orders"),
        ("__dlq.errors.partition", b"0"),
        ("__dlq.errors.offset", b"%d" % offset),
        ("__dlq.errors.group", b"cooks"),
        ("__dlq.errors.delivery.count", b"%d" % count),
        ("__dlq.errors.message", cause.encode()),
    ]


def offsets(records: Sequence[Record]) -> list[int]:
    """Of the records that were given up, in the order of the queue."""
    return [int(dict(one.headers)["__dlq.errors.offset"] or b"") for one in records]


def configure(queue: Queue, kind: int, name: str, settings: dict[str, str | None]) -> None:
    with WireClient(queue.port) as client:
        request = alter_configs_request(kind, name, settings)
        answer = client.ask(request, IncrementalAlterConfigsResponse, 1)
    assert not answer.responses[0].error_code, answer.responses[0].error_message


def reject(queue: Queue, *values: bytes, member: str = "one") -> None:
    """Produce records, and have a new member reject them."""
    produced = [queue.broker.produce("orders", value, key=b"k") for value in values]
    first, last = produced[0], produced[-1]
    one = queue.member(member)
    assert {each[:2] for each in acquired(one.fetch(0))} == {(first, last)}
    assert acknowledged(one.acknowledge((first, last, [REJECT]))) == [0]


def test_a_rejected_record_is_in_the_queue_with_headers_that_describe_it(
    open_queue: Callable[..., Queue],
) -> None:
    queue = open_queue()
    for value in (b"tea", b"coffee", b"milk"):
        queue.broker.produce("orders", value, key=b"k")
    one = queue.member("one")
    assert acquired(one.fetch(0)) == [(0, 2, 1)]
    assert acknowledged(one.acknowledge((0, 2, [ACCEPT, REJECT, ACCEPT]))) == [0]
    [dead] = queue.broker.wait_for_records("dlq.orders", 1)
    assert (dead.key, dead.value, dead.headers) == (None, None, headers(1, 1, REJECTED))


def test_a_record_that_was_delivered_too_often_is_in_the_queue(
    open_queue: Callable[..., Queue],
) -> None:
    queue = open_queue(**{"share.delivery.count.limit": "3"})
    queue.broker.produce("orders", b"poison")
    one = queue.member("one")
    assert acquired(one.fetch(0)) == [(0, 0, 1)]
    assert acknowledged(one.acknowledge((0, 0, [RELEASE]))) == [0]
    for count in (2, 3):
        assert acquired(one.fetch()) == [(0, 0, count)]
        queue.broker.advance(LOCK)
    [dead] = queue.broker.wait_for_records("dlq.orders", 1)
    assert dead.headers == headers(0, 3, TOO_OFTEN)


def test_the_queue_has_keys_and_values_if_the_group_wants_them(
    open_queue: Callable[..., Queue],
) -> None:
    queue = open_queue(**COPIES)
    reject(queue, b"tea", b"milk")
    found = queue.broker.wait_for_records("dlq.orders", 2)
    assert [(one.key, one.value) for one in found] == [(b"k", b"tea"), (b"k", b"milk")]


def test_what_is_given_up_is_written_though_its_members_have_gone(
    open_queue: Callable[..., Queue],
) -> None:
    queue = open_queue(**{"share.delivery.count.limit": "2"})
    queue.broker.produce("orders", b"tea")
    for name in ("one", "two"):
        assert acquired(queue.member(name).fetch(0)) == [(0, 0, 1 if name == "one" else 2)]
        queue.clients[-1].close()
    [dead] = queue.broker.wait_for_records("dlq.orders", 1)
    assert dead.headers == headers(0, 2, TOO_OFTEN)
    queue.broker.produce("orders", b"milk")
    assert acquired(queue.member("three").fetch(0)) == [(1, 1, 1)]


def test_many_records_are_written_once_and_in_order(open_queue: Callable[..., Queue]) -> None:
    queue = open_queue(**COPIES)
    values = [b"%d" % number for number in range(600)]
    for value in values:
        queue.broker.produce("orders", value)
    one = queue.member("one")
    taken = acquired(one.fetch(0))
    while taken[-1][1] < 599:
        taken += acquired(one.fetch())
    types = [REJECT if number % 3 else ACCEPT for number in range(600)]
    assert acknowledged(one.acknowledge((0, 599, types))) == [0]
    found = queue.broker.wait_for_records("dlq.orders", 400)
    assert [one.value for one in found] == [b"%d" % number for number in range(600) if number % 3]
    assert offsets(found) == [number for number in range(600) if number % 3]


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("dlq.unfit", "does not have errors.deadletterqueue.group.enable=true"),
        ("unfit", "does not begin with dlq., the broker's"),
        ("dlq.not a name", "dlq.not a name"),
    ],
)
def test_without_its_queue_a_group_goes_on(
    open_queue: Callable[..., Queue], name: str, complaint: str
) -> None:
    queue = open_queue(**{NAME: name})
    queue.broker.create_topic("dlq.unfit")
    reject(queue, b"tea")
    wait_until(lambda: complaint in queue.broker.last_log_lines(5))
    queue.broker.produce("orders", b"milk")
    queue.clients[0].close()
    assert acquired(queue.member("two").fetch(0)) == [(1, 1, 1)]


def test_the_settings_at_the_write_count(open_queue: Callable[..., Queue]) -> None:
    queue = open_queue(**{NAME: ""})
    queue.broker.create_topic("dlq.other", 2, MAY_BE_QUEUE)
    queue.broker.produce("orders", b"tea", partition=0)
    one = queue.member("one")
    assert acquired(one.fetch(0)) == [(0, 0, 1)]
    configure(queue, GROUP_RESOURCE, "cooks", {NAME: "dlq.other", **COPIES})
    assert acknowledged(one.acknowledge((0, 0, [REJECT]))) == [0]
    [dead] = queue.broker.wait_for_records("dlq.other", 1)
    assert dead.value == b"tea"
    configure(queue, GROUP_RESOURCE, "cooks", {NAME: None})
    queue.broker.produce("orders", b"milk")
    assert acquired(one.fetch()) == [(1, 1, 1)]
    assert acknowledged(one.acknowledge((1, 1, [REJECT]))) == [0]
    configure(queue, GROUP_RESOURCE, "cooks", {NAME: "dlq.other"})
    queue.broker.produce("orders", b"water")
    assert acquired(one.fetch()) == [(2, 2, 1)]
    assert acknowledged(one.acknowledge((2, 2, [REJECT]))) == [0]
    assert offsets(queue.broker.wait_for_records("dlq.other", 2)) == [0, 2]


def test_a_queue_that_was_deleted_is_created_again(open_queue: Callable[..., Queue]) -> None:
    queue = open_queue()
    reject(queue, b"tea")
    queue.broker.wait_for_records("dlq.orders", 1)
    with WireClient(queue.port) as client:
        request = DeleteTopicsRequest(topic_names=["dlq.orders"], timeout_ms=9_000)
        assert not client.ask(request, DeleteTopicsResponse, 5).responses[0].error_code
    queue.clients[0].close()
    reject(queue, b"milk", member="two")
    assert offsets(queue.broker.wait_for_records("dlq.orders", 1)) == [1]


async def test_the_counts_of_a_group_are_forgotten_with_it(tmp_path: Path) -> None:
    async with broker_in_loop([tmp_path], Files()) as broker:
        find = FindCoordinatorRequest(coordinator_keys=["cooks"])
        await broker.ask(find, FindCoordinatorResponse, 4)
        member = {"group_id": "cooks", "member_id": "one"}
        for epoch in (0, -1):
            beat = ShareGroupHeartbeatRequest(
                **member, member_epoch=epoch, subscribed_topic_names=["orders"]
            )
            answer = await broker.ask(beat, ShareGroupHeartbeatResponse, 1)
            assert not answer.error_code, answer.error_message
        counts = broker.broker.coordinators.queues.counts
        counts |= {"cooks": QueueCounts(records=1), "bakers": QueueCounts(records=2)}
        delete = DeleteGroupsRequest(groups_names=["cooks", "bakers"])
        await broker.ask(delete, DeleteGroupsResponse, 3)
        assert list(counts) == ["bakers"]  # which does not exist, so its deletion has failed


@pytest.mark.slow
def test_what_a_kill_has_kept_from_the_queue_is_written_after_the_restart() -> None:
    """The stored state is that between the two writes of a rejection."""
    with Broker(settings=SETTINGS) as broker:
        queue = Queue(broker, **{NAME: "dlq.orders", "share.delivery.count.limit": "4"} | COPIES)
        for value in (b"tea", b"coffee", b"milk"):
            broker.produce("orders", value)
        queue.member("one")
        store(queue, (0, 0, ARCHIVING, 1), (1, 1, ARCHIVED, 1), (2, 2, ARCHIVING, 4))
        broker.kill_and_restart()
        assert "dlq.orders" not in broker.topics()
        assert acquired(queue.member("two").fetch(0, max_wait_ms=1)) == []
        found = broker.wait_for_records("dlq.orders", 2)
        assert [(one.value, one.headers) for one in found] == [
            (b"tea", headers(0, 1, REJECTED)),
            (b"milk", headers(2, 4, TOO_OFTEN)),
        ]
        broker.produce("orders", b"water")
        queue.clients[-1].close()
        broker.kill_and_restart()
        assert acquired(queue.member("three").fetch(0)) == [(3, 3, 1)]
        assert len(broker.records("dlq.orders")) == 2
        queue.close()


def test_what_a_clean_stop_interrupts_is_in_the_queue_once(tmp_path: Path) -> None:
    """A range of records that are written in several batches."""
    count, value = 400, b"v" * 20_000
    with Broker(tmp_path, settings=SETTINGS) as broker:
        queue = Queue(broker, **{NAME: "dlq.orders"} | COPIES)
        for _ in range(count):
            broker.produce("orders", value)
        one = queue.member("one")
        taken = acquired(one.fetch(0))
        while taken[-1][1] < count - 1:
            taken += acquired(one.fetch())
        assert acknowledged(one.acknowledge((0, count - 1, [REJECT]))) == [0]
        broker.wait_for_records("dlq.orders", 1)
        queue.close()
        broker.stop(clean=True)
        broker.start()
        queue.clients.clear()
        assert acquired(queue.member("two").fetch(0, max_wait_ms=1)) == []
        broker.wait_for_records("dlq.orders", count)
        queue.close()
        reject(queue, b"last", member="three")
        found = broker.wait_for_records("dlq.orders", count + 1)
        assert offsets(found) == list(range(count + 1))
        queue.close()


def store(queue: Queue, *batches: tuple[int, int, int, int]) -> None:
    """Store the state of the first partition: first and last offset, state and delivery count."""
    wanted = ReadShareGroupStatePartition(partition=0, leader_epoch=0)
    reading = ReadShareGroupStateTopic(topic_id=queue.topic_id, partitions=[wanted])
    read = ReadShareGroupStateRequest(group_id="cooks", topics=[reading])
    with WireClient(queue.port) as client:
        found = client.ask(read, ReadShareGroupStateResponse, 0).results[0].partitions[0]
    partition = WriteShareGroupStatePartition(
        partition=0,
        state_epoch=found.state_epoch,
        leader_epoch=0,
        start_offset=0,
        state_batches=[
            WriteShareGroupStateBatch(
                first_offset=first, last_offset=last, delivery_state=state, delivery_count=count
            )
            for first, last, state, count in batches
        ],
    )
    topic = WriteShareGroupStateTopic(topic_id=queue.topic_id, partitions=[partition])
    request = WriteShareGroupStateRequest(group_id="cooks", topics=[topic])
    with WireClient(queue.port) as client:
        answer = client.ask(request, WriteShareGroupStateResponse, 1)
    assert not answer.results[0].partitions[0].error_code, answer
