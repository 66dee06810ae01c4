"""What a reader of committed records finds in a topic."""

import time
from collections.abc import Iterable

from confluent_kafka import Consumer, IsolationLevel, KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

LIMIT_SECONDS = 100.0
POLL_SECONDS = 0.02


def committed_values(bootstrap: str, topic: str, partitions: int) -> list[bytes]:
    """The values of all records, sorted; with an open transaction, those before it."""
    by_partition = committed_by_partition(bootstrap, [(topic, each) for each in range(partitions)])
    return sorted(value for values in by_partition.values() for value in values)


def wait_until_decided(bootstrap: str, topic: str, partitions: int) -> None:
    """Return when the topic has no open transaction.

    Apache Kafka answers EndTxn before it writes the markers.
    """
    admin = AdminClient({"bootstrap.servers": bootstrap})
    deadline = time.monotonic() + LIMIT_SECONDS
    while True:
        ends = [
            _end_offsets(admin, topic, partitions, isolation)
            for isolation in (IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED)
        ]
        if ends[0] == ends[1]:
            return
        assert time.monotonic() < deadline, f"a transaction stays open in {topic}: {ends}"
        time.sleep(POLL_SECONDS)


def _end_offsets(
    admin: AdminClient, topic: str, partitions: int, isolation: IsolationLevel
) -> list[int]:
    asked = {TopicPartition(topic, each): OffsetSpec.latest() for each in range(partitions)}
    found = admin.list_offsets(asked, isolation_level=isolation)
    return [future.result(LIMIT_SECONDS).offset for future in found.values()]


def committed_by_partition(
    bootstrap: str, partitions: Iterable[tuple[str, int]]
) -> dict[tuple[str, int], list[bytes]]:
    """The values of each partition in order; with an open transaction, those before it."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    found: dict[tuple[str, int], list[bytes]] = {each: [] for each in partitions}
    consumer.assign([TopicPartition(*each, 0) for each in found])
    ended: set[tuple[str, int]] = set()
    try:
        while len(ended) < len(found):
            message = consumer.poll(LIMIT_SECONDS)
            assert message is not None, "the end of a partition is not reached"
            topic, partition, error = message.topic(), message.partition(), message.error()
            assert topic is not None
            assert partition is not None
            if error is None:
                found[topic, partition].append(message.value() or b"")
            else:
                assert error.code() == KafkaError._PARTITION_EOF, error.str()
                ended.add((topic, partition))
    finally:
        consumer.close()
    return found
