"""Measures a broker with one producer and one consumer, as applications have them.

The records have 1 KiB and one partition. The client, librdkafka with its defaults, runs on the same
machine as this process, and takes a part of what is measured.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import quantiles
from typing import NamedTuple
from uuid import uuid4

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import NewTopic

from odradek.tools.client.admin import connect, results
from odradek.tools.client.client_config import client_settings
from odradek.tools.client.failure import CommandError, kafka_failure

RECORD_BYTES = 1024
MB = 1_000_000
LIMIT_S = 30.0
WAIT_S = 0.1  # control-C is noticed so often
# Between two looks at the clock.
SENT_AT_ONCE = 1000


class Figures(NamedTuple):
    """What was measured. Throughput is of record values; latency is of one record at a time."""

    produce_mb_per_s: float
    consume_mb_per_s: float
    latency_p50_ms: float
    latency_p99_ms: float


class Failures:
    """The last error of records that were sent."""

    def __init__(self) -> None:
        self.last: KafkaError | None = None

    def note(self, error: KafkaError | None, _: Message) -> None:
        """To be called for each record that was sent."""
        self.last = error or self.last


def measure(bootstrap: str | None, file: Path | None, seconds: float) -> Figures:
    """Measure a broker for three times this many seconds. Raises CommandError."""
    admin = connect(bootstrap, file)
    settings = {**client_settings(bootstrap, file), "log_level": "0"}
    topic = f"odradek-bench-{uuid4()}"
    results("create topic", admin.create_topics([NewTopic(topic, 1, 1)]))
    try:
        produced = _produce(settings, topic, seconds)
        consumed = consumed_mb_per_s(settings, topic, seconds)
        latencies_ms = _latencies_ms(settings, topic, seconds)
    except KafkaException as error:
        raise kafka_failure("the broker cannot be measured", error.args[0]) from None
    finally:
        results("delete topic", admin.delete_topics([topic]))
    cuts = quantiles(latencies_ms, n=100)
    return Figures(produced, consumed, cuts[49], cuts[98])


def _produce(settings: Mapping[str, str], topic: str, seconds: float) -> float:
    """MB/s of acknowledged records."""
    failures = Failures()
    producer = Producer({**settings, "queue.buffering.max.messages": 1_000_000})
    value = os.urandom(RECORD_BYTES)
    count, began = 0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        for _ in range(SENT_AT_ONCE):
            while True:
                try:
                    producer.produce(topic, value, on_delivery=failures.note)
                except BufferError:
                    producer.poll(0.1)
                else:
                    break
        producer.poll(0)
        count += SENT_AT_ONCE
    _flush(producer, failures)
    return count * RECORD_BYTES / MB / (time.perf_counter() - began)


def _flush(producer: Producer, failures: Failures) -> None:
    deadline = time.monotonic() + LIMIT_S
    while producer.flush(WAIT_S):
        if time.monotonic() > deadline:
            raise CommandError(f"records are not acknowledged for {LIMIT_S:.0f} s")
    if failures.last is not None:
        raise kafka_failure("the broker cannot be measured", failures.last)


def consumed_mb_per_s(settings: Mapping[str, str], topic: str, seconds: float) -> float:
    """MB/s of records from the beginning of the topic; at its end, from the beginning again."""
    consumer = Consumer({**settings, "group.id": topic, "enable.auto.commit": False})
    try:
        _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), LIMIT_S)
        consumer.assign([TopicPartition(topic, 0, 0)])
        _read(consumer, topic, end)  # not measured: the client takes a while to begin
        size, began = 0, time.perf_counter()
        while not size or time.perf_counter() - began < seconds:
            size += _read(consumer, topic, end)
        return size / MB / (time.perf_counter() - began)
    finally:
        consumer.close()


def _read(consumer: Consumer, topic: str, end: int) -> int:
    """Read as many records as were sent at once, and return the bytes of their values.

    After the last record of the topic, the first one comes next.
    """
    messages = consumer.consume(SENT_AT_ONCE, LIMIT_S)
    for message in messages:
        if (error := message.error()) is not None:
            raise KafkaException(error)
    if not messages:
        raise CommandError(f"no record came for {LIMIT_S:.0f} s")
    if messages[-1].offset() == end - 1:
        consumer.seek(TopicPartition(topic, 0, 0))
    return sum(len(message.value() or b"") for message in messages)


def _latencies_ms(settings: Mapping[str, str], topic: str, seconds: float) -> list[float]:
    """From sending one record to its acknowledgement."""
    failures = Failures()
    producer = Producer({**settings, "linger.ms": 0})
    value = os.urandom(RECORD_BYTES)
    found: list[float] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(found) < 2:
        began = time.perf_counter()
        producer.produce(topic, value, on_delivery=failures.note)
        _flush(producer, failures)
        found.append((time.perf_counter() - began) * 1000)
    return found
