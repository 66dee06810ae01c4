"""Isolation levels that do not exist are refused as by Kafka: with an unexpected error."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from odradek.broker.broker import Broker
from odradek.broker.handlers import fetch, list_offsets
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from odradek.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from tests.support.contexts import broker_with_topic, request_context
from tests.support.log_box import NOW_MS

LEVELS = (-1, 2, 7)


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[Broker]:
    async with broker_with_topic(tmp_path, 1) as made:
        yield made


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("version", [4, 12, 17])
def test_a_fetch_is_refused(broker: Broker, version: int, level: int) -> None:
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    topic_id = broker.metadata.topics["t"].id
    request = FetchRequest(
        max_wait_ms=60_000,
        min_bytes=1,
        isolation_level=level,
        session_epoch=0,
        topics=[FetchTopic(topic="t", topic_id=topic_id, partitions=[partition])],
    )
    answer = fetch.handle(request_context(broker, version, NOW_MS), request)
    assert isinstance(answer, FetchResponse)
    assert (answer.error_code, answer.session_id) == (ErrorCode.UNKNOWN_SERVER_ERROR, 0)
    partitions = [each for topic in answer.responses for each in topic.partitions]
    named = [] if version >= 13 else [ErrorCode.UNKNOWN_SERVER_ERROR]  # Kafka names none by id
    assert [each.error_code for each in partitions] == named


@pytest.mark.parametrize("level", LEVELS)
def test_a_lookup_of_offsets_is_refused(broker: Broker, level: int) -> None:
    partition = ListOffsetsPartition(partition_index=0, timestamp=-1)
    request = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=level,
        topics=[ListOffsetsTopic(name="t", partitions=[partition])],
    )
    answer = list_offsets.handle(request_context(broker, 5, NOW_MS), request)
    assert isinstance(answer, ListOffsetsResponse)
    [found] = answer.topics[0].partitions
    assert (found.error_code, found.offset) == (ErrorCode.UNKNOWN_SERVER_ERROR, -1)
