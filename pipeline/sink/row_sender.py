"""A producer that takes rows, and tells the first one that was refused.

Rows without a partition go where Java's producers would send them: by the murmur2 of the key.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, NoReturn

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from odradek.pipeline.client_config import PRODUCER_SETTINGS

from .rows import OutgoingRow, WriteError

_POLL_EVERY = 5000
_FENCED = frozenset(
    {
        KafkaError._FENCED,
        KafkaError.PRODUCER_FENCED,
        KafkaError.INVALID_PRODUCER_EPOCH,
    }
)
# Said of what was in the way of another error, which made the producer stop.
_CONSEQUENCES = frozenset({KafkaError._FATAL, KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT})


class FencedError(WriteError):
    """Another producer writes under the same transactional id now."""


class RowSender:
    """Raises WriteError, and FencedError."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._refusals = _Refusals()
        self.producer = Producer(
            {
                **PRODUCER_SETTINGS,
                "partitioner": "murmur2_random",
                **config,
                "enable.idempotence": True,
                "delivery.report.only.error": True,
                "on_delivery": self._refusals,
            }
        )

    def send(self, rows: Iterable[OutgoingRow]) -> None:
        """Returns when all are queued."""
        produce = self.producer.produce
        for number, (topic, value, key, partition, timestamp_ms, headers) in enumerate(rows):
            if number % _POLL_EVERY == 0:
                self._poll(0)
            while True:
                try:
                    produce(
                        topic,
                        value,
                        key,
                        partition,
                        timestamp=timestamp_ms,
                        headers=headers,
                    )
                except BufferError:
                    if not len(self.producer):
                        raise WriteError(f"a row for {topic} is too large to be sent") from None
                    self._poll(0.05)
                except KafkaException as error:
                    self.give_up(error)
                else:
                    break

    def flush(self) -> None:
        """Returns when all are acknowledged."""
        while len(self.producer):
            self._poll(0.5)
        self._poll(0)

    def give_up(self, error: Exception) -> NoReturn:
        """Says why: the reason of the first row that was refused, if there is one."""
        with suppress(KafkaException, SystemError):
            self.producer.poll(0)
        found = error if isinstance(error, KafkaException) else error.__cause__
        reason = self._refusals.first or (found.args[0] if found is not None else None)
        if not isinstance(reason, KafkaError):
            raise error
        if reason.code() in _CONSEQUENCES:
            reason = self._fatal_reason() or reason
        kind = FencedError if reason.code() in _FENCED else WriteError
        raise kind(f"{reason.name()}: {reason.str()}") from error

    def _fatal_reason(self) -> KafkaError | None:
        """Whatever is asked of a producer that has failed for good is answered by the reason."""
        try:
            self.producer.begin_transaction()
        except KafkaException as error:
            reason: KafkaError = error.args[0]
            return reason if reason.fatal() else None
        return None

    def close(self) -> None:
        """What is not acknowledged is not waited for."""
        with suppress(KafkaException, SystemError):
            self.producer.purge()
            self.producer.poll(0)

    def _poll(self, wait_s: float) -> None:
        try:
            self.producer.poll(wait_s)
        except (KafkaException, SystemError) as error:
            # A SystemError: the client raised a fatal error, and called back nevertheless.
            self.give_up(error)
        if self._refusals.first is not None:
            self.give_up(KafkaException(self._refusals.first))


class _Refusals:
    """The reason of the first row that was refused.

    It does not know the sender: a producer that is part of a cycle would live until it is found.
    """

    def __init__(self) -> None:
        self.first: KafkaError | None = None

    def __call__(self, error: KafkaError | None, _message: Message) -> None:
        if self.first is None:
            self.first = error
