"""What a reader of committed records finds in a topic."""

from confluent_kafka import Consumer, KafkaError, TopicPartition

LIMIT_SECONDS = 30.0


def committed_values(bootstrap: str, topic: str, partitions: int) -> list[bytes]:
    """The values of all records, sorted; with an open transaction, those before it."""
    return sorted(values_in_order(bootstrap, topic, partitions))


def values_in_order(bootstrap: str, topic: str, partitions: int = 1) -> list[bytes]:
    """The same in the order of each partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, each, 0) for each in range(partitions)])
    values: list[bytes] = []
    ended: set[int | None] = set()
    try:
        while len(ended) < partitions:
            message = consumer.poll(LIMIT_SECONDS)
            assert message is not None, "the end of a partition is not reached"
            error, value = message.error(), message.value()
            if error is None and value is not None:
                values.append(value)
            elif error is not None:
                assert error.code() == KafkaError._PARTITION_EOF, error.str()
                ended.add(message.partition())
    finally:
        consumer.close()
    return values
