"""Sends records to one partition through an idempotent producer, and counts what is acknowledged.

Records of one partition are acknowledged in the order in which they were sent. None may be given up
while later ones go on: so no record times out by itself, the producer stops at one that is refused,
and whoever waits gives up when nothing is acknowledged for long.
"""

import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NoReturn

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from odradek.pipeline.client_config import PRODUCER_SETTINGS
from odradek.pipeline.jobs.job_error import JobError

from .outgoing import OutgoingRecord

_STALLED_S = 120.0
_POLL_EVERY = 500
_REQUIRED: Mapping[str, Any] = {
    "enable.idempotence": True,
    "enable.gapless.guarantee": True,
    "message.timeout.ms": 0,
}


class Outbox:
    """Raises JobError for the first record that is refused, or when nothing is acknowledged.

    Of the records that were sent through it, `records` are acknowledged, all before `next_offset`
    (of the source); `target_first` and `target_last` are what the first and the last of them got.
    """

    def __init__(self, config: Mapping[str, Any], topic: str, partition: int) -> None:
        self._producer = Producer({**PRODUCER_SETTINGS, **config, **_REQUIRED})
        self._topic = topic
        self._partition = partition
        self._sent = 0
        self._waiting: deque[int] = deque()
        self._refused = ""
        self._heard_at = time.monotonic()
        self.records = 0
        self.next_offset = self.target_first = self.target_last = -1

    def send(self, record: OutgoingRecord) -> None:
        """Returns when it is queued."""
        while not self._queued(record):
            if not self._waiting:
                raise JobError(f"{self._name}: the record of offset {record.offset} is too large")
            self._poll(0.05)
        if not self._waiting:
            self._heard_at = time.monotonic()
        self._waiting.append(record.offset)
        self._sent += 1
        if self._sent % _POLL_EVERY == 0:
            self._poll(0)

    def flush(self) -> None:
        """Wait until all is acknowledged."""
        while self._waiting:
            self._poll(0.1)

    def close(self) -> None:
        """What is not acknowledged is not waited for."""
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
            self._stopped(error)
        return True

    def _poll(self, wait_s: float) -> None:
        try:
            self._producer.poll(wait_s)
        except KafkaException as error:
            self._stopped(error)
        if self._refused:
            raise JobError(self._refused)
        if time.monotonic() - self._heard_at > _STALLED_S:
            raise JobError(f"{self._name}: no acknowledgement in {_STALLED_S:.0f} seconds")

    def _stopped(self, error: KafkaException) -> NoReturn:
        """The producer has stopped for good; the next report tells for which record."""
        with suppress(KafkaException):
            self._producer.poll(1)
        raise JobError(self._refused or f"{self._name}: {error.args[0].str()}") from error

    def _acknowledged(self, error: KafkaError | None, message: Message) -> None:
        self._heard_at = time.monotonic()
        if self._refused:
            return
        offset = self._waiting.popleft()
        target_offset = message.offset()
        if error is not None or target_offset is None:
            reason = "no offset" if error is None else error.str()
            self._refused = f"{self._name} refuses the record of offset {offset}: {reason}"
            return
        self.records += 1
        self.next_offset = offset + 1
        self.target_last = target_offset
        if self.target_first < 0:
            self.target_first = target_offset

    @property
    def _name(self) -> str:
        return f"{self._topic}-{self._partition}"
