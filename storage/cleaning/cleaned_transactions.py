"""Which transactions the cleaner is in, on its way through a log.

    a batch of an aborted transaction    its records go; that there was one is remembered
    its ABORT marker                     stays while a batch was seen, with an entry in the cleaned
                                         segment's .txnindex; else it may go
    a COMMIT marker                      may go when no batch of the transaction was seen
    an emptied marker                    may go

Which transactions were aborted is known from the .txnindex files before their markers are met.

Kafka: CleanedTransactionMetadata.
"""

from collections.abc import Iterable

from odradek.protocol.batch_header import BatchHeader
from odradek.protocol.records.control import ControlRecordType
from odradek.storage.txn_index import AbortedTransaction


class _Aborted:
    """An aborted transaction that was entered, and whether a batch of it was seen."""

    __slots__ = ("batch_seen", "transaction")

    def __init__(self, transaction: AbortedTransaction) -> None:
        self.transaction = transaction
        self.batch_seen = False


class CleanedTransactions:
    """`retained`: what belongs into the .txnindex of the segment that is being written."""

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self.retained: list[AbortedTransaction] = []
        self._ahead = sorted(aborted, key=lambda each: each.first_offset, reverse=True)
        self._in_aborted: dict[int, _Aborted] = {}  # by producer id
        self._in_committed: set[int] = set()

    def on_batch(self, header: BatchHeader) -> bool:
        """A batch of records is met; True: its transaction was aborted."""
        if self._ahead:
            self._enter_up_to(header.last_offset)
        if not header.is_transactional:
            return False
        entered = self._in_aborted.get(header.producer_id)
        if entered is not None and header.base_offset > entered.transaction.last_offset:
            # Its marker was not met (a round may begin behind it) or could not be read.
            del self._in_aborted[header.producer_id]
            entered = None
        if entered is None:
            self._in_committed.add(header.producer_id)
            return False
        entered.batch_seen = True
        return True

    def on_marker(self, header: BatchHeader, kind: ControlRecordType | None) -> bool:
        """A control batch with a record of that kind is met; True: it may go."""
        if self._ahead:
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
        """A control batch without a record is met: it was cleaned before, and may go."""
        self._enter_up_to(header.last_offset)
        return True

    def _enter_up_to(self, offset: int) -> None:
        while self._ahead and self._ahead[-1].first_offset <= offset:
            transaction = self._ahead.pop()
            entered = self._in_aborted.get(transaction.producer_id)
            # One that is over already stands here where a round begins behind its marker.
            if entered is None or entered.transaction.last_offset < transaction.first_offset:
                self._in_aborted[transaction.producer_id] = _Aborted(transaction)
