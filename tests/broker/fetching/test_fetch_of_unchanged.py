"""Partitions of a session without news are left out before their answers are built.

The same requests are sent in two sessions, and one of them builds every answer.
"""

import inspect
import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from odradek.broker.broker import Broker
from odradek.broker.fetching.fetch_sessions import FetchPlan
from odradek.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from odradek.protocol.schema import Splices, codec_for
from odradek.storage.log import PartitionLog
from tests.support.contexts import broker_with_topic, handled, request_context
from tests.support.log_box import NOW_MS, batch_of

VERSION = 12
PARTITIONS = 4
STEPS = 60


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[Broker]:
    async with broker_with_topic(tmp_path, PARTITIONS) as made:
        yield made


class Reader:
    """A consumer with a session, which fetches each partition from its end or a bit before."""

    def __init__(self, broker: Broker, isolation_level: int) -> None:
        self._broker = broker
        self._isolation_level = isolation_level
        self._session_id = 0
        self._epoch = 0

    async def fetch(self, offsets: dict[int, int]) -> tuple[bytes, list[tuple[int, int]]]:
        """The answer without its session id, and what it would send of files."""
        partitions = [
            FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1000)
            for index, offset in offsets.items()
        ]
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            isolation_level=self._isolation_level,
            session_id=self._session_id,
            session_epoch=self._epoch,
            topics=[FetchTopic(topic="t", partitions=partitions)] if partitions else [],
        )
        context = request_context(self._broker, VERSION, NOW_MS)
        response = handled(context, request)
        if inspect.isawaitable(response):  # a read of the disk
            response = await response
        assert isinstance(response, FetchResponse)
        self._session_id, self._epoch = response.session_id, self._epoch + 1
        assert self._session_id
        out = bytearray()
        slices: Splices = []
        codec_for(FetchResponse, VERSION).write(response, out, slices)
        out[6:10] = bytes(4)  # after throttle_time_ms and error_code
        return bytes(out), [(of_file.position, of_file.size_bytes) for _, of_file in slices]  # type: ignore[attr-defined] # FileSlices


def change(log: PartitionLog, chance: random.Random) -> None:
    """Append, delete records, truncate, or go offline."""
    match chance.randrange(12):
        case 0 | 1 | 2 | 3:
            log.append(batch_of(b"v" * chance.randrange(100)), now_ms=NOW_MS)
        case 4 if log.log_start_offset < log.high_watermark:
            log.increment_log_start_offset(log.log_start_offset + 1)
        case 5 if log.log_end_offset:
            log.truncate_to(log.log_end_offset - 1, NOW_MS)
        case 6:
            log.high_watermark = max(log.log_start_offset, log.high_watermark - 1)  # awaits a sync
        case 7:
            log.high_watermark = log.log_end_offset


@pytest.mark.parametrize("isolation_level", [0, 1])
@pytest.mark.parametrize("seed", range(5))
async def test_answers_are_those_of_a_session_that_builds_them_all(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, isolation_level: int, seed: int
) -> None:
    chance = random.Random(seed)
    logs = [broker.log_manager.get("t", index) for index in range(PARTITIONS)]
    readers = [Reader(broker, isolation_level), Reader(broker, isolation_level)]
    left_out = FetchPlan.has_sent_end
    offsets = dict.fromkeys(range(PARTITIONS), 0)
    for step in range(STEPS):
        answers = []
        for reader, asks in zip(readers, (left_out, lambda *_: False), strict=True):
            with monkeypatch.context() as patch:
                patch.setattr(FetchPlan, "has_sent_end", asks)
                answers.append(await reader.fetch(offsets))
        assert answers[0] == answers[1]
        if step == STEPS - 2:
            logs[0].take_offline("its disk failed")
            offsets = {}
            continue
        change(chance.choice(logs), chance)
        asked = chance.sample(range(PARTITIONS), chance.randrange(PARTITIONS))
        offsets = {
            index: max(0, logs[index].log_end_offset - chance.randrange(2)) for index in asked
        }
