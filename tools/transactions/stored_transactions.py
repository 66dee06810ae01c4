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
    """A record, and the one before it of the same transactional id; None if it is the first."""

    previous: Transaction | None
    transaction: Transaction


class StoredTransactions:
    """Transactions by partition of `__transaction_state` and transactional id.

    After partitions were added to that topic, a transactional id may be in two of them.
    `is_complete` is False if a transactional id may be missing.
    """

    def __init__(self) -> None:
        self.by_key: dict[tuple[int, str], Transaction] = {}
        self.is_complete = True

    def copy(self) -> "StoredTransactions":
        """Return a copy, to which records can be added."""
        other = StoredTransactions()
        other.by_key, other.is_complete = dict(self.by_key), self.is_complete
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
            key_here = partition, record.key.transactional_id
            if value is None:
                self.by_key.pop(key_here, None)
                return None
            if not isinstance(record.value, TransactionLogValue):
                self.is_complete = False
                return None
            transaction = stored_transaction(record.key.transactional_id, record.value)
        except (DecodeError, LookupError):
            self.is_complete = False
            raise
        step = Step(self.by_key.get(key_here), transaction)
        self.by_key[key_here] = transaction
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
        """Iterate over the transactional ids that have this producer id."""
        return (each for each in self.by_key.values() if each.producer_id == producer_id)
