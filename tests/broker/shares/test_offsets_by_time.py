"""ListOffsets and share groups by time: what takes long to unpack is searched in a process."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from odradek.broker.shares.led_partition import start_offset
from odradek.coordinator.metadata.topic_creation import NewTopic
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from odradek.storage import time_search
from odradek.storage.files import Files, WouldWaitError
from odradek.storage.record_walk import AT_ONCE, WalkLimits
from tests.support.broker_in_loop import BrokerInLoop, broker_in_loop
from tests.support.hostile_batches import GZIP, ZSTD, batch_around, zeros
from tests.support.log_box import NOW_MS, batch_of

LARGE = batch_of(*[b"v"] * 1000, timestamps=[NOW_MS + n for n in range(1000)], compression=GZIP)
UNSOUND = batch_around(b"\x28\xb5\x2f\xfd" + bytes(1000), ZSTD, 1000)
BATCHES = (LARGE, zeros(32 << 20, ZSTD), UNSOUND, batch_of(b"v", timestamps=[NOW_MS + 7]))


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[BrokerInLoop]:
    """A broker with one of the batches in each partition of the topic t."""
    async with broker_in_loop([tmp_path], Files()) as broker:
        topic = NewTopic(name="t", partition_count=len(BATCHES))
        await broker.broker.admin.topics.create([topic])
        for index, batch in enumerate(BATCHES):
            broker.broker.log_manager.get("t", index).append(batch, now_ms=NOW_MS)
        yield broker


@pytest.fixture(autouse=True)
def limits_on_the_loop(monkeypatch: pytest.MonkeyPatch) -> list[WalkLimits]:
    """The limits with which this process, and not another one, unpacks batches."""
    seen: list[WalkLimits] = []
    search = time_search._search

    def noting(*arguments: object) -> object:
        limits = arguments[-1]
        assert isinstance(limits, WalkLimits)
        seen.append(limits)
        return search(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(time_search, "_search", noting)
    return seen


async def listed(served: BrokerInLoop, timestamp_ms: int) -> list[tuple[int, int, int]]:
    partitions = [
        ListOffsetsPartition(partition_index=index, timestamp=timestamp_ms)
        for index in range(len(BATCHES))
    ]
    topics = [ListOffsetsTopic(name="t", partitions=partitions)]
    request = ListOffsetsRequest(replica_id=-1, topics=topics)
    answer = await served.ask(request, ListOffsetsResponse, 7)
    return [
        (each.error_code, each.offset, each.timestamp)
        for each in sorted(answer.topics[0].partitions, key=lambda each: each.partition_index)
    ]


async def test_list_offsets_answers_each_partition_and_unpacks_nothing_large_on_the_loop(
    served: BrokerInLoop, limits_on_the_loop: list[WalkLimits]
) -> None:
    corrupt = (ErrorCode.CORRUPT_MESSAGE, -1, -1)
    assert await listed(served, NOW_MS) == [
        (ErrorCode.NONE, 0, NOW_MS),
        (ErrorCode.NONE, 0, NOW_MS),
        corrupt,
        (ErrorCode.NONE, 0, NOW_MS + 7),
    ]
    newest = [(ErrorCode.NONE, 999, NOW_MS + 999), (ErrorCode.NONE, 0, NOW_MS), corrupt]
    assert (await listed(served, -3))[:3] == newest
    assert set(limits_on_the_loop) == {AT_ONCE}
    assert len(served.broker.fetching.walks.pids) == 2


async def test_a_share_group_by_duration_has_its_start_searched_in_a_process(
    served: BrokerInLoop,
) -> None:
    broker = served.broker
    log = broker.log_manager.get("t", 0)

    def start() -> int:
        return start_offset(log, "by_duration:PT0.5S", NOW_MS + 1000)

    with pytest.raises(WouldWaitError) as missing, broker.fetching.cold_reads.first_attempt:
        start()
    assert await broker.fetching.cold_reads.look_up(start, missing.value) == 500
    assert len(broker.fetching.walks.pids) == 1
