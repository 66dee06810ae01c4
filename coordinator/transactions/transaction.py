"""The state of one transactional id, as its record in `__transaction_state` holds it.

A transaction is a value. A decision makes the next one from it, and writes that as a record; replay
puts it in the place of the old one. Kafka: TransactionMetadata, TransactionLog.
"""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from operator import itemgetter
from typing import Any

import msgspec

from odradek.coordinator.runtime.outcome import JournalRecord
from odradek.coordinator.runtime.steps import Step, in_order
from odradek.protocol.batch_header import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from odradek.protocol.records.transaction_state import (
    PartitionsSchema,
    TransactionLogKey,
    TransactionLogValue,
)
from odradek.storage.producer_entry import MAX_EPOCH
from odradek.storage.topic_partition import TopicPartition

from .states import PREPARED, PREVIOUS, TransactionState

NO_TIME = -1
# One for all transactional ids that are idle: an empty set of its own takes 216 bytes.
NO_PARTITIONS: AbstractSet[TopicPartition] = frozenset()
# The first transaction.version whose records have the producer ids before and after.
FIRST_VERSION_WITH_PRODUCER_IDS = 1
VALUE_VERSION = 1  # of the value itself, with the producer ids; version 0 has none


class Transaction(msgspec.Struct, frozen=True, kw_only=True):
    """The last transaction of a transactional id, or the one that is open.

    `start_ms` and `last_update_ms` are wall-clock times. `client_version` is the transaction
    version that the producer used. `next_producer_id` is set while a transaction ends that used the
    last epoch of its producer id.
    """

    transactional_id: str
    producer_id: int
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH
    timeout_ms: int
    state: TransactionState = TransactionState.EMPTY
    partitions: AbstractSet[TopicPartition] = NO_PARTITIONS
    start_ms: int = NO_TIME
    last_update_ms: int
    client_version: int = 0

    @property
    def is_epoch_exhausted(self) -> bool:
        """Whether clients may not get another epoch of this producer id."""
        return is_exhausted(self.producer_epoch)

    @property
    def is_open(self) -> bool:
        """Whether it has begun and not ended."""
        return self.state is TransactionState.ONGOING or self.state in PREPARED

    def will_end(self, partition: TopicPartition, producer_epoch: int) -> bool:
        """Whether its end will write a marker to what is open in a partition of that epoch."""
        is_of_it = partition in self.partitions and self.producer_epoch >= producer_epoch
        return self.is_open and is_of_it

    def partitions_by_topic(self, step: Step) -> dict[str, list[int]]:
        """Return the partitions in order. They are sorted in steps."""
        return by_topic(in_order(list(self.partitions), step))

    def become(self, state: TransactionState, **changes: Any) -> "Transaction":
        """Return the next transaction of this id."""
        assert self.state in PREVIOUS[state], f"{self.state.name} becomes {state.name}"
        return msgspec.structs.replace(
            self, state=state, **{"previous_producer_id": self.producer_id, **changes}
        )


def is_exhausted(epoch: int) -> bool:
    """Whether an epoch is the last one for clients. The one after it fences the producer."""
    return epoch >= MAX_EPOCH - 1


def sorted_partitions(partitions: AbstractSet[TopicPartition]) -> list[TopicPartition]:
    """Sort partitions. A sort by each of the two keys takes a third of the time of one by pairs."""
    ordered = sorted(partitions, key=itemgetter(1))
    ordered.sort(key=itemgetter(0))
    return ordered


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Group partitions by topic; topics and numbers keep their order."""
    numbers: dict[str, list[int]] = {}
    for topic, partition in partitions:
        numbers.setdefault(topic, []).append(partition)
    return numbers


def record_of(transaction: Transaction, transaction_version: int) -> JournalRecord:
    """Return the record of a transaction. `transaction_version` is the finalized one."""
    has_ids = transaction_version >= FIRST_VERSION_WITH_PRODUCER_IDS
    key = TransactionLogKey(transactional_id=transaction.transactional_id)
    return JournalRecord(transaction, int(has_ids), key)


def message_of(transaction: Transaction, value_version: int) -> TransactionLogValue:
    """Return the value of a transaction's record, without fields that its version does not have."""
    has_ids = value_version >= VALUE_VERSION
    return TransactionLogValue(
        producer_id=transaction.producer_id,
        previous_producer_id=transaction.previous_producer_id if has_ids else NO_PRODUCER_ID,
        next_producer_id=transaction.next_producer_id if has_ids else NO_PRODUCER_ID,
        producer_epoch=transaction.producer_epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.state,
        transaction_partitions=_partitions_of(transaction),
        transaction_last_update_timestamp_ms=transaction.last_update_ms,
        transaction_start_timestamp_ms=transaction.start_ms,
        client_transaction_version=transaction.client_version if has_ids else 0,
    )


def tombstone_of(transactional_id: str) -> JournalRecord:
    """Return the record that deletes a transactional id."""
    return JournalRecord(None, 0, TransactionLogKey(transactional_id=transactional_id))


def _partitions_of(transaction: Transaction) -> list[PartitionsSchema] | None:
    if transaction.state is TransactionState.EMPTY:
        return None
    numbers = by_topic(sorted_partitions(transaction.partitions))
    return [PartitionsSchema(topic=topic, partition_ids=ids) for topic, ids in numbers.items()]


def stored_transaction(transactional_id: str, value: TransactionLogValue) -> Transaction:
    """Return the transaction of a record. Raises LookupError for an unknown state."""
    try:
        state = TransactionState(value.transaction_status)
    except ValueError:
        raise LookupError(f"transaction state {value.transaction_status}") from None
    return Transaction(
        transactional_id=transactional_id,
        producer_id=value.producer_id,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        producer_epoch=value.producer_epoch,
        timeout_ms=value.transaction_timeout_ms,
        state=state,
        partitions=_partitions_in(value.transaction_partitions),
        start_ms=value.transaction_start_timestamp_ms,
        last_update_ms=value.transaction_last_update_timestamp_ms,
        client_version=value.client_transaction_version,
    )


def _partitions_in(topics: list[PartitionsSchema] | None) -> AbstractSet[TopicPartition]:
    if not topics:
        return NO_PARTITIONS
    return frozenset(
        TopicPartition(topic.topic, partition)
        for topic in topics
        for partition in topic.partition_ids
    )
