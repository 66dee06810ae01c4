"""Delivery to share groups while the clock moves, connections close and the broker is killed."""

import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from odradek.broker.testing import Broker
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
)
from odradek.protocol.messages.share_acknowledge import (
    ShareAcknowledgeAcknowledgementBatch,
    ShareAcknowledgePartition,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopic,
)
from odradek.protocol.messages.share_group_describe import (
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)
from odradek.protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from tests.conformance.share_reader import ACCEPT, RELEASE
from tests.support.share_queue import Queue, acknowledged, acquired
from tests.support.waiting import wait_until
from tests.support.wire import WireClient

LOCK = timedelta(seconds=30)


@pytest.fixture(scope="module")
def shared() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def open_queue(shared: Broker) -> Iterator[Callable[..., Queue]]:
    queues: list[Queue] = []

    def open_one(**settings: str) -> Queue:
        queues.append(Queue(shared, **settings))
        return queues[-1]

    yield open_one
    for queue in queues:
        queue.close()
    shared.reset()


def test_a_record_whose_lock_has_ended_goes_to_another_member(
    open_queue: Callable[..., Queue],
) -> None:
    queue = open_queue()
    queue.broker.produce("orders", b"tea")
    slow, quick = queue.member("slow"), queue.member("quick")
    assert acquired(slow.fetch(0)) == [(0, 0, 1)]
    assert acquired(quick.fetch(0, max_wait_ms=1)) == []
    queue.broker.advance(LOCK)
    assert acquired(quick.fetch()) == [(0, 0, 2)]
    [late] = acknowledged(slow.acknowledge((0, 0, [ACCEPT])))
    assert late == ErrorCode.INVALID_RECORD_STATE
    assert acknowledged(quick.acknowledge((0, 0, [ACCEPT]))) == [0]


@pytest.mark.parametrize("size", [0, -1])
def test_a_batch_size_that_is_not_positive_is_one(
    open_queue: Callable[..., Queue], size: int
) -> None:
    queue = open_queue()
    member = queue.member("one")
    queue.broker.produce("orders", b"tea")
    queue.broker.produce("orders", b"coffee")
    assert acquired(member.fetch(0, batch_size=size)) == [(0, 0, 1), (1, 1, 1)]


def test_of_a_partition_that_a_request_names_again_the_last_entry_counts(
    open_queue: Callable[..., Queue],
) -> None:
    queue = open_queue()
    queue.broker.produce("orders", b"tea")
    member = queue.member("one")
    assert acquired(member.fetch(0)) == [(0, 0, 1)]

    def acknowledge_again_and_again(*types: list[int]) -> list[int]:
        partitions = [
            ShareAcknowledgePartition(
                partition_index=0,
                acknowledgement_batches=[
                    ShareAcknowledgeAcknowledgementBatch(
                        first_offset=0, last_offset=0, acknowledge_types=of_entry
                    )
                ]
                if of_entry
                else [],
            )
            for of_entry in types
        ]
        request = ShareAcknowledgeRequest(
            group_id="cooks",
            member_id=member.member,
            share_session_epoch=member.epoch,
            topics=[ShareAcknowledgeTopic(topic_id=queue.topic_id, partitions=partitions)],
        )
        member.epoch += 1
        with WireClient(queue.port) as client:
            return acknowledged(client.ask(request, ShareAcknowledgeResponse, 1))

    assert acknowledge_again_and_again([], []) == []
    assert acknowledge_again_and_again([RELEASE], [ACCEPT]) == [0]
    assert acquired(member.fetch(max_wait_ms=1)) == []


def test_a_record_that_nobody_acknowledges_is_delivered_as_often_as_is_allowed(
    open_queue: Callable[..., Queue],
) -> None:
    queue = open_queue(**{"share.delivery.count.limit": "3"})
    queue.broker.produce("orders", b"poison")
    one = queue.member("one")
    assert acquired(one.fetch(0)) == [(0, 0, 1)]
    for count in (2, 3):
        queue.broker.advance(LOCK)
        assert acquired(one.fetch()) == [(0, 0, count)]
    queue.broker.advance(LOCK)
    queue.broker.produce("orders", b"tea")
    assert acquired(one.fetch()) == [(1, 1, 1)]


def test_a_waiting_fetch_gets_a_record_as_soon_as_it_is_written(
    open_queue: Callable[..., Queue],
) -> None:
    queue = open_queue()
    one = queue.member("one")
    assert acquired(one.fetch(0, max_wait_ms=1)) == []
    found: list[Any] = []
    waiting = threading.Thread(target=lambda: found.append(one.fetch(max_wait_ms=60_000)))
    waiting.start()
    queue.broker.produce("orders", b"tea")
    waiting.join(20)
    assert [acquired(each) for each in found] == [[(0, 0, 1)]]


def test_a_waiting_fetch_gets_a_record_that_another_member_gives_back(
    open_queue: Callable[..., Queue],
) -> None:
    queue = open_queue()
    queue.broker.produce("orders", b"tea")
    one, two = queue.member("one"), queue.member("two")
    assert acquired(one.fetch(0)) == [(0, 0, 1)]
    found: list[Any] = []
    waiting = threading.Thread(target=lambda: found.append(two.fetch(0, max_wait_ms=60_000)))
    waiting.start()
    assert acknowledged(one.acknowledge((0, 0, [RELEASE]))) == [0]
    waiting.join(20)
    assert [acquired(each) for each in found] == [[(0, 0, 2)]]


def test_records_of_a_connection_that_closes_are_available_again(
    open_queue: Callable[..., Queue],
) -> None:
    queue = open_queue()
    queue.broker.produce("orders", b"tea")
    one, two = queue.member("one"), queue.member("two")
    assert acquired(two.fetch(0)) == [(0, 0, 1)]
    queue.clients[1].close()
    assert acquired(one.fetch(0, max_wait_ms=60_000)) == [(0, 0, 2)]


def test_a_member_whose_connection_closes_leaves_its_group(
    open_queue: Callable[..., Queue],
) -> None:
    queue = open_queue()
    queue.member("one")
    assert state(queue) == "Stable"
    queue.clients[0].close()
    wait_until(lambda: state(queue) == "Empty")


def test_start_offsets_that_are_altered_count_while_a_connection_stays_open(
    open_queue: Callable[..., Queue],
) -> None:
    queue = open_queue()
    queue.broker.produce("orders", b"tea")
    member = queue.member("one")
    assert acquired(member.fetch(0)) == [(0, 0, 1)]
    assert acknowledged(member.acknowledge((0, 0, [ACCEPT]))) == [0]
    member.leave()
    leaving = ShareGroupHeartbeatRequest(
        group_id=member.group, member_id=member.member, member_epoch=-1
    )
    assert not queue.clients[0].ask(leaving, ShareGroupHeartbeatResponse, 1).error_code
    first = AlterShareGroupOffsetsRequestPartition(partition_index=0, start_offset=0)
    topic = AlterShareGroupOffsetsRequestTopic(topic_name="orders", partitions=[first])
    alter = AlterShareGroupOffsetsRequest(group_id=member.group, topics=[topic])
    assert not queue.clients[0].ask(alter, AlterShareGroupOffsetsResponse, 0).error_code
    assert acquired(queue.member("two").fetch(0)) == [(0, 0, 1)]


def test_a_session_keeps_few_partitions_that_do_not_exist(open_queue: Callable[..., Queue]) -> None:
    one = open_queue().member("one")
    many = range(1000)
    refused = ErrorCode.SHARE_SESSION_LIMIT_REACHED
    assert one.fetch(*many, epoch=0, max_wait_ms=0).error_code == refused
    assert one.fetch(0, max_wait_ms=0).error_code == 0
    assert one.fetch(*range(50), max_wait_ms=0).error_code == 0
    assert one.fetch(*many, max_wait_ms=0).error_code == refused


def test_the_partitions_of_a_group_that_does_not_exist_have_an_error_that_consumers_know(
    open_queue: Callable[..., Queue],
) -> None:
    member = open_queue().member("one")
    member.group = "nobody"
    [topic] = member.fetch(0).responses
    assert topic.partitions[0].error_code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_group_can_be_expired(open_queue: Callable[..., Queue]) -> None:
    queue = open_queue()
    queue.member("one")
    queue.broker.expire_group("cooks")
    assert state(queue) == "Empty"


def state(queue: Queue) -> str | None:
    request = ShareGroupDescribeRequest(group_ids=["cooks"], include_authorized_operations=False)
    with WireClient(queue.port) as client:
        [group] = client.ask(request, ShareGroupDescribeResponse, 1).groups
    found: str | None = group.group_state
    return found


@pytest.mark.slow
def test_what_was_acknowledged_before_a_kill_is_not_delivered_again() -> None:
    with Broker() as broker:
        queue = Queue(broker)
        for value in (b"tea", b"coffee", b"water", b"milk"):
            broker.produce("orders", value)
        one = queue.member("one")
        assert acquired(one.fetch(0)) == [(0, 3, 1)]
        assert acknowledged(one.acknowledge((0, 0, [ACCEPT]), (2, 2, [ACCEPT]))) == [0]
        broker.kill_and_restart()
        again = queue.member("one")
        found = acquired(again.fetch(0))
        assert {each for first, last, _ in found for each in range(first, last + 1)} == {1, 3}
        queue.close()
