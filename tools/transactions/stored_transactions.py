"""Collects the newest record of each transactional id from the partitions of `__transaction_state`.

The broker's own replay refuses a damaged log, so it is not used here: whatever can be decoded is
taken.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from odradek.coordinator.runtime.record_codec import CoordinatorRecordCodec
from odradek.coordinator.transactions.transaction import Transaction, stored_transaction
from odradek.protocol.batch_header import CorruptRecordError
from odradek.protocol.records.transaction_state import (
    RECORD_TYPES,
    TransactionLogKey,
    TransactionLogValue,
)
from odradek.protocol.schema import DecodeError
from odradek.storage.log_reader import LogReader

_CODEC = CoordinatorRecordCodec(RECORD_TYPES)


class Step(NamedTuple):
    """A record, and what the same transactional id had before: nothing, if it is the first."""

    previous: Transaction | None
    previous_partition: int | None
    transaction: Transaction


class StoredTransactions:
    """Transactions by transactional id; `partitions`: that of `__transaction_state` of each.

    `is_complete` is False if a transactional id may be missing.
    """

    def __init__(self) -> None:
        self.by_id: dict[str, Transaction] = {}
        self.partitions: dict[str, int] = {}
        self.is_complete = True

    def copy(self) -> "StoredTransactions":
        """Return a copy, to which records can be added."""
        other = StoredTransactions()
        other.by_id, other.partitions = dict(self.by_id), dict(self.partitions)
        other.is_complete = self.is_complete
        return other

    def add(self, partition: int, key: bytes | None, value: bytes | None) -> Step | None:
        """Take the next record of a partition.

        Returns None for a tombstone, and for a record of an unknown type or version. Raises
        DecodeError; LookupError for a state that does not exist.
        """
        try:
            record = _CODEC.decode(key, value)
            if record is None:
                return None
            assert isinstance(record.key, TransactionLogKey)
            transactional_id = record.key.transactional_id
            if value is None:
                self.by_id.pop(transactional_id, None)
                self.partitions.pop(transactional_id, None)
                return None
            if not isinstance(record.value, TransactionLogValue):
                self.is_complete = False
                return None
            transaction = stored_transaction(transactional_id, record.value)
        except (DecodeError, LookupError):
            self.is_complete = False
            raise
        step = Step(
            self.by_id.get(transactional_id), self.partitions.get(transactional_id), transaction
        )
        self.by_id[transactional_id] = transaction
        self.partitions[transactional_id] = partition
        return step

    def read(self, partition: int, reader: LogReader) -> None:
        """Take all records of a partition, up to the first that is damaged. Raises OSError."""
        try:
            for record in reader.records():
                with suppress(DecodeError, LookupError):
                    self.add(partition, record.key, record.value)
        except CorruptRecordError:
            self.is_complete = False

    def of_producer(self, producer_id: int) -> Iterator[Transaction]:
        """Iterate over the transactional ids that have this producer id: one in a sound log."""
        return (each for each in self.by_id.values() if each.producer_id == producer_id)
