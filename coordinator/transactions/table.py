"""The transactional ids of one partition of `__transaction_state`, built by replaying its records.

A transactional id is stored in the partition that it hashes to. Each record has the whole state of
one id, so the newest record counts.

Two things are not in the records. One is the epoch that a producer had before its current one. A
producer that repeats InitProducerId after a restart of the broker is fenced therefore, as in Kafka.
The other is which transactions are completed but for their record (`completed`). That record is
written together with the next record of the partition. After a crash before that, the markers are
written again.

Kafka: TransactionStateManager.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TypeVar

from odradek.coordinator.runtime.outcome import JournalRecord, Outcome, ReplayContext
from odradek.coordinator.runtime.steps import Step, no_step, stepping
from odradek.coordinator.runtime.timers import Now, TimerMoment
from odradek.protocol.batch_header import NO_PRODUCER_EPOCH
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.records.transaction_state import TransactionLogKey

from .states import IDLE, TransactionState
from .transaction import Transaction, record_of, tombstone_of

R = TypeVar("R")

# A timeout of this many milliseconds means that the transaction has none (two-phase commit).
NO_TIMEOUT_MS = (1 << 31) - 1


class TransactionTable:
    """Transactions by transactional id. Only `replay` changes them."""

    def __init__(self) -> None:
        self.by_id: dict[str, Transaction] = {}
        # By transactional id: transactions whose markers are all written, and whose Complete record
        # is not. In `by_id` they are still prepared.
        self.completed: dict[str, Transaction] = {}
        # By transactional id: the offset of its newest record.
        self.record_offsets: dict[str, int] = {}
        self._open_since: dict[str, TimerMoment] = {}
        self._last_epochs: dict[str, int] = {}

    # -- replay ------------------------------------------------------------------------------------

    def replay(self, record: JournalRecord, context: ReplayContext) -> None:
        """Apply one record of the log; its value is a Transaction (codec.py)."""
        key, value = record.key, record.value
        assert isinstance(key, TransactionLogKey)
        transactional_id = key.transactional_id
        self.completed.pop(transactional_id, None)
        if value is None:
            self.by_id.pop(transactional_id, None)
            self.record_offsets.pop(transactional_id, None)
            self._open_since.pop(transactional_id, None)
            self._last_epochs.pop(transactional_id, None)
            return
        assert isinstance(value, Transaction)
        self.by_id[transactional_id] = value
        self.record_offsets[transactional_id] = context.offset
        if value.state is TransactionState.ONGOING:
            self._open_since.setdefault(transactional_id, TimerMoment())
        else:
            self._open_since.pop(transactional_id, None)

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """Ignore a marker: `__transaction_state` has no transactional records."""

    # -- lookups -----------------------------------------------------------------------------------

    def find(self, transactional_id: str) -> Transaction | None:
        """Return the transaction of an id; None if the id is not known."""
        return self.completed.get(transactional_id) or self.by_id.get(transactional_id)

    def all(self, step: Step = no_step) -> Iterator[Transaction]:
        """Iterate over the transactions of all ids. In a step some may be added and removed."""
        for transactional_id in stepping(list(self.by_id), step):
            transaction = self.find(transactional_id)
            if transaction is not None:
                yield transaction

    def get(self, transactional_id: str) -> Transaction:
        """Return the transaction of an id. Raises ApiError: INVALID_PRODUCER_ID_MAPPING."""
        transaction = self.find(transactional_id)
        if transaction is None:
            raise ApiError(
                ErrorCode.INVALID_PRODUCER_ID_MAPPING,
                f"transactional id {transactional_id} is not known",
            )
        return transaction

    def last_epoch(self, transactional_id: str) -> int:
        """Return the epoch before the current one; -1 if it is not known."""
        return self._last_epochs.get(transactional_id, NO_PRODUCER_EPOCH)

    def note_age(self, transactional_id: str, now: Now) -> None:
        """Note how old an open transaction is: when it has begun, and after a restart.

        From then on its age is measured by the timer clock. So a change of the wall clock aborts no
        transaction.
        """
        self._open_since[transactional_id].note(self.by_id[transactional_id].start_ms, now)

    def open_ids(self) -> list[str]:
        """Return the ids of the open transactions."""
        return list(self._open_since)

    def timed_out(self, transactional_id: str, now: Now) -> Transaction | None:
        """Return the transaction of an id if it is open and older than its timeout."""
        since = self._open_since.get(transactional_id)
        if since is None:
            return None
        self.note_age(transactional_id, now)  # it may be loaded and not noted yet
        transaction = self.by_id[transactional_id]
        age_ms = now.timer_ms - since.timer_ms
        has_timeout = transaction.timeout_ms != NO_TIMEOUT_MS
        return transaction if has_timeout and age_ms > transaction.timeout_ms else None

    # -- decisions ---------------------------------------------------------------------------------

    def write(
        self,
        transaction: Transaction,
        transaction_version: int,
        reply: R,
        *,
        last_epoch: int | None = None,
    ) -> Outcome[R]:
        """Write the next transaction of an id; `last_epoch`: the epoch before it, if it changes.

        The records of completed transactions are written before it.
        """
        completed = self._completed_records(transaction_version)
        records = (*completed, record_of(transaction, transaction_version))
        then: tuple[Callable[[], None], ...] = ()
        if last_epoch is not None:
            note = self._last_epochs.__setitem__
            then = (partial(note, transaction.transactional_id, last_epoch),)
        return Outcome(reply=reply, records=records, then=then, atomic=not completed)

    def write_completed(self, transaction_version: int) -> Outcome[None]:
        """Write the records of the completed transactions."""
        records = self._completed_records(transaction_version)
        return Outcome(reply=None, records=records, atomic=False)

    def _completed_records(self, transaction_version: int) -> tuple[JournalRecord, ...]:
        if not self.completed:
            return ()
        return tuple([record_of(each, transaction_version) for each in self.completed.values()])

    def expire(
        self, transactional_ids: Iterable[str], now_ms: int, expiration_ms: int
    ) -> Outcome[None]:
        """Delete those of the transactional ids that have been idle for `expiration_ms`."""
        known = ((each, self.by_id.get(each)) for each in transactional_ids)
        expired = [
            tombstone_of(transactional_id)
            for transactional_id, transaction in known
            if transaction is not None
            and transaction.state in IDLE
            and transaction.last_update_ms <= now_ms - expiration_ms
        ]
        return Outcome(reply=None, records=tuple(expired), atomic=False)
