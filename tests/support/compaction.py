"""Compacted topics of a broker process: held back, let go, and looked at."""

import time
from pathlib import Path

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from odradek.storage.checkpoints import read_offsets
from odradek.storage.files import Files
from odradek.storage.topic_partition import TopicPartition as Partition
from tests.support.topics import LIMIT_SECONDS

# A log is cleaned only when `let_it_be_cleaned` says so; then the broker looks soon.
HELD_BACK = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "1.0"}
LOOKS_SOON = {"log.cleaner.backoff.ms": "200"}


def let_it_be_cleaned(bootstrap: str, topic: str) -> None:
    """Have the topic count as dirty."""
    alter_topic(bootstrap, topic, "min.cleanable.dirty.ratio", "0.01")


def alter_topic(bootstrap: str, topic: str, name: str, value: str) -> None:
    """Set one of a topic's settings."""
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for answer in admin.incremental_alter_configs([resource]).values():
        answer.result(LIMIT_SECONDS)


def clean_up_to(data: Path, topic: str) -> int | None:
    """The offset up to which partition 0 is clean; None before its first round has ended."""
    return read_offsets(Files(), data / "cleaner-offset-checkpoint").get(Partition(topic, 0))


def stored_records(bootstrap: str, topic: str) -> list[tuple[int, bytes | None, bytes | None]]:
    """Offset, key and value of all records of partition 0, up to where it ends now."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "none", "enable.auto.commit": False}
    consumer = Consumer(settings)
    place = TopicPartition(topic, 0, OFFSET_BEGINNING)
    _, end = consumer.get_watermark_offsets(place, timeout=LIMIT_SECONDS)
    consumer.assign([place])
    found: list[tuple[int, bytes | None, bytes | None]] = []
    deadline = time.monotonic() + LIMIT_SECONDS
    # The newest record is in the active segment, and never compacted away.
    while end and (not found or found[-1][0] < end - 1):
        assert time.monotonic() < deadline, f"{topic} cannot be read to its end"
        for message in consumer.consume(10_000, 0.1):
            assert message.error() is None, message.error()
            offset = message.offset()
            assert offset is not None
            found.append((offset, message.key(), message.value()))
    consumer.close()
    return found
