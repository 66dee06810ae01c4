"""Tracks the open transactions while the cleaner reads a log in order.

    a batch of an aborted transaction    is removed; the transaction is noted as seen
    its ABORT marker                     kept if a batch was seen, with an entry in the .txnindex of
                                         the cleaned segment; otherwise it may be removed
    a COMMIT marker                      may be removed if no batch of the transaction was seen
    a marker batch without records       may be removed

The .txnindex files tell which transactions were aborted, before their markers are read.

Kafka: CleanedTransactionMetadata.
"""

from collections.abc import Iterable

from odradek.protocol.batch_header import BatchHeader
from odradek.protocol.records.control import ControlRecordType
from odradek.storage.txn_index import AbortedTransaction


class _Aborted:
    """An aborted transaction that has begun, and whether a batch of it was seen."""

    __slots__ = ("batch_seen", "transaction")

    def __init__(self, transaction: AbortedTransaction) -> None:
        self.transaction = transaction
        self.batch_seen = False


class CleanedTransactions:
    """`retained`: the entries for the .txnindex of the segment that is being written."""

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self.retained: list[AbortedTransaction] = []
        self._upcoming = sorted(aborted, key=lambda each: each.first_offset, reverse=True)
        self._in_aborted: dict[int, _Aborted] = {}  # by producer id
        self._in_committed: set[int] = set()

    def on_batch(self, header: BatchHeader) -> bool:
        """Process a batch of records. Returns True if its transaction was aborted."""
        if self._upcoming:
            self._enter_up_to(header.last_offset)
        if not header.is_transactional:
            return False
        entered = self._in_aborted.get(header.producer_id)
        if entered is not None and header.base_offset > entered.transaction.last_offset:
            # Its marker was not seen (a round may begin after it) or could not be read.
            del self._in_aborted[header.producer_id]
            entered = None
        if entered is None:
            self._in_committed.add(header.producer_id)
            return False
        entered.batch_seen = True
        return True

    def on_marker(self, header: BatchHeader, kind: ControlRecordType | None) -> bool:
        """Process a control batch with a record of that kind. Returns True if it may be removed."""
        if self._upcoming:
            self._enter_up_to(header.last_offset)
        if kind is ControlRecordType.ABORT:
            entered = self._in_aborted.pop(header.producer_id, None)
            if entered is None or not entered.batch_seen:
                return True
            self.retained.append(entered.transaction)
            return False
        if kind is ControlRecordType.COMMIT:
            if header.producer_id not in self._in_committed:
                return True
            self._in_committed.remove(header.producer_id)
        return False

    def on_empty_marker(self, header: BatchHeader) -> bool:
        """Process a control batch without records: a former round emptied it, it may be removed."""
        self._enter_up_to(header.last_offset)
        return True

    def _enter_up_to(self, offset: int) -> None:
        while self._upcoming and self._upcoming[-1].first_offset <= offset:
            transaction = self._upcoming.pop()
            entered = self._in_aborted.get(transaction.producer_id)
            # The entry may be of a transaction that has ended, if a round began after its marker.
            if entered is None or entered.transaction.last_offset < transaction.first_offset:
                self._in_aborted[transaction.producer_id] = _Aborted(transaction)
