"""`odradek consume`: prints records of a topic, up to its present end or for ever."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from .client_config import client_settings
from .connecting import TIMEOUT_S, connected
from .failure import CommandError, refused
from .moments import parse_moment_ms
from .record_format import RecordFormat, json_line

BATCH = 1000
POLL_S = 0.2
# librdkafka's consumer must have a group, and looks for its coordinator. This command neither joins
# the group nor commits, so it does not matter whether the user may use the group.
_OF_THE_GROUP = KafkaError.GROUP_AUTHORIZATION_FAILED


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumeOptions:
    """What to read, and how to print it.

    `start`: earliest, latest, an offset, a moment, or an age. `last`: that many records before the
    end of each partition instead. `limit`: stop after so many.
    """

    topic: str
    partitions: list[int]
    start: str
    last: int | None
    limit: int | None
    follow: bool
    committed: bool
    format: str
    as_json: bool


def consume(options: ConsumeOptions, bootstrap: str | None, file: Path | None) -> None:
    """Print the records. Raises CommandError."""
    line = json_line if options.as_json else RecordFormat(options.format).line
    settings = client_settings(bootstrap, file)
    connected(settings)
    consumer = Consumer(
        {
            "group.id": f"odradek-consume-{uuid.uuid4()}",
            **settings,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed" if options.committed else "read_uncommitted",
            "log_level": 0,
        }
    )
    try:
        ranges = [_range(consumer, options, index) for index in _indexes(consumer, options)]
        consumer.assign([start for start, _ in ranges])
        _print(_messages(consumer, options, ranges), line, options)
    except KafkaException as error:
        raise refused(f"consume {options.topic}", error.args[0]) from None
    finally:
        consumer.close()


def _print(
    messages: Iterator[Message], line: Callable[[Message], bytes], options: ConsumeOptions
) -> None:
    out = sys.stdout.buffer
    for number, message in enumerate(messages, 1):
        out.write(line(message))
        if options.follow:
            out.flush()
        if number == options.limit:
            return


def _indexes(consumer: Consumer, options: ConsumeOptions) -> list[int]:
    """The partitions to read."""
    known = consumer.list_topics(options.topic, timeout=TIMEOUT_S).topics[options.topic]
    if known.error is not None:
        raise refused(f"consume {options.topic}", known.error)
    missing = set(options.partitions) - set(known.partitions)
    if missing:
        raise CommandError(f"topic {options.topic} has no partition {min(missing)}")
    return sorted(options.partitions or known.partitions)


def _range(consumer: Consumer, options: ConsumeOptions, index: int) -> tuple[TopicPartition, int]:
    """Where to begin in a partition, and its present end."""
    partition = TopicPartition(options.topic, index)
    first, end = consumer.get_watermark_offsets(partition, timeout=TIMEOUT_S)
    partition.offset = _start(consumer, options, index, first, end)
    return partition, end


def _start(consumer: Consumer, options: ConsumeOptions, index: int, first: int, end: int) -> int:
    if options.last is not None:
        return max(first, end - options.last)
    if options.start == "earliest":
        return first
    if options.start == "latest":
        return end
    if options.start.isdigit():
        return min(max(int(options.start), first), end)
    wanted = TopicPartition(options.topic, index, parse_moment_ms(options.start))
    (found,) = consumer.offsets_for_times([wanted], timeout=TIMEOUT_S)
    return end if found.offset < 0 else int(found.offset)


def _messages(
    consumer: Consumer, options: ConsumeOptions, ranges: list[tuple[TopicPartition, int]]
) -> Iterator[Message]:
    """The records, for ever, or until all partitions are read to the ends that they had.

    A partition whose last records are not shown, such as markers, ends with an event.
    """
    ends = {start.partition: end for start, end in ranges if options.follow or start.offset < end}
    while ends:
        for message in consumer.consume(BATCH, POLL_S):
            index, offset, error = message.partition(), message.offset(), message.error()
            if error is not None and error.code() == _OF_THE_GROUP:
                continue
            if error is not None and error.code() != KafkaError._PARTITION_EOF:
                raise refused(f"consume {options.topic}", error)
            assert index is not None
            assert offset is not None
            end = ends.get(index, 0)
            if error is None and (options.follow or offset < end):
                yield message
            if not options.follow and (error is not None or offset + 1 >= end):
                ends.pop(index, None)
