"""Fetches of old clients, whose records are converted while the log may go."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from odradek.coordinator.metadata.topic_creation import NewTopic
from odradek.coordinator.metadata.topic_deletion import TopicRef
from odradek.protocol.compression import CompressionType
from odradek.protocol.errors import ErrorCode
from odradek.protocol.legacy import read_message_set
from odradek.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from odradek.storage.files import Files
from tests.support.broker_in_loop import BrokerInLoop, broker_in_loop
from tests.support.hostile_batches import zeros
from tests.support.log_box import batch_of

pytestmark = pytest.mark.usefixtures("both_produce_paths")

VERSION = 2
TOPICS = ("t", "u")


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[BrokerInLoop]:
    async with broker_in_loop([tmp_path], Files()) as broker:
        for name in TOPICS:
            await broker.broker.admin.topics.create([NewTopic(name=name, partition_count=1)])
            await broker.produce(name, batch_of(b"v"))
        yield broker


async def fetched(served: BrokerInLoop) -> dict[str, tuple[int, int]]:
    """The error and the size of the records, of each topic."""
    wanted = [FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)]
    topics = [FetchTopic(topic=name, partitions=wanted) for name in TOPICS]
    request = FetchRequest(max_wait_ms=0, min_bytes=1, topics=topics)
    answer = await served.ask(request, FetchResponse, VERSION)
    return {
        topic.topic: (topic.partitions[0].error_code, len(topic.partitions[0].records or b""))
        for topic in answer.responses
    }


async def test_a_topic_that_goes_while_another_is_converted_is_unknown(
    served: BrokerInLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert {code for code, _ in (await fetched(served)).values()} == {0}
    convert = served.broker.fetching.down_converter.convert

    async def goes_meanwhile(*args: Any) -> Any:
        await served.broker.admin.topics.delete([TopicRef(name="u")])
        return await convert(*args)

    monkeypatch.setattr(served.broker.fetching.down_converter, "convert", goes_meanwhile)
    found = await fetched(served)
    assert found["t"][0] == ErrorCode.NONE
    assert found["t"][1] > 0
    assert found["u"] == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0)


async def test_a_directory_that_goes_meanwhile_is_an_error_that_the_client_knows(
    served: BrokerInLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = served.broker.log_manager.get("u", 0)
    converter = served.broker.fetching.down_converter
    convert = converter._convert_slice

    async def gives_nothing(
        records: Any, magic: int, first_offset: int, client: object
    ) -> tuple[bytes, int]:
        """As where there are only markers: then the log is read on."""
        log.take_offline("it fell off the table")
        return b"", (await convert(records, magic, first_offset, client))[1] + 1

    monkeypatch.setattr(converter, "_convert_slice", gives_nothing)
    assert (await fetched(served))["u"] == (ErrorCode.NOT_LEADER_OR_FOLLOWER, 0)


async def test_what_unpacks_to_much_is_converted_in_a_process_up_to_the_limit(
    served: BrokerInLoop,
) -> None:
    await served.produce("u", zeros(17 << 20, CompressionType.GZIP))
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        topics=[
            FetchTopic(
                topic="u",
                partitions=[
                    FetchPartition(partition=0, fetch_offset=1, partition_max_bytes=1 << 20)
                ],
            )
        ],
    )
    answer = await served.ask(request, FetchResponse, VERSION)
    (found,) = answer.responses[0].partitions
    (record,) = read_message_set(found.records or b"")
    assert len(record.value or b"") == 17 << 20
    assert len(served.broker.fetching.walks.pids) == 2
