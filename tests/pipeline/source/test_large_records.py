"""A record of more than 100 MB, which the sink may write, can be read through a broker."""

from collections.abc import Callable

import pytest

pytest.importorskip("pyarrow")

from confluent_kafka import Producer

from odradek.pipeline.client_config import PRODUCER_SETTINGS
from odradek.pipeline.reading.range_reader import OffsetRange
from odradek.pipeline.source.broker_reader import BrokerReader
from odradek.storage.topic_partition import TopicPartition
from tests.support.broker_process import BrokerProcess
from tests.support.topics import create_topic

pytestmark = pytest.mark.slow
LIMIT_SECONDS = 60.0
SIZE = 101_000_000


def test_a_record_of_more_than_100_mb_is_read(start_broker: Callable[..., BrokerProcess]) -> None:
    broker = start_broker(**{"socket.request.max.bytes": "200000000"})
    create_topic(broker.bootstrap, "large", 1, {"max.message.bytes": "200000000"})
    client = {"bootstrap.servers": broker.bootstrap}
    settings = {**PRODUCER_SETTINGS, "queue.buffering.max.kbytes": 400_000, **client}
    producer = Producer(settings)
    producer.produce("large", bytes(SIZE))
    assert producer.flush(LIMIT_SECONDS) == 0
    wanted = OffsetRange(TopicPartition("large", 0), 0, 1)
    for more in ({}, {"fetch.max.bytes": "10000000"}):
        reader = BrokerReader({**client, **more}, wanted, ("value",), timeout_ms=20_000)
        assert [len(batch["value"][0].as_py()) for batch in reader.read()] == [SIZE]
