"""`odradek produce`: sends the lines of standard input to a topic."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import msgspec
import typer
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from .client_config import client_settings
from .connecting import connected
from .failure import CommandError, refused
from .record_format import JsonRecord, bytes_of

Headers = list[tuple[str, str | bytes | None]]

ANY_PARTITION = -1
NOW_MS = 0
REPORT_EVERY = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceOptions:
    """How lines become records.

    `separator`: between the key and the value in a line; without one the key is `key`, or null.
    `null_if_empty`: an empty value is null, which deletes the key from a compacted topic.
    """

    topic: str
    partition: int | None
    separator: str | None
    key: str | None
    headers: Headers
    null_if_empty: bool
    from_json: bool
    keep_partitions: bool


class NewRecord(NamedTuple):
    """A record to send."""

    key: bytes | None
    value: bytes | None
    headers: Headers
    partition: int
    timestamp_ms: int


def produce(options: ProduceOptions, bootstrap: str | None, file: Path | None) -> int:
    """Send standard input, and return the number of records.

    Raises CommandError. What was read before a line that is no record is sent.
    """
    settings = client_settings(bootstrap, file)
    connected(settings)
    sender = _Sender(options.topic, settings)
    try:
        for record in records(options, sys.stdin.buffer):
            sender.send(record)
    finally:
        sender.wait()
    sender.check()
    return sender.sent


def records(options: ProduceOptions, lines: Iterable[bytes]) -> Iterator[NewRecord]:
    """The records of the lines. Raises CommandError with the number of a bad line."""
    read = _from_json if options.from_json else _from_text
    for number, line in enumerate(lines, 1):
        stripped = line.rstrip(b"\r\n") if line.endswith(b"\n") else line
        if options.from_json and not stripped:
            continue
        try:
            yield read(options, stripped)
        except (ValueError, msgspec.DecodeError) as error:
            raise CommandError(f"line {number} of standard input: {error}") from None


def _from_text(options: ProduceOptions, line: bytes) -> NewRecord:
    key, value = options.key.encode() if options.key is not None else None, line
    if options.separator is not None:
        before, found, after = line.partition(options.separator.encode())
        if not found:
            raise ValueError(f"there is no {options.separator!r} between a key and a value")
        key, value = before, after
    partition = ANY_PARTITION if options.partition is None else options.partition
    is_null = options.null_if_empty and not value
    return NewRecord(key, None if is_null else value, options.headers, partition, NOW_MS)


def _from_json(options: ProduceOptions, line: bytes) -> NewRecord:
    record = msgspec.json.decode(line, type=JsonRecord)
    partition = options.partition
    if partition is None and options.keep_partitions:
        partition = record.partition
    return NewRecord(
        bytes_of(record.key, record.key_base64),
        bytes_of(record.value, record.value_base64),
        [(each.name, bytes_of(each.value, each.value_base64)) for each in record.headers]
        + options.headers,
        ANY_PARTITION if partition is None else partition,
        NOW_MS if record.timestamp_ms is None else record.timestamp_ms,
    )


class _Sender:
    """Sends records, and counts those that are acknowledged: `sent`."""

    def __init__(self, topic: str, settings: dict[str, str]) -> None:
        self.sent = 0
        self._topic = topic
        self._failed: KafkaError | None = None
        self._producer = Producer(
            {"enable.idempotence": True, "linger.ms": 5, **settings, "log_level": 0}
        )

    def send(self, record: NewRecord) -> None:
        """Queue a record; waits while the queue is full. Raises CommandError if one has failed."""
        while True:
            try:
                self._producer.produce(
                    self._topic,
                    record.value,
                    record.key,
                    record.partition,
                    on_delivery=self._delivered,
                    timestamp=record.timestamp_ms,
                    headers=record.headers,
                )
                break
            except BufferError:
                self._producer.poll(0.1)
            except KafkaException as error:
                raise refused(f"produce to {self._topic}", error.args[0]) from None
            self.check()
        self._producer.poll(0)
        self.check()

    def wait(self) -> None:
        """Wait until the queued records are acknowledged; drop them if one has failed."""
        while self._producer.flush(1.0):
            if self._failed is not None:
                self._producer.purge()

    def check(self) -> None:
        """Raise CommandError if a record has failed."""
        if self._failed is not None:
            raise refused(f"produce to {self._topic}, after {self.sent} records", self._failed)

    def _delivered(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self._failed = self._failed or error
            return
        self.sent += 1
        if self.sent % REPORT_EVERY == 0 and sys.stderr.isatty():
            typer.echo(f"\r{self.sent} records", nl=False, err=True)
