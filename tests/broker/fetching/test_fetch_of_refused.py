"""A partition that is not there, or may not be read, does not keep a Fetch from waiting."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from odradek.broker.broker import Broker
from odradek.broker.handlers import fetch
from odradek.broker.turns.slices import Slices
from odradek.coordinator.metadata.topic_creation import NewTopic
from odradek.coordinator.metadata.topic_deletion import TopicRef
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from tests.support.broker_in_loop import until
from tests.support.contexts import broker_with_topic, request_context
from tests.support.log_box import NOW_MS, batch_of

VERSIONS = (12, 13)
UNKNOWN_ID = b"\x07" * 16


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[Broker]:
    async with broker_with_topic(tmp_path, 1) as made:
        await made.admin.topics.create([NewTopic(name="secret")])
        yield made


def begin(
    broker: Broker, version: int, *names: str, in_slices: bool = False
) -> asyncio.Future[FetchResponse]:
    """Begin a Fetch of the first partition of each topic."""
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    topics = broker.metadata.topics
    request = FetchRequest(
        max_wait_ms=60_000,
        min_bytes=1,
        topics=[
            FetchTopic(
                topic=name,
                topic_id=topics[name].id if name in topics else UNKNOWN_ID,
                partitions=[partition],
            )
            for name in names
        ],
    )
    context = request_context(broker, version, NOW_MS)

    async def serve(slices: Slices | None) -> FetchResponse:
        context.slices = slices
        answer = fetch.handle(context, request)
        return answer if isinstance(answer, FetchResponse) else await answer

    if in_slices:
        return broker.turns.slices.run(serve)
    return asyncio.ensure_future(serve(None))


async def waits(broker: Broker, fetching: asyncio.Future[FetchResponse]) -> bool:
    await until(lambda: fetching.done() or broker.fetching.waiters.count > 0)
    return not fetching.done()


def codes(response: FetchResponse) -> list[int]:
    return [topic.partitions[0].error_code for topic in response.responses]


def refuse_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        fetch, "refused_topics", lambda _context, plan: {t for t, _ in plan.wanted if t == "secret"}
    )


@pytest.mark.parametrize("in_slices", [False, True])
@pytest.mark.parametrize("version", VERSIONS)
async def test_a_fetch_waits_for_the_partitions_beside_one_that_is_unknown(
    broker: Broker, version: int, in_slices: bool
) -> None:
    fetching = begin(broker, version, "unknown", "t", in_slices=in_slices)
    assert await waits(broker, fetching)
    broker.log_manager.get("t", 0).append(batch_of(b"v"), now_ms=NOW_MS)
    by_id = version >= 13
    unknown = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    response = await asyncio.wait_for(fetching, 20)
    assert codes(response) == [unknown, ErrorCode.NONE]
    refused, found = (topic.partitions[0] for topic in response.responses)
    assert refused.aborted_transactions == []
    assert found.high_watermark == 1


@pytest.mark.parametrize("in_slices", [False, True])
async def test_a_fetch_waits_for_the_partitions_beside_one_that_may_not_be_read(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, in_slices: bool
) -> None:
    refuse_secret(monkeypatch)
    fetching = begin(broker, 12, "secret", "t", in_slices=in_slices)
    assert await waits(broker, fetching)
    batch = batch_of(b"v")
    broker.log_manager.get("secret", 0).append(bytearray(batch), now_ms=NOW_MS)
    await asyncio.sleep(0)
    assert not fetching.done(), "records that it may not read wake nobody"
    broker.log_manager.get("t", 0).append(batch, now_ms=NOW_MS)
    response = await asyncio.wait_for(fetching, 20)
    assert codes(response) == [ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.NONE]


@pytest.mark.parametrize("in_slices", [False, True])
async def test_a_fetch_of_refused_partitions_alone_does_not_wait(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, in_slices: bool
) -> None:
    refuse_secret(monkeypatch)
    fetching = begin(broker, 12, "secret", "unknown", in_slices=in_slices)
    assert not await waits(broker, fetching)


@pytest.mark.parametrize("in_slices", [False, True])
async def test_a_topic_that_is_deleted_ends_the_wait_also_beside_an_unknown_one(
    broker: Broker, in_slices: bool
) -> None:
    fetching = begin(broker, 13, "unknown", "t", in_slices=in_slices)
    assert await waits(broker, fetching)
    await broker.admin.topics.delete([TopicRef("t")])
    response = await asyncio.wait_for(fetching, 20)
    assert codes(response) == [ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
