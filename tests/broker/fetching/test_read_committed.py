"""Fetch and ListOffsets with isolation level read_committed, where a transaction is open."""

import asyncio
import inspect
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from odradek.broker.broker import Broker
from odradek.broker.handlers import fetch, list_offsets
from odradek.broker.requests.context import RequestContext
from odradek.config.broker_config import BrokerConfig
from odradek.coordinator.metadata.topic_creation import NewTopic
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from odradek.storage.log import PartitionLog
from tests.support.contexts import request_context
from tests.support.dirty_logs import end_transaction
from tests.support.log_box import NOW_MS, batch_of

UNCOMMITTED, COMMITTED = 0, 1
SOON_MS, LONG_MS = 100, 20_000


class Rig:
    """A broker with the topic `t`: 0 plain, 1 of an open transaction, 2 plain."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker

    @property
    def log(self) -> PartitionLog:
        return self.broker.log_manager.get("t", 0)

    def write(self) -> None:
        self.plain(b"0")
        open_one = batch_of(b"1", producer=(7, 0, 0), is_transactional=True)
        self.log.append(open_one, now_ms=NOW_MS, transaction_verified=True)
        self.plain(b"2")

    def plain(self, value: bytes) -> None:
        self.log.append(batch_of(value), now_ms=NOW_MS)

    def context(self, version: int) -> RequestContext:
        return request_context(self.broker, version, self.broker.clock.now_ms())

    async def fetch(self, offset: int, level: int, *, max_wait_ms: int, min_bytes: int = 1) -> Any:
        partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
        request = FetchRequest(
            max_wait_ms=max_wait_ms,
            min_bytes=min_bytes,
            isolation_level=level,
            topics=[FetchTopic(topic="t", partitions=[partition])],
        )
        answer = fetch.handle(self.context(12), request)
        response = await answer if inspect.isawaitable(answer) else answer
        return response.responses[0].partitions[0]

    def look_up(self, timestamp: int, level: int) -> int:
        wanted = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=level,
            topics=[ListOffsetsTopic(name="t", partitions=[wanted])],
        )
        answer = list_offsets.handle(self.context(7), request)
        return answer.topics[0].partitions[0].offset


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    texts = {"log.dirs": str(tmp_path / "data"), "listeners": "PLAINTEXT://localhost:9092"}
    config = BrokerConfig.from_texts(texts)
    broker = Broker(config, asyncio.get_running_loop(), {"PLAINTEXT": 9092})
    await broker.admin.topics.create([NewTopic(name="t")])
    rig = Rig(broker)
    rig.write()
    yield rig
    await broker.close()


async def test_nothing_behind_an_open_transaction_is_told(rig: Rig) -> None:
    told = await rig.fetch(0, COMMITTED, max_wait_ms=SOON_MS)
    assert (told.last_stable_offset, told.high_watermark) == (1, 3)
    assert told.aborted_transactions == []
    assert told.records.size_bytes == len(batch_of(b"0"))
    all_of_it = await rig.fetch(0, UNCOMMITTED, max_wait_ms=SOON_MS)
    assert all_of_it.aborted_transactions is None
    assert all_of_it.records.size_bytes > told.records.size_bytes


async def test_offsets_behind_it_are_not_looked_up(rig: Rig) -> None:
    assert [rig.look_up(-1, level) for level in (UNCOMMITTED, COMMITTED)] == [3, 1]
    assert rig.look_up(NOW_MS, COMMITTED) == 0
    assert [rig.look_up(-2, level) for level in (UNCOMMITTED, COMMITTED)] == [0, 0]
    later = batch_of(b"3", timestamps=[NOW_MS + 5])
    rig.log.append(later, now_ms=NOW_MS)
    assert [rig.look_up(NOW_MS + 1, level) for level in (UNCOMMITTED, COMMITTED)] == [3, -1]
    assert [rig.look_up(-3, level) for level in (UNCOMMITTED, COMMITTED)] == [3, -1]


async def test_a_reader_waits_on_while_records_follow_an_open_transaction(rig: Rig) -> None:
    waiting = asyncio.ensure_future(rig.fetch(1, COMMITTED, max_wait_ms=LONG_MS))
    for _ in range(3):
        await asyncio.sleep(0)
        rig.plain(b"unseen")
    await asyncio.sleep(0)
    assert not waiting.done()
    end_transaction(rig.log, 7, 0, commit=False)
    told = await asyncio.wait_for(waiting, 5)
    assert [(one.producer_id, one.first_offset) for one in told.aborted_transactions] == [(7, 1)]
    assert told.last_stable_offset == rig.log.log_end_offset


async def test_a_reader_waits_until_the_marker_is_synced(rig: Rig) -> None:
    rig.log.flush(NOW_MS)
    rig.log.update_config(rig.log.config.replace(flush_messages=1))
    rig.log.on_flush_due = lambda _: None
    waiting = asyncio.ensure_future(rig.fetch(1, COMMITTED, max_wait_ms=LONG_MS))
    await asyncio.sleep(0)
    end_transaction(rig.log, 7, 0, commit=False)
    for _ in range(3):
        await asyncio.sleep(0)
    assert not waiting.done()
    assert rig.look_up(-1, COMMITTED) == 1
    rig.log.flush(NOW_MS)
    told = await asyncio.wait_for(waiting, 5)
    assert [(one.producer_id, one.first_offset) for one in told.aborted_transactions] == [(7, 1)]
    assert told.last_stable_offset == rig.look_up(-1, COMMITTED) == rig.log.log_end_offset == 4


async def test_a_reader_that_waited_in_vain_is_answered_in_time(rig: Rig) -> None:
    waiting = asyncio.ensure_future(rig.fetch(1, COMMITTED, max_wait_ms=SOON_MS))
    await asyncio.sleep(0)
    rig.plain(b"unseen")
    told = await asyncio.wait_for(waiting, 5)
    assert (told.error_code, told.records.size_bytes) == (0, 0)


async def test_a_broker_that_stops_does_not_keep_its_readers(rig: Rig) -> None:
    waiting = asyncio.ensure_future(rig.fetch(1, COMMITTED, max_wait_ms=LONG_MS))
    await asyncio.sleep(0)
    rig.broker.answer_parked_requests()
    await asyncio.wait_for(waiting, 5)


async def test_an_uncommitted_reader_hears_of_what_is_appended_at_once(rig: Rig) -> None:
    waiting = asyncio.ensure_future(rig.fetch(3, UNCOMMITTED, max_wait_ms=LONG_MS))
    await asyncio.sleep(0)
    rig.plain(b"seen")
    told = await asyncio.wait_for(waiting, 5)
    assert told.records.size_bytes == len(batch_of(b"seen"))
