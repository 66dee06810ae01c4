"""What counts for min_bytes: bytes that can be read, also if only whole batches are sent."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from odradek.broker.broker import Broker
from odradek.broker.handlers import fetch
from odradek.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from odradek.storage.log import PartitionLog
from tests.support.broker_in_loop import until
from tests.support.contexts import broker_with_topic, request_context
from tests.support.log_box import NOW_MS, batch_of

BATCH = batch_of(b"v" * 100)
SIZE = len(BATCH)
COUNT = 10
COMMITTED = 1


class Rig:
    """A topic with a backlog of ten batches in each of two partitions."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.logs = [broker.log_manager.get("t", partition) for partition in range(2)]
        for log in self.logs:
            append(log, COUNT)

    async def waits(
        self,
        min_bytes: int,
        *offsets: int,
        limit: int = 1 << 20,
        max_bytes: int = 1 << 20,
        level: int = 0,
    ) -> bool:
        """Whether a Fetch from these offsets waits. `limit`: the most bytes of a partition."""
        partitions = [
            FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=limit)
            for index, offset in enumerate(offsets)
        ]
        request = FetchRequest(
            max_wait_ms=60_000,
            min_bytes=min_bytes,
            max_bytes=max_bytes,
            isolation_level=level,
            topics=[FetchTopic(topic="t", partitions=partitions)],
        )
        response = fetch.handle(request_context(self.broker, 12, NOW_MS), request)
        if isinstance(response, FetchResponse):
            return False
        fetching = asyncio.ensure_future(response)
        await until(lambda: fetching.done() or self.broker.fetching.waiters.count > 0)
        return fetching.cancel()


def append(log: PartitionLog, count: int) -> None:
    for _ in range(count):
        log.append(bytearray(BATCH), now_ms=NOW_MS)


def begin_transaction(log: PartitionLog) -> None:
    batch = batch_of(b"1", producer=(7, 0, 0), is_transactional=True)
    log.append(batch, now_ms=NOW_MS, transaction_verified=True)


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    async with broker_with_topic(tmp_path, 2) as broker:
        yield Rig(broker)


async def test_a_batch_that_does_not_fit_counts_in_part(rig: Rig) -> None:
    almost_two = 2 * SIZE - 1
    assert not await rig.waits(almost_two, 0, limit=almost_two)
    assert not await rig.waits(2 * almost_two, 0, 0, limit=almost_two)
    assert await rig.waits(almost_two + 1, 0, limit=almost_two)
    assert await rig.waits(almost_two, COUNT - 1, limit=almost_two)


async def test_the_first_batch_of_a_later_partition_counts_if_it_does_not_fit(rig: Rig) -> None:
    assert not await rig.waits(2 * SIZE - 2, 0, 0, limit=SIZE - 1)


async def test_a_batch_that_does_not_fit_counts_for_readers_of_committed_records(rig: Rig) -> None:
    begin_transaction(rig.logs[0])
    append(rig.logs[0], COUNT)
    almost_two = 2 * SIZE - 1
    assert not await rig.waits(almost_two, 0, limit=almost_two, level=COMMITTED)
    assert await rig.waits(almost_two, COUNT - 1, limit=almost_two, level=COMMITTED)
    assert await rig.waits(1, COUNT, level=COMMITTED)


async def test_the_rest_of_an_older_segment_is_enough(rig: Rig) -> None:
    log = rig.logs[0]
    log.roll(NOW_MS)
    append(log, 2)
    assert not await rig.waits(1 << 19, COUNT - 1)
    assert await rig.waits(1 << 19, COUNT)
    assert await rig.waits(1 << 19, COUNT + 2)


async def test_an_older_segment_with_the_last_stable_offset_is_not_enough(rig: Rig) -> None:
    log = rig.logs[0]
    begin_transaction(log)
    log.roll(NOW_MS)
    append(log, 2)
    assert await rig.waits(1 << 19, 0, level=COMMITTED)
    assert not await rig.waits(1 << 19, 0)


async def test_no_more_is_waited_for_than_a_response_may_have(rig: Rig) -> None:
    assert not await rig.waits(1 << 20, 0, max_bytes=3 * SIZE)
    assert await rig.waits(1 << 20, COUNT - 1, max_bytes=3 * SIZE)
    assert not await rig.waits(1, COUNT, max_bytes=0)
