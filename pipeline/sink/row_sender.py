"""A producer of rows that reports the first one that failed.

With `as_columns` rows are sent by thousands if they can be (column_sender.py). Then the first one
that failed is not reported: the transaction cannot be committed.

A row without a partition is sent to the one that Java's producers choose: by murmur2 of the key.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from odradek.pipeline.client_config import PRODUCER_SETTINGS

from .client_errors import FIRST_ANSWER_S, ConnectionErrors, failure_of, reason_of
from .column_sender import can_send_columns, send_columns
from .rows import OutgoingBatch, OutgoingRow, WriteError

_POLL_EVERY = 5000
_CONNECT_S = 5.0
_LOOK_AGAIN_S = 0.1
_FENCED = frozenset(
    {KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH}
)
# Errors that only follow from an earlier error, which stopped the producer.
_CONSEQUENCES = frozenset({KafkaError._FATAL, KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT})


class FencedError(WriteError):
    """Another producer has the same transactional id now."""


class RowSender:
    """Sends rows. Methods raise WriteError, and FencedError."""

    def __init__(self, config: Mapping[str, Any], *, as_columns: bool = False) -> None:
        self._refusals = _Refusals()
        self._errors = ConnectionErrors()
        self._config = config
        self._as_columns = as_columns and can_send_columns()
        self._connected_topics: set[str | None] = set()
        self.producer = Producer(
            {
                **PRODUCER_SETTINGS,
                "partitioner": "murmur2_random",
                **config,
                "enable.idempotence": True,
                "delivery.report.only.error": True,
                "on_delivery": self._refusals,
                "error_cb": self._errors,
            }
        )

    def connect(self, topic: str) -> None:
        """Return when the producer is connected and the topic is there, which it may be soon.

        What librdkafka cannot do yet, it tries again after 0.5 s. Its first answer tells it the
        broker's name, with which it connects again. So two answers are awaited for the first topic.
        If the client lacks a right, the next call says so.
        """
        deadline = time.monotonic() + FIRST_ANSWER_S
        answers, needed = 0, 1 if self._connected_topics else 2
        while True:
            try:
                found = self.producer.list_topics(topic, _CONNECT_S).topics[topic].error
                answers += 1
            except KafkaException as error:
                self._poll(0)
                no_answer = self._errors.no_answer(self._config, FIRST_ANSWER_S)
                if time.monotonic() >= deadline:
                    raise WriteError(no_answer or reason_of(error.args[0])) from error
                continue
            if found is None:
                self._connected_topics.add(topic)
            is_missing = found is not None and found.code() == KafkaError.UNKNOWN_TOPIC_OR_PART
            if answers >= needed and not is_missing:
                return
            if answers >= needed and time.monotonic() >= deadline:
                raise WriteError(_no_topic(topic))
            if is_missing:
                time.sleep(_LOOK_AGAIN_S)

    def send_batch(self, batch: OutgoingBatch) -> None:
        """Queue all rows of the batch for sending."""
        # Rows for a topic that is missing fail. Sent one by one, they fail with the reason.
        if not (
            self._as_columns and batch.has_only_columns and batch.topic in self._connected_topics
        ):
            self.send(batch.rows())
            return
        self._poll(0)
        refused = send_columns(self.producer, batch, lambda: self._poll(0.05))
        if refused is not None:
            self.raise_reason(KafkaException(refused))

    def send(self, rows: Iterable[OutgoingRow]) -> None:
        """Queue the rows for sending."""
        produce = self.producer.produce
        for number, (topic, value, key, partition, timestamp_ms, headers) in enumerate(rows):
            if number % _POLL_EVERY == 0:
                self._poll(0)
            while True:
                try:
                    produce(topic, value, key, partition, timestamp=timestamp_ms, headers=headers)
                except BufferError:
                    if not len(self.producer):
                        raise WriteError(f"a row for {topic} is too large to send") from None
                    self._poll(0.05)
                except KafkaException as error:
                    if error.args[0].code() == KafkaError._UNKNOWN_PARTITION:
                        raise WriteError(_no_partition(topic, partition)) from error
                    self.raise_reason(error)
                else:
                    break

    def flush(self) -> None:
        """Wait until all rows are acknowledged."""
        # While it flushes, librdkafka sends what it would otherwise hold back for linger.ms.
        while self._serve(self.producer.flush, 0.5):
            pass

    def raise_reason(self, error: Exception) -> NoReturn:
        """Raise the error of the first row that failed, or else the reason of `error`."""
        failure_of(lambda: self.producer.poll(0))
        cause = error if isinstance(error, KafkaException) else error.__cause__
        if self._refusals.text is not None:
            raise WriteError(self._refusals.text) from error
        reason = self._refusals.first or (cause.args[0] if cause is not None else None)
        if not isinstance(reason, KafkaError):
            raise error
        if reason.code() in _CONSEQUENCES:
            reason = self._reason_it_stopped() or reason
        kind = FencedError if reason.code() in _FENCED else WriteError
        raise kind(reason_of(reason)) from error

    def _reason_it_stopped(self) -> KafkaError | None:
        """Return the error that stopped the producer: it answers any call with that error."""
        error = failure_of(self.producer.begin_transaction)
        if not isinstance(error, KafkaException):
            return None
        reason: KafkaError = error.args[0]
        return reason if reason.fatal() or reason.txn_requires_abort() else None

    def close(self) -> None:
        """End the producer, without waiting for acknowledgements."""
        # Not purge(): an answer to AddPartitionsToTxn that comes after it fails an assertion of
        # librdkafka, which ends the process.
        del self.producer

    def _poll(self, wait_s: float) -> None:
        self._serve(self.producer.poll, wait_s)

    def _serve(self, wait: Callable[[float], int], wait_s: float) -> int:
        try:
            result = wait(wait_s)
        except KafkaException as error:
            self.raise_reason(error)
        except SystemError as error:
            # confluent-kafka raises it if a callback ran during a fatal error, and never frees it.
            # Its frames would keep the producer.
            self.raise_reason(error.with_traceback(None))
        if self._refusals.first is not None:
            self.raise_reason(KafkaException(self._refusals.first))
        return result


class _Refusals:
    """The error of the first row that failed; a text of its own if its topic is the reason.

    It has no reference to the sender: a producer in a reference cycle would not be freed at once.
    """

    def __init__(self) -> None:
        self.first: KafkaError | None = None
        self.text: str | None = None

    def __call__(self, error: KafkaError | None, message: Message) -> None:
        if self.first is not None or error is None:
            return
        self.first = error
        if error.code() == KafkaError._UNKNOWN_PARTITION:
            self.text = _no_partition(message.topic(), message.partition())
        elif error.code() in (KafkaError._UNKNOWN_TOPIC, KafkaError.UNKNOWN_TOPIC_OR_PART):
            self.text = _no_topic(message.topic())


def _no_topic(topic: str | None) -> str:
    return f"topic {topic} does not exist, and the broker does not create it"


def _no_partition(topic: str | None, partition: int | None) -> str:
    return f"topic {topic} has no partition {partition}: the column 'partition' is too large"
