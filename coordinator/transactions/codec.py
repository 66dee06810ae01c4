"""Converts transactions to the keys and values of `__transaction_state`, and back.

A record's value is a Transaction. Its stored form is that of TransactionLogValue, and is made from
one except in the usual case: version 1, and no producer id to change to. That value is packed here,
because each transaction has three records, and building a message for each takes longer than all
else that the coordinator does. Tests compare the two.

The stored form has all partitions, also when one is added. If there are many, what was packed for
the record before is used again; many that are added at once are packed before their record is made.
Their order has no meaning; in Kafka it is that of a HashMap.
"""

import struct
from collections.abc import Set as AbstractSet
from functools import lru_cache

from odradek.coordinator.runtime.outcome import JournalRecord
from odradek.coordinator.runtime.record_codec import CoordinatorRecordCodec
from odradek.coordinator.runtime.steps import Step, no_step, stepping
from odradek.protocol.batch_header import NO_PRODUCER_ID
from odradek.protocol.primitives import write_uvarint
from odradek.protocol.records.transaction_state import (
    RECORD_TYPES,
    TransactionLogKey,
    TransactionLogValue,
)
from odradek.protocol.schema import DecodeError, EncodeError
from odradek.storage.topic_partition import TopicPartition

from .states import TransactionState
from .transaction import (
    NO_PARTITIONS,
    VALUE_VERSION,
    Transaction,
    by_topic,
    message_of,
    sorted_partitions,
    stored_transaction,
)

_KEY = struct.Struct(">hh")  # the record type, and the length of the id
_NULL = b"\0"
# Version, producer id, epoch, timeout, state.
_HEAD = struct.Struct(">hqhib")
# The two times, then the tagged fields: their number; each with its tag and size.
_END = struct.Struct(">qqBBBq")  # the previous producer id
_END_V2 = struct.Struct(">qqBBBqBBh")  # and the client's transaction version
# The cache of small sets of partitions that are packed, which transactional ids share: the number
# of sets, and the size of the largest.
CACHED_SETS = 1024
MAX_CACHED_PARTITIONS = 16
# So many transactional ids keep the larger sets of their last records.
MAX_LARGE_SETS = 64
# So many partitions that are added at once are packed in steps. Fewer take half a millisecond.
PACKED_AHEAD = 500


class TransactionCodec:
    """The RecordCodec of `__transaction_state`."""

    def __init__(self) -> None:
        self._messages = CoordinatorRecordCodec(RECORD_TYPES)
        # By transactional id, the one that was used last at the end.
        self._large_sets: dict[str, _LargeSet] = {}

    def encode(
        self,
        record: JournalRecord,
        step: Step | None = None,  # noqa: ARG002 # none is large
    ) -> tuple[bytes, bytes | None]:
        """Return key and value; a tombstone has no value. Raises EncodeError."""
        transaction = record.value
        if transaction is None:
            return self._messages.encode(record)
        if (
            record.value_version != VALUE_VERSION
            or transaction.next_producer_id != NO_PRODUCER_ID
            or transaction.previous_producer_id == NO_PRODUCER_ID
        ):
            message = message_of(transaction, record.value_version)
            return self._messages.encode(JournalRecord(message, record.value_version, record.key))
        try:
            name = transaction.transactional_id.encode("utf-8", "replace")
            return _KEY.pack(0, len(name)) + name, self._value(transaction)
        except struct.error as error:
            raise EncodeError(f"the record of a transaction: {error}") from error

    def pack_ahead(
        self, transaction: Transaction, added: AbstractSet[TopicPartition], step: Step
    ) -> None:
        """Pack, in steps, what the record of a transaction will have once partitions are added.

        If they are not added, the next record is packed as if this had not been called.
        `added` must not change in a step.
        """
        packed = _LargeSet()
        packed.grow(transaction.partitions | added, step)
        self._keep(transaction.transactional_id, packed)

    def decode(self, key: bytes | None, value: bytes | None) -> JournalRecord | None:
        """See RecordCodec. Raises DecodeError also for an unknown state."""
        record = self._messages.decode(key, value)
        if record is None or record.value is None:
            return record
        assert isinstance(record.key, TransactionLogKey)
        assert isinstance(record.value, TransactionLogValue)
        try:
            transaction = stored_transaction(record.key.transactional_id, record.value)
        except LookupError as error:
            raise DecodeError(f"{record.key.transactional_id} has an unknown {error}") from None
        return JournalRecord(transaction, record.value_version, record.key)

    def is_cut(self, record: JournalRecord) -> bool:
        """Whether a field is set that the record's version does not have. See RecordCodec."""
        transaction: Transaction | None = record.value
        if transaction is None or record.value_version >= VALUE_VERSION:
            return False
        return (
            transaction.previous_producer_id != NO_PRODUCER_ID
            or transaction.next_producer_id != NO_PRODUCER_ID
            or transaction.client_version != 0
        )

    def _value(self, transaction: Transaction) -> bytes:
        """Pack a value of version 1 with a previous producer id and no next one."""
        head = _HEAD.pack(
            VALUE_VERSION,
            transaction.producer_id,
            transaction.producer_epoch,
            transaction.timeout_ms,
            transaction.state,
        )
        partitions = transaction.partitions
        if transaction.state is TransactionState.EMPTY:
            middle = _NULL
        elif len(partitions) <= MAX_CACHED_PARTITIONS:
            middle = _packed_small_set(partitions)
        else:
            middle = self._packed_large_set(transaction)
        times = (transaction.last_update_ms, transaction.start_ms)
        previous = transaction.previous_producer_id
        version = transaction.client_version
        if version:
            return head + middle + _END_V2.pack(*times, 2, 0, 8, previous, 2, 2, version)
        return head + middle + _END.pack(*times, 1, 0, 8, previous)

    def _packed_large_set(self, transaction: Transaction) -> bytes:
        known = self._large_sets.get(transaction.transactional_id)
        if known is None or not known.partitions <= transaction.partitions:
            known = _LargeSet()
        known.grow(transaction.partitions, no_step)
        self._keep(transaction.transactional_id, known)
        return known.packed()

    def _keep(self, transactional_id: str, large_set: "_LargeSet") -> None:
        self._large_sets.pop(transactional_id, None)
        self._large_sets[transactional_id] = large_set
        if len(self._large_sets) > MAX_LARGE_SETS:
            del self._large_sets[next(iter(self._large_sets))]


class _LargeSet:
    """The partitions of a transaction; those of each topic are packed."""

    def __init__(self) -> None:
        self.partitions = NO_PARTITIONS
        self._numbers: dict[str, list[int]] = {}
        self._packed: dict[str, bytearray] = {}

    def grow(self, partitions: AbstractSet[TopicPartition], step: Step) -> None:
        """Take larger partitions, which have all those that are known."""
        added_by_topic = by_topic(stepping(iter(partitions - self.partitions), step))
        for topic, added in stepping(iter(added_by_topic.items()), step):
            numbers = self._numbers.setdefault(topic, added)
            if numbers is not added:
                numbers += added
            self._packed[topic] = bytearray()
            _write_topic(self._packed[topic], topic, numbers)
        self.partitions = partitions

    def packed(self) -> bytes:
        out = bytearray()
        write_uvarint(out, len(self._packed) + 1)
        return bytes(out) + b"".join(self._packed.values())


@lru_cache(CACHED_SETS)
def _packed_small_set(partitions: AbstractSet[TopicPartition]) -> bytes:
    numbers = by_topic(sorted_partitions(partitions))
    out = bytearray()
    write_uvarint(out, len(numbers) + 1)
    for topic in numbers:
        _write_topic(out, topic, numbers[topic])
    return bytes(out)


def _write_topic(out: bytearray, topic: str, numbers: list[int]) -> None:
    name = topic.encode("utf-8", "replace")
    write_uvarint(out, len(name) + 1)
    out += name
    write_uvarint(out, len(numbers) + 1)
    out += struct.pack(f">{len(numbers)}ix", *numbers)  # and no tagged fields
