"""The codec of transactions writes what the general codec writes for their messages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.coordinator.runtime.outcome import JournalRecord
from odradek.coordinator.runtime.record_codec import CoordinatorRecordCodec
from odradek.coordinator.transactions.codec import TransactionCodec
from odradek.coordinator.transactions.states import TransactionState
from odradek.coordinator.transactions.transaction import (
    NO_PARTITIONS,
    Transaction,
    in_order,
    message_of,
    record_of,
    tombstone_of,
)
from odradek.protocol.records.transaction_state import (
    RECORD_TYPES,
    TransactionLogKey,
    TransactionLogValue,
)
from odradek.protocol.schema import DecodeError, EncodeError
from odradek.storage.topic_partition import TopicPartition

CODEC = TransactionCodec()
MESSAGES = CoordinatorRecordCodec(RECORD_TYPES)
IDS = st.sampled_from((-1, 0, 7, 2**63 - 1))
TIMES = st.sampled_from((-1, 0, 1_700_000_000_000))
NAMES = st.one_of(st.sampled_from(("shop", "t")), st.text(max_size=200))
PARTITIONS = st.frozensets(st.tuples(NAMES, st.integers(0, 300)), max_size=30)
TRANSACTIONS = st.builds(
    Transaction,
    transactional_id=NAMES,
    producer_id=IDS,
    previous_producer_id=IDS,
    next_producer_id=IDS,
    producer_epoch=st.integers(-1, 32767),
    timeout_ms=st.integers(0, 2**31 - 1),
    state=st.sampled_from(TransactionState),
    partitions=PARTITIONS,
    start_ms=TIMES,
    last_update_ms=TIMES,
    client_version=st.sampled_from((0, 1, 2)),
)


def as_message(record: JournalRecord) -> JournalRecord:
    message = message_of(record.value, record.value_version)
    return JournalRecord(message, record.value_version, record.key)


@given(TRANSACTIONS, st.sampled_from((0, 1, 2)))
def test_a_transaction_is_stored_as_its_message(transaction: Transaction, version: int) -> None:
    record = record_of(transaction, version)
    assert CODEC.encode(record) == MESSAGES.encode(as_message(record))


@given(TRANSACTIONS, st.sampled_from((0, 1, 2)))
def test_a_record_is_read_as_it_was_written_unless_it_is_cut(
    transaction: Transaction, version: int
) -> None:
    record = record_of(transaction, version)
    found = CODEC.decode(*CODEC.encode(record))
    assert found is not None
    if transaction.state is TransactionState.EMPTY:
        assert found.value.partitions == NO_PARTITIONS
    elif any("\ud800" <= char < "\ue000" for topic, _ in transaction.partitions for char in topic):
        return  # no text of a client has a lone surrogate
    elif not CODEC.is_cut(record):
        assert found == record


def test_a_tombstone_has_no_value() -> None:
    record = tombstone_of("shop")
    assert CODEC.encode(record) == MESSAGES.encode(record)
    assert CODEC.decode(*CODEC.encode(record)) == record


def test_an_id_that_is_too_long_for_the_log_cannot_be_encoded() -> None:
    transaction = Transaction(
        transactional_id="x" * 32768,
        producer_id=1,
        previous_producer_id=1,
        timeout_ms=1,
        last_update_ms=0,
    )
    with pytest.raises(EncodeError):
        CODEC.encode(record_of(transaction, 2))


def test_a_state_that_does_not_exist_is_not_read() -> None:
    value = TransactionLogValue(
        producer_id=1,
        producer_epoch=0,
        transaction_timeout_ms=1,
        transaction_status=99,
        transaction_partitions=[],
        transaction_last_update_timestamp_ms=0,
        transaction_start_timestamp_ms=0,
    )
    key = TransactionLogKey(transactional_id="shop")
    stored = MESSAGES.encode(JournalRecord(value, 1, key))
    with pytest.raises(DecodeError, match="state 99"):
        CODEC.decode(*stored)


@given(PARTITIONS)
def test_partitions_are_sorted_as_pairs_are(partitions: frozenset[TopicPartition]) -> None:
    for reverse in (False, True):
        assert in_order(partitions, reverse=reverse) == sorted(partitions, reverse=reverse)
