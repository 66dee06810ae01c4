"""`odradek consume`: prints records of a topic, up to its present end or for ever."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import typer
from confluent_kafka import Consumer, IsolationLevel, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from odradek.tools.standard_streams import check_reader

from .admin import partition_offsets
from .client_config import client_settings
from .connecting import TIMEOUT_S, connected, refusal_of_settings
from .failure import CommandError, kafka_failure
from .last_records import find_last
from .polling import polled
from .positions import Offsets, parse_offset, resolve_position

ByIndex = Mapping[int, int]
# Settings of members of a group, which `consume` is not. librdkafka refuses some values of them
# that Java's consumer accepts, or only together.
_OF_MEMBERS = {
    "group.instance.id",
    "group.protocol",
    "group.remote.assignor",
    "heartbeat.interval.ms",
    "max.poll.interval.ms",
    "session.timeout.ms",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumeOptions:
    """What to read, and how to print it.

    `start`: earliest, latest, an offset or a time. `until`: the records from this position on are
    not read. `last`: this many records of each partition. `limit`: stop after this many in all.
    `line`: a record as it is printed.
    """

    topic: str
    partitions: list[int]
    start: str
    until: str
    last: int | None
    limit: int | None
    follow: bool
    committed: bool
    line: Callable[[Message], bytes]


def consume(options: ConsumeOptions, bootstrap: str | None, file: Path | None) -> None:
    """Print the records. Raises CommandError."""
    settings = client_settings(bootstrap, file)
    admin = connected(settings)
    consumer = _consumer(settings, options)
    try:
        starts, ends = _ranges(admin, _indexes(consumer, options), options)
        if options.last is not None:
            starts = find_last(consumer, options.topic, starts, ends, options.last)
        _print(_messages(consumer, options, starts, ends), options)
    except KafkaException as error:
        raise kafka_failure(f"consume {options.topic}", error.args[0]) from None
    finally:
        consumer.close()


def _consumer(settings: Mapping[str, str], options: ConsumeOptions) -> Consumer:
    with refusal_of_settings():
        return Consumer(
            {
                "group.id": f"odradek-consume-{uuid.uuid4()}",
                # librdkafka finds the end of a partition by a Fetch that has waited in vain.
                "fetch.wait.max.ms": 500 if options.follow else 10,
                **{name: each for name, each in settings.items() if name not in _OF_MEMBERS},
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed" if options.committed else "read_uncommitted",
                "log_level": 0,
            }
        )


def _indexes(consumer: Consumer, options: ConsumeOptions) -> list[int]:
    """The partitions to read. Raises CommandError.

    The administrator's client is not asked for one topic: that would create it.
    """
    known = consumer.list_topics(options.topic, timeout=TIMEOUT_S).topics[options.topic]
    if known.error is not None:
        raise kafka_failure(f"consume {options.topic}", known.error)
    missing = set(options.partitions) - set(known.partitions)
    if missing:
        raise CommandError(f"topic {options.topic} has no partition {min(missing)}")
    return sorted({*options.partitions} or known.partitions)


def _ranges(
    admin: AdminClient, indexes: Sequence[int], options: ConsumeOptions
) -> tuple[ByIndex, ByIndex]:
    """Where to begin and to end in each partition. Raises CommandError."""
    keys = [(options.topic, index) for index in indexes]
    isolation = IsolationLevel.READ_UNCOMMITTED
    if options.committed:
        isolation = IsolationLevel.READ_COMMITTED

    def offsets_at(moment_ms: int) -> Offsets:
        return partition_offsets(admin, keys, OffsetSpec.for_timestamp(moment_ms), isolation)

    firsts = partition_offsets(admin, keys, OffsetSpec.earliest(), isolation)
    ends = partition_offsets(admin, keys, OffsetSpec.latest(), isolation)
    starts = resolve_position(options.start, firsts, ends, offsets_at)
    bounds = resolve_position(options.until, firsts, ends, offsets_at)
    _check(options, firsts, starts, bounds)
    return {index: start for (_, index), start in starts.items()}, {
        index: end for (_, index), end in bounds.items()
    }


def _check(options: ConsumeOptions, firsts: Offsets, starts: Offsets, bounds: Offsets) -> None:
    """Refuse a range that has no offsets, and say if its first records are deleted."""
    start, until = parse_offset(options.start), parse_offset(options.until)
    first = min(firsts.values())
    if until is not None and until <= first:
        raise CommandError(f"there is no record before offset {until}: the first one is {first}")
    is_reversed = start is not None and until is not None and start >= until
    if is_reversed or all(start > bounds[key] for key, start in starts.items()):
        raise CommandError(f"--until {options.until} is before --from {options.start}")
    deleted = [key for key in firsts if start is not None and start < firsts[key]]
    if deleted:
        topic, index = deleted[0]
        others = f", and those of {len(deleted) - 1} more partitions" if len(deleted) > 1 else ""
        typer.echo(
            f"odradek: {topic}-{index} begins at offset {firsts[deleted[0]]}: the records before it"
            f" are deleted{others}",
            err=True,
        )


def _print(messages: Iterator[Message], options: ConsumeOptions) -> None:
    out = sys.stdout.buffer
    for number, message in enumerate(messages, 1):
        out.write(options.line(message))
        if options.follow:
            out.flush()
        if number == options.limit:
            return


def _messages(
    consumer: Consumer, options: ConsumeOptions, starts: ByIndex, ends: ByIndex
) -> Iterator[Message]:
    """The records, for ever, or until all partitions are read to these ends."""
    unread = {index for index, end in ends.items() if options.follow or starts[index] < end}
    consumer.assign(
        [TopicPartition(options.topic, index, starts[index]) for index in sorted(unread)]
    )
    while unread:
        if options.follow:
            check_reader()
        for index, message in polled(consumer, options.topic):
            offset = None if message is None else message.offset()
            if options.follow:
                if message is not None:
                    yield message
                continue
            if message is not None and offset is not None and offset < ends[index]:
                yield message
            if offset is None or offset + 1 >= ends[index]:
                unread.discard(index)
