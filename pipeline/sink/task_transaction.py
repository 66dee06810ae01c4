"""The transaction of a task: its rows and the mark of their batch, or nothing."""

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from .batch_marks import BatchMark, MarkedGroup
from .row_sender import RowSender
from .rows import OutgoingRow, WriteError

# The longest that a broker allows by default: a task may take so long.
_TRANSACTION_TIMEOUT_MS = 900_000
_TIMEOUT_S = 120.0
# librdkafka that is asked to begin before it has found a broker looks again half a second later.
_CONNECTING_S = 0.05
# The last is what odradek says; Kafka says it to those who may not use transactions.
_NO_TRANSACTIONS = frozenset(
    {
        KafkaError._UNSUPPORTED_FEATURE,
        KafkaError.UNSUPPORTED_VERSION,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)


class NoTransactionsError(WriteError):
    """The broker has none, or none for us."""


class TaskTransaction:
    """Under a name that no other transaction has at the same time.

    Raises WriteError; FencedError when another has begun under the name.
    """

    def __init__(self, client: Mapping[str, Any], name: str, group: MarkedGroup) -> None:
        self._group = group
        settings = {"transaction.timeout.ms": _TRANSACTION_TIMEOUT_MS, **client}
        self.timeout_s = int(settings["transaction.timeout.ms"]) / 1000
        self._sender = RowSender({**settings, "transactional.id": name})
        self._began_at = time.monotonic()

    def begin(self) -> None:
        """What was begun under the name is ended. Raises NoTransactionsError."""
        producer = self._sender.producer
        producer.poll(_CONNECTING_S)
        self._do(lambda: producer.init_transactions(_TIMEOUT_S))
        self._do(producer.begin_transaction)
        self._began_at = time.monotonic()

    def send(self, rows: Iterable[OutgoingRow]) -> None:
        """Returns when they are queued."""
        self._sender.send(rows)

    def commit(self, mark: BatchMark) -> None:
        """The rows that were sent, and the mark."""
        producer, group = self._sender.producer, self._group.metadata()
        self._sender.flush()
        offsets = [mark.as_offset()]
        self._do(lambda: producer.send_offsets_to_transaction(offsets, group, _TIMEOUT_S))
        self._do(lambda: producer.commit_transaction(_TIMEOUT_S))

    def check_in_time(self) -> None:
        """A broker ends a transaction that takes too long as if another had begun."""
        if time.monotonic() - self._began_at >= self.timeout_s:
            raise WriteError(
                f"the task has not ended within kafka.transaction.timeout.ms ({self.timeout_s:g} "
                "s): cut the rows into more tasks, or raise it, and the broker's "
                "transaction.max.timeout.ms"
            )

    def abort(self) -> None:
        """As far as that is possible: who begins under the name again will do it."""
        with suppress(KafkaException):
            self._sender.producer.abort_transaction(_TIMEOUT_S)

    def close(self) -> None:
        """Leave the broker."""
        self._sender.close()

    def _do(self, step: Callable[[], None]) -> None:
        deadline = time.monotonic() + _TIMEOUT_S
        while True:
            try:
                return step()
            except KafkaException as error:
                reason = error.args[0]
                if reason.code() in _NO_TRANSACTIONS:
                    raise NoTransactionsError(reason.str()) from error
                if not reason.retriable() or time.monotonic() > deadline:
                    self._sender.give_up(error)
