"""A producer of transactions: each commits rows and marks, or nothing."""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from .client_errors import failure_of
from .marks import Mark, MarkGroup
from .row_sender import RowSender
from .rows import OutgoingBatch, OutgoingRow, WriteError
from .turns import Clock

_TIMEOUT_SETTING = "transaction.timeout.ms"
_DEFAULT_TIMEOUT_MS = 900_000  # the broker's default of transaction.max.timeout.ms
# To librdkafka, a transaction with a shorter timeout than one of these is an error.
_SHORTER_TIMEOUTS = ("delivery.timeout.ms", "message.timeout.ms", "socket.timeout.ms")
_TIMEOUT_S = 120.0
_NO_TRANSACTIONS = frozenset({KafkaError._UNSUPPORTED_FEATURE, KafkaError.UNSUPPORTED_VERSION})


def timeout_s_of(client: Mapping[str, Any], wanted_s: float = math.inf) -> float:
    """Return how long a transaction of this client may take, `wanted_s` at most if possible."""
    longest_ms = int(client.get(_TIMEOUT_SETTING, _DEFAULT_TIMEOUT_MS))
    least_ms = max(int(client.get(name, 0)) + 100 for name in _SHORTER_TIMEOUTS)
    return min(longest_ms, max(wanted_s * 1000, least_ms)) / 1000


class TaskTransaction:
    """The transactions of one attempt of a task, under the transactional id `name`.

    Rows are written to `topics`. The broker ends a transaction after `timeout_s`.

    Methods raise WriteError; FencedError if another attempt has taken over the id.
    """

    def __init__(
        self,
        client: Mapping[str, Any],
        name: str,
        topics: Iterable[str],
        clock: Clock,
        *,
        as_columns: bool = False,
        timeout_s: float = math.inf,
    ) -> None:
        self._topics = topics
        self._clock = clock
        self.timeout_s = timeout_s_of(client, timeout_s)
        settings = {_TIMEOUT_SETTING: round(self.timeout_s * 1000), "transactional.id": name}
        self._sender = RowSender({**client, **settings}, as_columns=as_columns)
        self._began_at = clock.now()

    def take_over(self) -> None:
        """Fence other attempts, and end their transaction."""
        for topic in self._topics:  # offsets cannot be committed for one that is yet to be created
            self._sender.connect(topic)
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

    def commit(
        self, group: MarkGroup, marks: Iterable[Mark], check: Callable[[], None] = lambda: None
    ) -> None:
        """Commit the rows that were sent, and the marks, unless `check` raises at the end."""
        producer, metadata = self._sender.producer, group.for_producer()
        self._sender.flush()
        offsets = [mark.as_offset() for mark in marks]
        self._do(lambda: producer.send_offsets_to_transaction(offsets, metadata, _TIMEOUT_S))
        check()
        self._do(lambda: producer.commit_transaction(_TIMEOUT_S))

    @property
    def open_for_s(self) -> float:
        """How long ago the transaction began."""
        return self._clock.now() - self._began_at

    @property
    def has_timed_out(self) -> bool:
        """Whether the broker has ended the transaction because it took too long."""
        return self.open_for_s >= self.timeout_s

    def check_timeout(self) -> None:
        """Raise WriteError if it has timed out.

        The broker's error is the same as if another attempt had taken over.
        """
        if self.has_timed_out:
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
