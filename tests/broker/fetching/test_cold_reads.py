"""Requests that wait for cold reads, while the log they are for goes on or is deleted."""

import asyncio
import inspect
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from odradek.broker.broker import Broker
from odradek.broker.disk import cold_reads
from odradek.broker.disk.cold_reads import Calls, make_calls
from odradek.config.broker_config import BrokerConfig
from odradek.coordinator.metadata.topic_creation import NewTopic
from odradek.coordinator.metadata.topic_deletion import TopicRef
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.protocol.schema import Message
from odradek.storage.log import PartitionLog
from tests.support.broker_in_loop import produce_to, until
from tests.support.contexts import handled, request_context
from tests.support.log_box import NOW_MS, batch_of, values_from
from tests.support.partition_logs import UnsyncedFiles

pytestmark = pytest.mark.usefixtures("both_produce_paths")

LONG_MS = 60_000
DEADLINE_SECONDS = 100


class Rig:
    """A broker that was started again since `t`, of two partitions, got a record in each."""

    def __init__(self, root: Path) -> None:
        config = BrokerConfig.from_texts(
            {"log.dirs": str(root), "listeners": "PLAINTEXT://localhost:9092"}
        )
        loop = asyncio.get_running_loop()
        self.broker = Broker(
            config, loop, {"PLAINTEXT": 9092}, now_ms=lambda: NOW_MS, files=UnsyncedFiles()
        )

    def log(self, index: int = 0) -> PartitionLog:
        return self.broker.log_manager.get("t", index)

    def ask(self, request: Message, version: int) -> Any:
        spec = type(request).SPEC
        assert spec.key is not None
        context = request_context(self.broker, version, NOW_MS)
        return handled(context, request)

    def fetch(
        self, offset: int = 0, max_wait_ms: int = 1, min_bytes: int = 1
    ) -> asyncio.Future[Any]:
        """An answer that waits for the disk, or for records at the end of the log."""
        partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
        topics = [FetchTopic(topic="t", partitions=[partition])]
        answer = self.ask(
            FetchRequest(max_wait_ms=max_wait_ms, min_bytes=min_bytes, topics=topics), 12
        )
        assert inspect.isawaitable(answer)
        return asyncio.ensure_future(answer)


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    first = Rig(tmp_path)
    await first.broker.admin.topics.create([NewTopic(name="t", partition_count=2)])
    for index in range(2):
        first.log(index).append(batch_of(b"old"), now_ms=NOW_MS)
    await first.broker.close()
    made = Rig(tmp_path)
    yield made
    await made.broker.close()


async def test_a_fetch_of_a_log_that_is_deleted_meanwhile_is_refused(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_deleted = threading.Event()

    def wait_and_make(calls: Calls) -> None:
        is_deleted.wait(DEADLINE_SECONDS)
        make_calls(calls)

    monkeypatch.setattr(cold_reads, "make_calls", wait_and_make)
    answer = rig.fetch()
    await rig.broker.admin.topics.delete([TopicRef("t")])
    is_deleted.set()
    [topic] = (await answer).responses
    assert topic.partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert not rig.broker.log_manager.offline


async def test_a_fetch_that_waited_for_the_disk_sees_what_was_appended_meanwhile(rig: Rig) -> None:
    answer = rig.fetch()
    rig.log().append(batch_of(b"new"), now_ms=NOW_MS)
    [topic] = (await answer).responses
    assert topic.partitions[0].high_watermark == 2
    assert topic.partitions[0].records.size_bytes == rig.log().size_bytes


async def test_a_fetch_that_waited_for_records_has_them_read_by_a_disk_thread(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    await rig.fetch()
    answer = rig.fetch(rig.log().log_end_offset, LONG_MS)
    monkeypatch.setattr(UnsyncedFiles, "pread_cached", lambda *_: None)
    rig.log().append(batch_of(b"new"), now_ms=NOW_MS)
    rig.log()._slicer.forget()
    records = (await answer).responses[0].partitions[0].records
    assert values_from(rig.log(), 1) == [b"new"]
    assert records.size_bytes == len(batch_of(b"new"))


async def test_a_fetch_whose_client_is_gone_waits_no_more(rig: Rig) -> None:
    await rig.fetch()
    for is_released in (False, True):
        answer = rig.fetch(rig.log().log_end_offset, LONG_MS)
        assert rig.broker.fetching.waiters.count == 1
        if is_released:
            rig.log().append(batch_of(b"new"), now_ms=NOW_MS)
        answer.cancel()
        with pytest.raises(asyncio.CancelledError):
            await answer
        await until(lambda: rig.broker.fetching.waiters.count == 0)
        assert not rig.log().on_append


async def test_a_fetch_that_reads_from_the_disk_at_a_stop_waits_for_no_records(rig: Rig) -> None:
    answer = rig.fetch(0, LONG_MS, min_bytes=100_000)
    rig.broker.answer_parked_requests()
    async with asyncio.timeout(20):
        [topic] = (await answer).responses
    assert topic.partitions[0].records.size_bytes == len(batch_of(b"old"))


async def test_the_first_produce_answers_each_partition_in_its_place(rig: Rig) -> None:
    rig.log(1).prepare_append()  # the other one is to be read first
    records = bytearray(batch_of(b"new"))
    waiting = rig.ask(produce_to("t", memoryview(records), (0, 1, 0)), 9)  # type: ignore[arg-type] # a view, as from a connection
    assert inspect.isawaitable(waiting)
    assert rig.log(1).log_end_offset == 2
    records[:] = bytes(len(records))  # the connection's buffer is used again
    [topic] = (await waiting).responses
    told = [(one.index, one.error_code, one.base_offset) for one in topic.partition_responses]
    assert told == [(0, 0, 1), (1, 0, 1), (0, 0, 2)]
    assert values_from(rig.log()) == [b"old", b"new", b"new"]


async def test_the_first_produce_to_a_log_that_is_deleted_meanwhile_is_refused(rig: Rig) -> None:
    waiting = asyncio.ensure_future(rig.ask(produce_to("t", batch_of(b"new")), 9))
    await rig.broker.admin.topics.delete([TopicRef("t")])
    [topic] = (await waiting).responses
    # Not appended, or appended just before: never to a file of nobody.
    assert topic.partition_responses[0].error_code in (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NONE,
    )
    assert not rig.broker.log_manager.offline


async def test_the_first_produce_without_an_answer_is_appended(rig: Rig) -> None:
    assert await rig.ask(produce_to("t", batch_of(b"new"), acks=0), 9) is None
    assert values_from(rig.log()) == [b"old", b"new"]
    assert rig.ask(produce_to("t", batch_of(b"more"), acks=0), 9) is None
