"""`odradek produce`: sends the lines of standard input to a topic."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec
import typer
from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient, ConfigResource

from odradek.tools.tables import counted

from .admin import result
from .client_config import client_settings
from .connecting import connected, refusal_of_settings
from .failure import CommandError, kafka_failure
from .options import LARGEST_INT32
from .record_json import ParsedRecord

Headers = list[tuple[str, str | bytes | None]]

ANY_PARTITION = -1
LAST_TIMESTAMP_MS = (1 << 63) - 1
SET_BY_LIBRDKAFKA = 0  # it stamps the time
REPORT_EVERY = 10_000
WAIT_S = 0.1  # how often control-C is checked while waiting
MAX_BATCH_BYTES = 1_000_000  # librdkafka's default


# Each setting and its alias in librdkafka, with the values beside which a producer is idempotent.
_NEEDED_FOR_IDEMPOTENCE = {
    **dict.fromkeys(("acks", "request.required.acks"), ("all", "-1")),
    **dict.fromkeys(
        ("max.in.flight.requests.per.connection", "max.in.flight"), ("5", "4", "3", "2", "1")
    ),
    "queuing.strategy": ("fifo",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceOptions:
    """How lines become records.

    `separator`: between the key and the value in a line; without one the key is `key`, or null.
    `null_if_empty`: an empty value is null, which deletes the key from a compacted topic. `parse`:
    lines are JSON, and this reads one.
    """

    topic: str
    partition: int | None
    separator: str | None
    key: str | None
    headers: Headers
    null_if_empty: bool
    parse: Callable[[bytes], ParsedRecord] | None
    keep_partitions: bool


class NewRecord(NamedTuple):
    """A record to send. `line`: its line number in standard input."""

    line: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    partition: int
    timestamp_ms: int


def produce(options: ProduceOptions, bootstrap: str | None, file: Path | None) -> None:
    """Send standard input, and print how many records were sent.

    If a line is not a record, the records before it are still sent, and CommandError is raised.
    After control-C, records that are not acknowledged are dropped.
    """
    settings = client_settings(bootstrap, file)
    sender = _Sender(options.topic, connected(settings), settings)
    try:
        try:
            for record in records(options, sys.stdin.buffer):
                sender.send(record)
            failure = sender.wait()
        except CommandError as error:
            failure = sender.wait() or error
    except KeyboardInterrupt:
        waiting = sender.drop()
        sender.end_progress()
        more = f"; {waiting} more were not acknowledged" if waiting else ""
        typer.echo(f"odradek: interrupted: sent {counted(sender.sent, 'record')}{more}", err=True)
        raise
    sender.end_progress()
    if failure is not None:
        raise CommandError(f"{failure}; records sent: {sender.sent}")
    typer.echo(f"sent {counted(sender.sent, 'record')} to {options.topic}", err=True)


def records(options: ProduceOptions, lines: Iterable[bytes]) -> Iterator[NewRecord]:
    """The records of the lines. Raises CommandError with the number of a bad line."""
    number = 0
    try:
        for number, line in enumerate(lines, 1):
            text = line[:-1].removesuffix(b"\r") if line.endswith(b"\n") else line
            if options.parse is None:
                yield _from_text(options, number, text)
            elif text:
                yield _from_json(options, number, options.parse(text))
    except (ValueError, msgspec.DecodeError) as error:
        raise CommandError(f"line {number} of standard input: {error}") from None
    except OSError as error:
        raise CommandError(f"standard input cannot be read: {error.strerror}") from None


def _from_text(options: ProduceOptions, number: int, line: bytes) -> NewRecord:
    key, value = options.key.encode() if options.key is not None else None, line
    if options.separator is not None:
        before, found, after = line.partition(options.separator.encode())
        if not found:
            raise ValueError(f"there is no {options.separator!r} between a key and a value")
        key, value = before, after
    partition = ANY_PARTITION if options.partition is None else options.partition
    is_null = options.null_if_empty and not value
    return NewRecord(
        number, key, None if is_null else value, options.headers, partition, SET_BY_LIBRDKAFKA
    )


def _from_json(options: ProduceOptions, number: int, record: ParsedRecord) -> NewRecord:
    partition = options.partition
    if partition is None and options.keep_partitions:
        partition = record.partition
    if partition is not None and not 0 <= partition <= LARGEST_INT32:
        raise ValueError(f"there is no partition {partition}")
    if record.timestamp_ms is not None and not 0 < record.timestamp_ms <= LAST_TIMESTAMP_MS:
        raise ValueError(f"the timestamp {record.timestamp_ms} cannot be sent by librdkafka")
    return NewRecord(
        number,
        record.key,
        record.value,
        record.headers + options.headers,
        ANY_PARTITION if partition is None else partition,
        SET_BY_LIBRDKAFKA if record.timestamp_ms is None else record.timestamp_ms,
    )


class _Sender:
    """Sends records, and counts those that are acknowledged: `sent`.

    Control-C may come between any two steps. So a record is counted before it is queued, and no
    count of the waiting records can disagree with the others.
    """

    def __init__(self, topic: str, admin: AdminClient, settings: dict[str, str]) -> None:
        self.sent = 0
        self._given = 0
        self._failed = 0
        self._topic = topic
        self._failure: CommandError | None = None
        self._is_line_open = False
        # If the topic's max.message.bytes is below librdkafka's batch size, it is the batch size. A
        # larger batch would be refused with all its records.
        batch_bytes = min(_max_batch_bytes(admin, topic), MAX_BATCH_BYTES)
        defaults = {
            "enable.idempotence": _may_be_idempotent(settings),
            "linger.ms": 5,
            "batch.size": batch_bytes,
            "partitioner": "murmur2_random",  # the partitions that Java's producers choose
        }
        with refusal_of_settings():
            self._producer = Producer({**defaults, **settings, "log_level": 0})

    def send(self, record: NewRecord) -> None:
        """Queue a record; waits while the queue is full. Raises CommandError if one has failed."""
        self._given += 1
        while True:
            try:
                self._producer.produce(
                    self._topic,
                    record.value,
                    record.key,
                    record.partition,
                    on_delivery=partial(self._delivered, record.line),
                    timestamp=record.timestamp_ms,
                    headers=record.headers,
                )
                break
            except BufferError:
                self._producer.poll(WAIT_S)
            except KafkaException as error:
                self._failed += 1
                raise self._delivery_failure(record.line, error.args[0], is_sent=False) from None
            self._check()
        self._producer.poll(0)
        self._check()

    def wait(self) -> CommandError | None:
        """Wait until the queued records are acknowledged. If one has failed, drop the others.

        Returns the first failure.
        """
        while self._producer.flush(WAIT_S):
            if self._failure is not None:
                self._producer.purge()
        return self._failure

    def drop(self) -> int:
        """Drop the records that are not acknowledged, and return their number."""
        self._producer.poll(0)  # the reports that have arrived
        self._producer.purge()
        # librdkafka's own count has also the reports that nobody has read.
        return self._given - self.sent - self._failed

    def end_progress(self) -> None:
        """End the line that shows how many records were sent."""
        if self._is_line_open:
            typer.echo(err=True)
            self._is_line_open = False

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _delivered(self, line: int, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self._failed += 1
            self._failure = self._failure or self._delivery_failure(line, error, is_sent=True)
            return
        self.sent += 1
        if self.sent % REPORT_EVERY == 0 and sys.stderr.isatty():
            typer.echo(f"\r{self.sent} records", nl=False, err=True)
            self._is_line_open = True

    def _delivery_failure(self, line: int, error: KafkaError, *, is_sent: bool) -> CommandError:
        what = f"produce line {line} of standard input to {self._topic}"
        if error.code() != KafkaError.MSG_SIZE_TOO_LARGE:
            return kafka_failure(what, error)
        setting = "set max.request.size (message.max.bytes) in the file of --config"
        if is_sent:
            setting = f"`odradek configs alter topic {self._topic} --set max.message.bytes=BYTES`"
        return CommandError(f"{what}: the record is too large; {setting}")


def _max_batch_bytes(admin: AdminClient, topic: str) -> int:
    """The topic's max.message.bytes, if it is known and this user may see it."""
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    with suppress(CommandError):
        settings = result(f"settings of {topic}", admin.describe_configs([resource])[resource])
        return int(settings["max.message.bytes"].value)
    return MAX_BATCH_BYTES


def _may_be_idempotent(settings: Mapping[str, str]) -> bool:
    """Whether no setting rules idempotence out. As in Java: ProducerConfig."""
    return all(
        settings.get(name, good[0]) in good for name, good in _NEEDED_FOR_IDEMPOTENCE.items()
    ) and not any(settings.get(name) == "0" for name in ("retries", "message.send.max.retries"))
