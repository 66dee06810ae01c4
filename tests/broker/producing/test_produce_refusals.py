"""What the refusal of a batch says besides its error code."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from odradek.broker.handlers import produce
from odradek.coordinator.metadata.topic_creation import NewTopic
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.produce import (
    ProducePartitionData,
    ProducePartitionResponse,
    ProduceRequest,
    ProduceResponse,
    ProduceTopicData,
)
from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from odradek.storage.files import Files
from odradek.storage.topic_names import CONSUMER_OFFSETS_TOPIC
from tests.support.broker_in_loop import BrokerInLoop, broker_in_loop, produce_to
from tests.support.contexts import request_context
from tests.support.log_box import batch_of
from tests.support.message_sets import message

GOOD = bytes(batch_of(b"a"))
FLIPPED = GOOD[:-1] + bytes([GOOD[-1] ^ 1])


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[BrokerInLoop]:
    """Its topic `t` is compacted, takes 200 bytes, and begins at offset 1."""
    async with broker_in_loop([tmp_path / "data"], Files()) as running:
        configs = {"cleanup.policy": "compact,delete", "max.message.bytes": "200"}
        await running.broker.admin.topics.create([NewTopic(name="t", configs=configs)])
        await running.produce("t", GOOD)
        running.broker.log_manager.get("t", 0).increment_log_start_offset(1)
        yield running


@pytest.mark.parametrize(
    ("batch", "code", "log_start_offset"),
    [
        pytest.param(GOOD, ErrorCode.NONE, 1, id="none"),
        pytest.param(b"", ErrorCode.INVALID_RECORD, -1, id="no batch"),
        pytest.param(GOOD + GOOD[:-1], ErrorCode.NONE, 1, id="a batch and a part of one"),
        pytest.param(GOOD + bytes(12), ErrorCode.CORRUPT_MESSAGE, -1, id="a batch and zeros"),
        pytest.param(GOOD * 2, ErrorCode.INVALID_RECORD, -1, id="two batches"),
        pytest.param(FLIPPED, ErrorCode.CORRUPT_MESSAGE, -1, id="wrong CRC"),
        pytest.param(bytes(batch_of(b"v" * 200)), ErrorCode.MESSAGE_TOO_LARGE, -1, id="too large"),
        pytest.param(
            bytes(batch_of(b"v", key=None)), ErrorCode.INVALID_RECORD, 1, id="without a key"
        ),
        pytest.param(
            bytes(batch_of(b"v", producer=(9, 0, -1))), ErrorCode.INVALID_RECORD, 1, id="sequence"
        ),
        pytest.param(
            bytes(build_batch([Record(b"k", b"v", 1 << 50)])),
            ErrorCode.INVALID_TIMESTAMP,
            1,
            id="late",
        ),
    ],
)
async def test_a_refusal_by_the_log_tells_where_the_log_starts(
    batch: bytes, code: ErrorCode, log_start_offset: int, broker: BrokerInLoop
) -> None:
    [answer] = await broker.produce("t", batch)
    assert (answer.error_code, answer.log_start_offset) == (code, log_start_offset)


async def test_what_follows_a_batch_is_not_stored(broker: BrokerInLoop) -> None:
    log = broker.broker.log_manager.get("t", 0)
    before = log.size_bytes
    await broker.produce("t", GOOD + GOOD[:-1])
    assert log.size_bytes == before + len(GOOD)


@pytest.mark.parametrize("version", [3, 9])
@pytest.mark.parametrize("names", [["t"], ["unknown"], ["unknown", "t"]])
async def test_a_topic_without_partitions_is_not_answered(
    names: list[str], version: int, broker: BrokerInLoop
) -> None:
    empty = [ProduceTopicData(name=name, partition_data=[]) for name in names]
    request = ProduceRequest(acks=1, timeout_ms=1000, topic_data=empty)
    assert (await broker.ask(request, ProduceResponse, version)).responses == []
    request.topic_data.extend(produce_to("t", GOOD).topic_data)
    answer = await broker.ask(request, ProduceResponse, version)
    assert [topic.name for topic in answer.responses] == ["t"]
    assert [each.error_code for each in answer.responses[0].partition_responses] == [ErrorCode.NONE]


async def test_a_message_set_has_no_attributes_where_a_batch_has_them(
    broker: BrokerInLoop,
) -> None:
    """The byte is of the timestamp; in a batch it would say zstd."""
    request = produce_to("t", message(b"v" * 50, timestamp_ms=4 << 24))
    answer = await broker.ask(request, ProduceResponse, 3)
    assert answer.responses[0].partition_responses[0].error_code == ErrorCode.INVALID_RECORD


async def test_message_sets_are_not_looked_into_before_acks(broker: BrokerInLoop) -> None:
    request = produce_to("t", bytes(22) + b"\x10" + bytes(50), acks=7)
    answer = await broker.ask(request, ProduceResponse, 2)
    assert answer.responses[0].partition_responses[0].error_code == ErrorCode.INVALID_REQUIRED_ACKS


@pytest.mark.parametrize(
    ("batch", "index", "code"),
    [
        pytest.param(GOOD, 0, ErrorCode.INVALID_REQUIRED_ACKS, id="good"),
        pytest.param(FLIPPED, 0, ErrorCode.INVALID_REQUIRED_ACKS, id="wrong CRC"),
        pytest.param(b"", 0, ErrorCode.INVALID_RECORD, id="no batch"),
        pytest.param(GOOD, 7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, id="no partition"),
    ],
)
async def test_a_missing_partition_or_batch_comes_before_wrong_acks(
    batch: bytes, index: int, code: ErrorCode, broker: BrokerInLoop
) -> None:
    request = produce_to("t", batch, [index], acks=7)
    answer = await broker.ask(request, ProduceResponse, 9)
    [found] = answer.responses[0].partition_responses
    assert isinstance(found, ProducePartitionResponse)
    assert (found.error_code, found.log_start_offset) == (code, -1)


def transactional(topic: str, *, acks: int) -> ProduceRequest:
    batch = build_batch(
        [Record(b"k", b"v", 1)],
        producer_id=9,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
    )
    data = [ProducePartitionData(index=0, records=bytes(batch))]
    return ProduceRequest(
        transactional_id="x",
        acks=acks,
        timeout_ms=1000,
        topic_data=[ProduceTopicData(name=topic, partition_data=data)],
    )


async def test_a_transaction_that_cannot_be_verified_comes_before_wrong_acks(
    broker: BrokerInLoop,
) -> None:
    answer = await broker.ask(transactional("t", acks=7), ProduceResponse, 11)
    [found] = answer.responses[0].partition_responses
    assert found.error_code == ErrorCode.NOT_ENOUGH_REPLICAS


async def test_a_transaction_in_an_internal_topic_is_verified(broker: BrokerInLoop) -> None:
    """Only Kafka's admin client may write there."""
    await broker.broker.admin.topics.ensure_internal_topic(CONSUMER_OFFSETS_TOPIC)
    context = request_context(broker.broker, 11, 0)
    context.client_id = "__admin_client"
    answer = produce.handle(context, transactional(CONSUMER_OFFSETS_TOPIC, acks=-1))
    assert isinstance(answer, ProduceResponse)
    [found] = answer.responses[0].partition_responses
    assert found.error_code == ErrorCode.NOT_ENOUGH_REPLICAS
