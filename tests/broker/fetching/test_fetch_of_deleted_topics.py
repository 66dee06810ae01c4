"""A topic is deleted while a Fetch waits for it, or between two requests of a session."""

from collections.abc import Awaitable
from pathlib import Path

import pytest

from odradek.broker.broker import Broker
from odradek.broker.handlers import fetch
from odradek.coordinator.metadata.topic_creation import NewTopic
from odradek.coordinator.metadata.topic_deletion import TopicRef
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import (
    FetchPartition,
    FetchPartitionData,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from tests.support.contexts import broker_with_topic, request_context
from tests.support.log_box import NOW_MS

VERSIONS = (12, 13, 18)


def fetch_request(
    broker: Broker, *, session_id: int = 0, epoch: int = -1, max_wait_ms: int = 0
) -> FetchRequest:
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    topic_id = broker.metadata.topics["t"].id if epoch <= 0 else b""
    topics = [FetchTopic(topic="t", topic_id=topic_id, partitions=[partition])]
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        session_id=session_id,
        session_epoch=epoch,
        topics=topics if epoch <= 0 else [],
    )


def ask(
    broker: Broker, request: FetchRequest, version: int
) -> FetchResponse | Awaitable[FetchResponse]:
    return fetch.handle(request_context(broker, version, NOW_MS), request)


def answer_of(response: FetchResponse | Awaitable[FetchResponse]) -> FetchPartitionData:
    assert isinstance(response, FetchResponse)
    ((partition,),) = [topic.partitions for topic in response.responses]
    return partition


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_fetch_that_waits_is_told_that_its_topic_is_unknown(
    tmp_path: Path, version: int
) -> None:
    async with broker_with_topic(tmp_path, 1) as broker:
        waiting = ask(broker, fetch_request(broker, max_wait_ms=60_000), version)
        assert not isinstance(waiting, FetchResponse)
        await broker.admin.topics.delete([TopicRef("t")])
        answer = answer_of(await waiting)
    assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert answer.aborted_transactions is None


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_session_knows_that_its_topic_is_gone_and_that_another_has_its_name(
    tmp_path: Path, version: int
) -> None:
    async with broker_with_topic(tmp_path, 1) as broker:
        first = ask(broker, fetch_request(broker, epoch=0), version)
        assert isinstance(first, FetchResponse)

        def news(epoch: int) -> FetchPartitionData:
            request = fetch_request(broker, session_id=first.session_id, epoch=epoch)
            return answer_of(ask(broker, request, version))

        await broker.admin.topics.delete([TopicRef("t")])
        gone = news(1)
        assert gone.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert gone.aborted_transactions == []
        await broker.admin.topics.create([NewTopic(name="t", partition_count=1)])
        again = news(2)
    by_id = version >= 13
    assert again.error_code == (ErrorCode.INCONSISTENT_TOPIC_ID if by_id else ErrorCode.NONE)
    assert again.aborted_transactions is None
