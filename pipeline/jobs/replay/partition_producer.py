"""Sends records to one partition with an idempotent producer, and counts acknowledgements.

Records of one partition are acknowledged in the order in which they are sent. A record must not be
abandoned while later ones are sent. So single records do not time out, the producer stops at the
first that fails, and the sender gives up if no record is acknowledged for long.
"""

import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NoReturn

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from odradek.pipeline.client_config import PRODUCER_SETTINGS
from odradek.pipeline.jobs import JobError

from .outgoing import OutgoingRecord

_STALLED_S = 120.0
_POLL_EVERY = 500
_REQUIRED: Mapping[str, Any] = {
    "enable.idempotence": True,
    "enable.gapless.guarantee": True,
    "message.timeout.ms": 0,
}


class PartitionProducer:
    """Methods raise JobError for the first record that fails, and if none is acknowledged for long.

    `records` is the number of acknowledged records; all of them are before `next_offset` (of the
    source). `target_first` and `target_last` are the target's offsets of the first and last of
    them.
    """

    def __init__(self, config: Mapping[str, Any], topic: str, partition: int) -> None:
        self._producer = Producer({**PRODUCER_SETTINGS, **config, **_REQUIRED})
        self._topic = topic
        self._partition = partition
        self._sent = 0
        self._waiting: deque[int] = deque()
        self._failure = ""
        self._answered_at = time.monotonic()
        self.records = 0
        self.next_offset = self.target_first = self.target_last = -1

    def send(self, record: OutgoingRecord) -> None:
        """Queue a record for sending."""
        while not self._queued(record):
            if not self._waiting:
                raise JobError(f"{self._name}: the record at offset {record.offset} is too large")
            self._poll(0.05)
        if not self._waiting:
            self._answered_at = time.monotonic()
        self._waiting.append(record.offset)
        self._sent += 1
        if self._sent % _POLL_EVERY == 0:
            self._poll(0)

    def flush(self) -> None:
        """Wait until all records are acknowledged."""
        while self._waiting:
            self._poll(0.1)

    def close(self) -> None:
        """Close the producer without waiting for acknowledgements."""
        with suppress(KafkaException):
            self._producer.purge()
            self._producer.poll(0)

    def _queued(self, record: OutgoingRecord) -> bool:
        _, key, value, timestamp_ms, headers = record
        try:
            self._producer.produce(
                self._topic,
                value,
                key,
                self._partition,
                self._acknowledged,
                timestamp=timestamp_ms,
                headers=headers or None,
            )
        except BufferError:
            return False
        except KafkaException as error:
            self._raise_reason(error)
        return True

    def _poll(self, wait_s: float) -> None:
        try:
            self._producer.poll(wait_s)
        except KafkaException as error:
            self._raise_reason(error)
        if self._failure:
            raise JobError(self._failure)
        if time.monotonic() - self._answered_at > _STALLED_S:
            raise JobError(f"{self._name}: no acknowledgement within {_STALLED_S:.0f} seconds")

    def _raise_reason(self, error: KafkaException) -> NoReturn:
        """Raise the reason why the producer stopped; its next delivery report contains it."""
        with suppress(KafkaException):
            self._producer.poll(1)
        raise JobError(self._failure or f"{self._name}: {error.args[0].str()}") from error

    def _acknowledged(self, error: KafkaError | None, message: Message) -> None:
        self._answered_at = time.monotonic()
        if self._failure:
            return
        offset = self._waiting.popleft()
        target_offset = message.offset()
        if error is not None or target_offset is None:
            reason = "no offset" if error is None else error.str()
            self._failure = f"{self._name} rejects the record at offset {offset}: {reason}"
            return
        self.records += 1
        self.next_offset = offset + 1
        self.target_last = target_offset
        if self.target_first < 0:
            self.target_first = target_offset

    @property
    def _name(self) -> str:
        return f"{self._topic}-{self._partition}"
