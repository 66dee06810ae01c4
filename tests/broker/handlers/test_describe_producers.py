"""DescribeProducers lists the producers that a partition's log knows."""

from pathlib import Path

from odradek.broker.handlers import describe_producers
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersTopic,
)
from tests.support.contexts import broker_with_topic, request_context
from tests.support.log_box import NOW_MS


async def test_the_producers_of_a_log_that_is_offline_are_not_described(tmp_path: Path) -> None:
    topic = DescribeProducersTopic(name="t", partition_indexes=[0])
    async with broker_with_topic(tmp_path, 1) as broker:
        broker.log_manager.get("t", 0).take_offline("test")
        answer = describe_producers.handle(
            request_context(broker, 0, NOW_MS), DescribeProducersRequest(topics=[topic])
        )
    assert answer.topics[0].partitions[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
