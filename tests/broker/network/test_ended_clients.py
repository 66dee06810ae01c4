"""A client sends requests and closes at once: what has arrived is done, and does not wait."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from odradek.broker.network import connection as connection_module
from odradek.broker.turns import slices as slices_module
from odradek.coordinator.metadata.topic_creation import NewTopic
from odradek.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.protocol.schema import Message
from odradek.storage.files import Files
from tests.support.broker_in_loop import (
    PRODUCE_VERSION,
    BrokerInLoop,
    broker_in_loop,
    produce_to,
    until,
)
from tests.support.log_box import NOW_MS, batch_of
from tests.support.wire import WireClient

PARTITIONS = 100  # more than a small request names
FETCH_VERSION = 12
DELETE_VERSION = 2


@pytest.fixture
async def broker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[BrokerInLoop]:
    """A broker that gives way after each request, and after each entry of a long one."""
    monkeypatch.setattr(connection_module, "SERVE_S", 0.0)
    monkeypatch.setattr(slices_module, "SLICE_S", 0.0)
    async with broker_in_loop([tmp_path], Files()) as made:
        await made.broker.admin.topics.create([NewTopic(name="t", partition_count=PARTITIONS)])
        yield made


async def send_and_close(broker: BrokerInLoop, *requests: tuple[Message, int]) -> None:
    """Send requests on a connection that is closed at once, and wait until it is forgotten."""
    server = broker._running._server
    before = server.opened_count
    with WireClient(broker.port) as client:
        client.send(b"".join(client.frame_of(*request) for request in requests))
    await until(lambda: server.opened_count > before and not server.connections)


def ends(broker: BrokerInLoop) -> list[int]:
    """How many records each partition has."""
    logs = broker.broker.log_manager.of_topic("t")
    return [logs[index].log_end_offset for index in range(PARTITIONS)]


async def test_every_small_produce_with_acks_0_is_stored(broker: BrokerInLoop) -> None:
    request = produce_to("t", bytes(batch_of(b"v")), acks=0)
    await send_and_close(broker, *[(request, PRODUCE_VERSION)] * 100)
    assert ends(broker)[0] == 100


@pytest.mark.parametrize("acks", [0, -1])
async def test_a_produce_to_many_partitions_reaches_the_last_one(
    broker: BrokerInLoop, acks: int
) -> None:
    request = produce_to("t", bytes(batch_of(b"v")), range(PARTITIONS), acks=acks)
    await send_and_close(broker, (request, PRODUCE_VERSION))
    assert ends(broker) == [1] * PARTITIONS


async def test_records_of_many_partitions_are_deleted_in_the_last_one(
    broker: BrokerInLoop,
) -> None:
    for index in range(PARTITIONS):
        broker.broker.log_manager.get("t", index).append(batch_of(b"v"), now_ms=NOW_MS)
    partitions = [DeleteRecordsPartition(partition_index=i, offset=1) for i in range(PARTITIONS)]
    topics = [DeleteRecordsTopic(name="t", partitions=partitions)]
    request = DeleteRecordsRequest(topics=topics, timeout_ms=10_000)
    await send_and_close(broker, (request, DELETE_VERSION))
    logs = broker.broker.log_manager.of_topic("t").values()
    assert {log.log_start_offset for log in logs} == {1}


async def test_a_fetch_that_waits_does_not_hold_up_the_produce_after_it(
    broker: BrokerInLoop,
) -> None:
    partition = FetchPartition(partition=1, fetch_offset=0, partition_max_bytes=1000)
    fetch = FetchRequest(
        max_wait_ms=600_000,
        min_bytes=1,
        topics=[FetchTopic(topic="t", partitions=[partition])],
    )
    produce = produce_to("t", bytes(batch_of(b"v")), acks=0)
    requests = [(fetch, FETCH_VERSION), (produce, PRODUCE_VERSION)]
    await send_and_close(broker, *requests, *requests)
    assert ends(broker)[0] == 2
    assert broker.broker.fetching.waiters.count == 0
