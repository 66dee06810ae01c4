"""A producer of transactions: each commits rows and marks, or nothing."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from .client_errors import failure_of
from .marks import Mark, MarkGroup
from .row_sender import RowSender
from .rows import OutgoingBatch, OutgoingRow, WriteError
from .turns import Clock

# How long a transaction may take: the broker's default of transaction.max.timeout.ms.
_TRANSACTION_TIMEOUT_MS = 900_000
_TIMEOUT_S = 120.0
_NO_TRANSACTIONS = frozenset({KafkaError._UNSUPPORTED_FEATURE, KafkaError.UNSUPPORTED_VERSION})


class TaskTransaction:
    """The transactions of one attempt of a task, under the transactional id `name`.

    `topic` is one that rows are written to.

    Methods raise WriteError; FencedError if another attempt has taken over the id.
    """

    def __init__(
        self,
        client: Mapping[str, Any],
        name: str,
        topic: str,
        clock: Clock,
        *,
        as_columns: bool = False,
    ) -> None:
        self._topic = topic
        self._clock = clock
        settings = {"transaction.timeout.ms": _TRANSACTION_TIMEOUT_MS, **client}
        self.timeout_s = int(settings["transaction.timeout.ms"]) / 1000
        self._sender = RowSender({**settings, "transactional.id": name}, as_columns=as_columns)
        self._began_at = clock.now()

    def take_over(self) -> None:
        """Fence other attempts, and end their transaction."""
        self._sender.connect(self._topic)
        producer = self._sender.producer
        self._do(lambda: producer.init_transactions(_TIMEOUT_S))

    def begin(self) -> None:
        """Begin a transaction."""
        self._do(self._sender.producer.begin_transaction)
        self._began_at = self._clock.now()

    def send(self, rows: Iterable[OutgoingRow]) -> None:
        """Queue the rows for sending."""
        self._sender.send(rows)

    def send_batch(self, batch: OutgoingBatch) -> None:
        """Queue all rows of the batch for sending."""
        self._sender.send_batch(batch)

    def commit(self, group: MarkGroup, marks: Iterable[Mark]) -> None:
        """Commit the rows that were sent, and the marks."""
        producer, metadata = self._sender.producer, group.for_producer()
        self._sender.flush()
        offsets = [mark.as_offset() for mark in marks]
        self._do(lambda: producer.send_offsets_to_transaction(offsets, metadata, _TIMEOUT_S))
        self._do(lambda: producer.commit_transaction(_TIMEOUT_S))

    @property
    def open_for_s(self) -> float:
        """How long ago the transaction began."""
        return self._clock.now() - self._began_at

    def check_timeout(self) -> None:
        """Raise WriteError if the broker has ended the transaction because it took too long.

        The broker's error is the same as if another attempt had taken over.
        """
        if self.open_for_s >= self.timeout_s:
            raise WriteError(
                f"the task took longer than kafka.transaction.timeout.ms ({self.timeout_s:g} s). "
                "Divide the rows into more tasks, or raise it and the broker's "
                "transaction.max.timeout.ms"
            )

    def abort(self) -> None:
        """Abort if possible; otherwise the next attempt that takes over does it."""
        failure_of(lambda: self._sender.producer.abort_transaction(_TIMEOUT_S))

    def close(self) -> None:
        """Close the client."""
        self._sender.close()

    def _do(self, step: Callable[[], None]) -> None:
        deadline = self._clock.now() + _TIMEOUT_S
        while True:
            try:
                return step()
            except KafkaException as error:
                reason = error.args[0]
                if reason.code() in _NO_TRANSACTIONS:
                    raise WriteError(
                        f"the broker has no transactions ({reason.str()}); "
                        "delivery=at-least-once does not need them"
                    ) from error
                if not reason.retriable() or self._clock.now() > deadline:
                    self._sender.raise_reason(error)
