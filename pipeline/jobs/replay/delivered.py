"""Finds the records that a killed run delivered after it last stored its progress.

They are at the end of the target's partition. Records of other producers may be between them. A
record that equals the next one of the archive is assumed to be its copy.
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
from odradek.pipeline.jobs import JobError

from .outgoing import OutgoingRecord

_TIMEOUT_S = 60.0
_MAX_MESSAGES = 10_000


class TargetRecord(NamedTuple):
    """A record of the target, with the target's offset."""

    record: OutgoingRecord
    has_create_time: bool


class TargetReader:
    """Reads one partition of the target. Methods raise JobError if the broker does not answer."""

    def __init__(self, config: Mapping[str, Any], topic: str, partition: int) -> None:
        settings = {
            "group.id": "odradek-replay",  # the client requires one; it is not joined
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_uncommitted",
            "log_level": 3,
        }
        self._consumer = Consumer(settings | dict(config))
        self._topic = topic
        self._partition = partition

    def end(self) -> int:
        """Return the log end offset."""
        place = TopicPartition(self._topic, self._partition)
        try:
            bounds = self._consumer.get_watermark_offsets(place, _TIMEOUT_S)
        except KafkaException as error:
            raise self._error(error.args[0].str()) from error
        if bounds is None:
            raise self._error("the broker does not answer")
        return int(bounds[1])

    def records(self, start: int) -> Iterator[TargetRecord]:
        """Yield the records from `start` to the current end that were not deleted."""
        self._consumer.assign([TopicPartition(self._topic, self._partition, start)])
        deadline = time.monotonic() + _TIMEOUT_S
        while time.monotonic() < deadline:
            for message in self._consumer.consume(_MAX_MESSAGES, 1.0):
                error = message.error()
                if error is not None and error.code() == KafkaError._PARTITION_EOF:
                    return
                if error is not None and error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
                    continue  # the group is not used
                if error is not None:
                    raise self._error(error.str())
                deadline = time.monotonic() + _TIMEOUT_S
                yield _target_record(message)
        raise self._error(f"no answer within {_TIMEOUT_S:.0f} seconds")

    def close(self) -> None:
        """Close the client."""
        self._consumer.close()

    def _error(self, what: str) -> JobError:
        return JobError(f"cannot read {self._topic}-{self._partition}: {what}")


def _target_record(message: Message) -> TargetRecord:
    kind, timestamp_ms = message.timestamp()
    headers = cast("Headers", message.headers() or [])
    offset = message.offset() or 0
    record = OutgoingRecord(offset, message.key(), message.value(), timestamp_ms, headers)
    return TargetRecord(record, kind == TIMESTAMP_CREATE_TIME)


class Delivered(NamedTuple):
    """The number of delivered records, and the target's offsets of the first and the last."""

    records: int = 0
    next_offset: int = 0
    target_first: int = -1
    target_last: int = -1


def find_delivered(wanted: Iterable[OutgoingRecord], target: Iterable[TargetRecord]) -> Delivered:
    """Find how many of the wanted records, from the first on, are in the target in this order."""
    delivered = Delivered()
    remaining = iter(wanted)
    expected = next(remaining, None)
    for actual in target:
        if expected is None:
            break
        with_time = actual.has_create_time
        if expected.content(with_time=with_time) != actual.record.content(with_time=with_time):
            continue
        offset = actual.record.offset
        first = delivered.target_first if delivered.records else offset
        delivered = Delivered(delivered.records + 1, expected.offset + 1, first, offset)
        expected = next(remaining, None)
    return delivered
