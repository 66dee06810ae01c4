"""What a killed run has delivered without noting it: it lies at the end of the target's partition.

Records of others may lie between, for a topic may have many producers; a record that equals the
next one of the archive is taken for it.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, cast

from confluent_kafka import (
    TIMESTAMP_CREATE_TIME,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from odradek.pipeline.client_values import Headers
from odradek.pipeline.jobs.job_error import JobError

from .outgoing import OutgoingRecord

_TIMEOUT_S = 60.0
_AT_ONCE = 10_000


class TargetRecord(NamedTuple):
    """A record of the target, with the target's offset."""

    record: OutgoingRecord
    has_own_time: bool


class TargetReader:
    """Looks into one partition of the target. Raises JobError where the broker does not answer."""

    def __init__(self, config: Mapping[str, Any], topic: str, partition: int) -> None:
        settings = {
            "group.id": "odradek-replay",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_uncommitted",
            "log_level": 3,
        }
        self._consumer = Consumer(settings | dict(config))
        self._topic = topic
        self._partition = partition

    def end(self) -> int:
        """The offset that the next record will get."""
        place = TopicPartition(self._topic, self._partition)
        try:
            bounds = self._consumer.get_watermark_offsets(place, _TIMEOUT_S)
        except KafkaException as error:
            raise self._error(error.args[0].str()) from error
        if bounds is None:
            raise self._error("the broker does not answer")
        return int(bounds[1])

    def records(self, start: int) -> Iterator[TargetRecord]:
        """What lies at `start` and behind it now, without what has been deleted."""
        self._consumer.assign([TopicPartition(self._topic, self._partition, start)])
        deadline = time.monotonic() + _TIMEOUT_S
        while time.monotonic() < deadline:
            for message in self._consumer.consume(_AT_ONCE, 1.0):
                error = message.error()
                if error is not None and error.code() == KafkaError._PARTITION_EOF:
                    return
                if error is not None:
                    raise self._error(error.str())
                deadline = time.monotonic() + _TIMEOUT_S
                yield _seen(message)
        raise self._error(f"nothing came in {_TIMEOUT_S:.0f} seconds")

    def close(self) -> None:
        """Leave the broker."""
        self._consumer.close()

    def _error(self, what: str) -> JobError:
        return JobError(f"{self._topic}-{self._partition} cannot be read: {what}")


def _seen(message: Message) -> TargetRecord:
    kind, timestamp_ms = message.timestamp()
    headers = cast("Headers", message.headers() or [])
    offset = message.offset() or 0
    record = OutgoingRecord(offset, message.key(), message.value(), timestamp_ms, headers)
    return TargetRecord(record, kind == TIMESTAMP_CREATE_TIME)


class Delivered(NamedTuple):
    """So many records are there already; the first and the last of them in the target."""

    records: int = 0
    next_offset: int = 0
    target_first: int = -1
    target_last: int = -1


def find_delivered(wanted: Iterable[OutgoingRecord], there: Iterable[TargetRecord]) -> Delivered:
    """How many of the wanted records, from the first on, are there in their order."""
    found = Delivered()
    coming = iter(wanted)
    awaited = next(coming, None)
    for seen in there:
        if awaited is None:
            break
        with_time = seen.has_own_time
        if awaited.content(with_time=with_time) != seen.record.content(with_time=with_time):
            continue
        first = found.target_first if found.records else seen.record.offset
        found = Delivered(found.records + 1, awaited.offset + 1, first, seen.record.offset)
        awaited = next(coming, None)
    return found
