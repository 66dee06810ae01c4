"""Reads what has arrived at a consumer."""

from __future__ import annotations

from collections.abc import Iterator

from confluent_kafka import Consumer, KafkaError, Message

from .failure import kafka_failure

BATCH = 1000
POLL_S = 0.2  # control-C is noticed so often
# librdkafka's consumer must have a group, and looks for its coordinator. These commands neither
# join the group nor commit, so it does not matter whether the user may use the group.
_OF_THE_GROUP = KafkaError.GROUP_AUTHORIZATION_FAILED


def polled(consumer: Consumer, topic: str) -> Iterator[tuple[int, Message | None]]:
    """What has arrived: a partition's index, and a record, or None where the partition ends.

    Waits for the first one, but not long, and not until there are many. A partition whose last
    records are not shown, such as markers, has an end, too. Raises CommandError.
    """
    messages = consumer.consume(BATCH, 0) or consumer.consume(1, POLL_S)
    for message in messages:
        index, error = message.partition(), message.error()
        if error is not None and error.code() == _OF_THE_GROUP:
            continue
        if error is not None and error.code() != KafkaError._PARTITION_EOF:
            raise kafka_failure(f"consume {topic}", error)
        assert index is not None
        yield index, message if error is None else None
