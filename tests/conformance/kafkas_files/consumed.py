"""What a consumer reads: the measure for all others."""

import time
from collections.abc import Sequence
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, TopicPartition

from tests.conformance.spark_jobs import Row
from tests.support.topics import topic_partitions

LIMIT_SECONDS = 60.0
ISOLATIONS = ("read_uncommitted", "read_committed")


def consumed(bootstrap: str, name: str, isolation: str) -> list[Row]:
    """All records of the topics that begin with `name`, up to where they can be read now."""
    places = [
        TopicPartition(topic, partition, OFFSET_BEGINNING)
        for topic, count in topic_partitions(bootstrap).items()
        if topic.startswith(name)
        for partition in range(count)
    ]
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "measure",  # the client wants one; nobody joins it
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 50,
        }
    )
    consumer.assign(places)
    rows: list[Row] = []
    at_end: set[tuple[Any, Any]] = set()
    deadline = time.monotonic() + LIMIT_SECONDS
    while len(at_end) < len(places):
        assert time.monotonic() < deadline, f"{len(at_end)} of {len(places)} partitions"
        for message in consumer.consume(10_000, 0.1):
            error = message.error()
            if error is None:
                rows.append(_row(message))
            else:
                assert error.code() == KafkaError._PARTITION_EOF, error
                at_end.add((message.topic(), message.partition()))
    consumer.close()
    return sorted(rows, key=place_of)


def place_of(row: Row) -> tuple[str, int, int]:
    """Topic, partition, offset: what no two records share."""
    return row.topic, row.partition, row.offset


def check_same(found: Sequence[Row], expected: Sequence[Row]) -> None:
    """That these are the same records, each once; what differs first is told."""
    for ours, theirs in zip(found, expected, strict=False):
        assert ours == theirs
    further = [*found[len(expected) :], *expected[len(found) :]]
    assert not further, f"{len(found)} records and not {len(expected)}: {further[0]}"


def _row(message: Message) -> Row:
    found: Any = message  # the types allow for errors, which have none of this
    kind, timestamp_ms = found.timestamp()
    return Row(
        found.topic(),
        found.partition(),
        found.offset(),
        found.key(),
        found.value(),
        timestamp_ms,
        kind - 1,  # 0 is none there, and -1 in Spark
        tuple(found.headers() or ()),
    )
