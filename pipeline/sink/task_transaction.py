"""One transaction of a task: commits its rows and the id of their batch, or nothing."""

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from .committed_batches import CommittedBatch, TaskConsumerGroup
from .row_sender import RowSender
from .rows import OutgoingRow, WriteError

# How long a task may take: the broker's default of transaction.max.timeout.ms.
_TRANSACTION_TIMEOUT_MS = 900_000
_TIMEOUT_S = 120.0
# If init_transactions is called before librdkafka has a broker, it retries only after 0.5 s.
_CONNECTING_S = 0.05
_NO_TRANSACTIONS = frozenset({KafkaError._UNSUPPORTED_FEATURE, KafkaError.UNSUPPORTED_VERSION})


class TaskTransaction:
    """A transaction under a transactional id.

    Methods raise WriteError; FencedError if another producer has begun under the same id.
    """

    def __init__(self, client: Mapping[str, Any], name: str, group: TaskConsumerGroup) -> None:
        self._group = group
        settings = {"transaction.timeout.ms": _TRANSACTION_TIMEOUT_MS, **client}
        self.timeout_s = int(settings["transaction.timeout.ms"]) / 1000
        self._sender = RowSender({**settings, "transactional.id": name})
        self._began_at = time.monotonic()

    def begin(self) -> None:
        """Fence other producers of the id, end their transaction and begin a new one."""
        producer = self._sender.producer
        producer.poll(_CONNECTING_S)
        self._do(lambda: producer.init_transactions(_TIMEOUT_S))
        self._do(producer.begin_transaction)
        self._began_at = time.monotonic()

    def send(self, rows: Iterable[OutgoingRow]) -> None:
        """Queue the rows for sending."""
        self._sender.send(rows)

    def commit(self, batch: CommittedBatch) -> None:
        """Commit the rows that were sent, and the batch."""
        producer, group = self._sender.producer, self._group.metadata()
        self._sender.flush()
        offsets = [batch.as_offset()]
        self._do(lambda: producer.send_offsets_to_transaction(offsets, group, _TIMEOUT_S))
        self._do(lambda: producer.commit_transaction(_TIMEOUT_S))

    def check_timeout(self) -> None:
        """Raise WriteError if the broker has ended the transaction because it took too long.

        The broker's error is the same as if another producer had begun.
        """
        if time.monotonic() - self._began_at >= self.timeout_s:
            raise WriteError(
                f"the task took longer than kafka.transaction.timeout.ms ({self.timeout_s:g} s). "
                "Divide the rows into more tasks, or raise it and the broker's "
                "transaction.max.timeout.ms"
            )

    def abort(self) -> None:
        """Abort if possible; otherwise the next producer that begins under the id does it."""
        with suppress(KafkaException):
            self._sender.producer.abort_transaction(_TIMEOUT_S)

    def close(self) -> None:
        """Close the client."""
        self._sender.close()

    def _do(self, step: Callable[[], None]) -> None:
        deadline = time.monotonic() + _TIMEOUT_S
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
                if not reason.retriable() or time.monotonic() > deadline:
                    self._sender.raise_reason(error)
