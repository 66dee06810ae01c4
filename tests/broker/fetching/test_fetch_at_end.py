"""A Fetch of which every log is at its end waits without reading them.

The same requests are handled again, and the logs are read first.
"""

import asyncio
import inspect
import random
from collections.abc import AsyncIterator, Awaitable, Sequence
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
from odradek.protocol.schema import Splices, codec_for
from odradek.storage.log import PartitionLog
from tests.support.contexts import broker_with_topic, request_context
from tests.support.log_box import NOW_MS, batch_of

PARTITIONS = 3
STEPS = 100
LONG_MS = 60_000
VERSIONS = (4, 12, 13)


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[Broker]:
    async with broker_with_topic(tmp_path, PARTITIONS) as made:
        yield made


def a_request(
    chance: random.Random, topic: FetchTopic, logs: Sequence[PartitionLog]
) -> FetchRequest:
    """Most partitions are asked for from their ends; anything else may be odd about them."""
    for index in chance.sample(range(PARTITIONS), chance.choice((1, 1, 2))):
        epoch = logs[index].leader_epoch
        partition = FetchPartition(
            partition=chance.choice([index] * 20 + [PARTITIONS]),
            fetch_offset=logs[index].log_end_offset + chance.choice([0] * 10 + [-1, 1]),
            current_leader_epoch=chance.choice([-1] * 5 + [epoch] * 5 + [epoch + 1]),
            last_fetched_epoch=chance.choice([-1] * 10 + [epoch, epoch + 1]),
            partition_max_bytes=1000,
        )
        topic.partitions.append(partition)
    return FetchRequest(
        max_wait_ms=chance.choice([LONG_MS] * 5 + [0]),
        min_bytes=chance.choice([1] * 5 + [0, 200]),
        isolation_level=chance.randrange(2),
        topics=[topic],
    )


async def response_of(
    broker: Broker, response: FetchResponse | Awaitable[FetchResponse]
) -> FetchResponse:
    """The response; a Fetch that waits is told that its time is up, until it answers."""
    if isinstance(response, FetchResponse):
        return response
    waiting = asyncio.ensure_future(response)
    while not waiting.done():
        await asyncio.sleep(0)
        broker.fetching.waiters.release_all()
    return waiting.result()


def sent(response: FetchResponse, version: int) -> tuple[bytes, list[tuple[int, int]]]:
    """The response, and what it sends of files."""
    out = bytearray()
    slices: Splices = []
    codec_for(FetchResponse, version).write(response, out, slices)
    return bytes(out), [(of_file.position, of_file.size_bytes) for _, of_file in slices]  # type: ignore[attr-defined] # FileSlices


def change(log: PartitionLog, chance: random.Random) -> None:
    """Append, wait for a sync, or go on after one."""
    match chance.randrange(6):
        case 0 if log.log_end_offset:
            log.high_watermark = log.log_end_offset - 1
        case 1:
            log.high_watermark = log.log_end_offset
        case _ if log.is_online:
            log.append(batch_of(b"v" * chance.randrange(100)), now_ms=NOW_MS)


@pytest.mark.parametrize("seed", range(5))
async def test_a_fetch_is_answered_as_if_its_logs_were_read_first(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    chance = random.Random(seed)
    logs = [broker.log_manager.get("t", index) for index in range(PARTITIONS)]
    at_end: list[bool] = []
    look = fetch.logs_at_end

    def noting(*arguments: object) -> list[PartitionLog] | None:
        found = look(*arguments)  # type: ignore[arg-type] # passed on
        at_end.append(found is not None)
        return found

    for step in range(STEPS):
        version = chance.choice(VERSIONS)
        names = [("t", broker.metadata.topics["t"].id)] * 10 + [("absent", b"absent".ljust(16))]
        name, topic_id = chance.choice(names)
        topic = FetchTopic(topic=name, topic_id=topic_id, partitions=[])
        request = a_request(chance, topic, logs)
        responses = []
        for looks in (noting, lambda *_: None):
            with monkeypatch.context() as patch:
                patch.setattr(fetch, "logs_at_end", looks)
                context = request_context(broker, version, NOW_MS)
                responses.append(fetch.handle(context, request))
        waits = [inspect.isawaitable(response) for response in responses]
        assert waits[0] == waits[1]
        change(chance.choice(logs), chance)
        if step == STEPS - 5:
            logs[0].take_offline("its disk failed")
            logs[0].notify_waiters()
        quick, careful = [await response_of(broker, response) for response in responses]
        assert sent(quick, version) == sent(careful, version)
    assert at_end.count(True) > STEPS // 10
    assert False in at_end
