"""Workloads of librdkafka's producer, through confluent-kafka. The client is the limit of most."""

import os
from collections.abc import Callable
from functools import partial

from confluent_kafka import Producer

from tests.bench.figures import Figures
from tests.bench.two_brokers import Meter, new_topic
from tests.support.broker_process import BrokerProcess

RECORDS = 2_000_000
RECORD_BYTES = 100
FLUSH_S = 120.0
SETTINGS = {
    "acks": 1,
    "linger.ms": 5,
    "queue.buffering.max.messages": RECORDS,
    "queue.buffering.max.kbytes": 1 << 20,
    "log_level": 0,
}


def produced(broker: BrokerProcess, share: int, *, partitions: int, codec: str) -> Figures:
    """librdkafka's producer, records of 100 bytes, acks=1, linger.ms=5."""
    count = RECORDS // share
    producer = Producer(
        {**SETTINGS, "bootstrap.servers": broker.bootstrap, "compression.type": codec}
    )
    value = os.urandom(RECORD_BYTES // 2).hex().encode()  # lz4 finds something to compress
    with new_topic(broker, partitions) as topic:
        producer.produce(topic, value)
        assert producer.flush(FLUSH_S) == 0
        meter = Meter(broker)
        for number in range(count):
            producer.produce(topic, value, partition=number % partitions)
        assert producer.flush(FLUSH_S) == 0, "not all records are acknowledged"
        return meter.done(count)


WORKLOADS: dict[str, Callable[[BrokerProcess, int], Figures]] = {
    f"librdkafka_{partitions}_{codec}": partial(produced, partitions=partitions, codec=codec)
    for partitions in (1, 6)
    for codec in ("none", "lz4")
}
