"""The codec of transactions writes what the general codec writes for their messages.

Only the order of the partitions may differ.
"""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.coordinator.runtime.outcome import JournalRecord
from odradek.coordinator.runtime.record_codec import CoordinatorRecordCodec
from odradek.coordinator.runtime.steps import no_step
from odradek.coordinator.transactions.codec import MAX_LARGE_SETS, TransactionCodec
from odradek.coordinator.transactions.states import TransactionState
from odradek.coordinator.transactions.transaction import (
    NO_PARTITIONS,
    Transaction,
    message_of,
    record_of,
    sorted_partitions,
    tombstone_of,
)
from odradek.protocol.records.transaction_state import (
    RECORD_TYPES,
    TransactionLogKey,
    TransactionLogValue,
)
from odradek.protocol.schema import DecodeError, EncodeError, replace
from odradek.storage.topic_partition import TopicPartition
from tests.support.call_counts import steps_of

CODEC = TransactionCodec()
MESSAGES = CoordinatorRecordCodec(RECORD_TYPES)
IDS = st.sampled_from((-1, 0, 7, 2**63 - 1))
TIMES = st.sampled_from((-1, 0, 1_700_000_000_000))
NAMES = st.one_of(st.sampled_from(("shop", "t")), st.text(max_size=200))
PARTITIONS = st.frozensets(st.tuples(NAMES, st.integers(0, 300)), max_size=30)
SOME_PARTITIONS = st.frozensets(
    st.tuples(st.sampled_from(("shop", "t")), st.integers(0, 30)), max_size=30
)
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


def stored_message(stored: tuple[bytes, bytes | None]) -> tuple[Any, list[Any], int]:
    """The key, the value's fields, the partitions in order, and the length of what is stored."""
    record = MESSAGES.decode(*stored)
    assert record is not None
    assert isinstance(record.value, TransactionLogValue)
    topics = record.value.transaction_partitions or []
    partitions = sorted((each.topic, sorted(each.partition_ids)) for each in topics)
    rest = replace(record.value, transaction_partitions=topics and [])
    return (record.key, rest), partitions, len(stored[1] or b"")


@given(TRANSACTIONS, st.sampled_from((0, 1, 2)))
def test_a_transaction_is_stored_as_its_message(transaction: Transaction, version: int) -> None:
    record = record_of(transaction, version)
    expected = stored_message(MESSAGES.encode(as_message(record)))
    assert stored_message(CODEC.encode(record)) == expected


@given(st.lists(st.tuples(st.sampled_from("ab"), SOME_PARTITIONS, st.booleans()), max_size=6))
def test_records_in_a_row_have_the_partitions_of_their_transaction(
    changes: list[tuple[str, frozenset[TopicPartition], bool]],
) -> None:
    codec = TransactionCodec()
    known: dict[str, frozenset[TopicPartition]] = {}
    for name, partitions, are_added in changes:
        known[name] = known.get(name, frozenset()) | partitions if are_added else partitions
        record = record_of(many(name, known[name]), 2)
        expected = stored_message(MESSAGES.encode(as_message(record)))
        assert stored_message(codec.encode(record)) == expected


def many(name: str, partitions: frozenset[TopicPartition]) -> Transaction:
    return Transaction(
        transactional_id=name,
        producer_id=1,
        previous_producer_id=1,
        timeout_ms=1,
        state=TransactionState.ONGOING,
        partitions=partitions,
        last_update_ms=0,
    )


def test_of_many_partitions_those_are_packed_that_are_added() -> None:
    partitions = frozenset(TopicPartition(f"t{topic}", 0) for topic in range(1000))
    first = record_of(many("shop", partitions), 2)
    next_one = record_of(many("shop", partitions | {TopicPartition("t1", 1)}), 2)
    codec = TransactionCodec()
    assert steps_of(lambda: codec.encode(first)) > 1000
    assert steps_of(lambda: codec.encode(next_one)) < 100
    assert steps_of(lambda: codec.encode(next_one)) < 100


def test_many_that_will_be_added_are_packed_in_steps() -> None:
    before = many("shop", frozenset({TopicPartition("t0", 0), TopicPartition("other", 3)}))
    added = {TopicPartition(f"t{topic}", 1) for topic in range(1000)}
    codec = TransactionCodec()
    steps: list[None] = []
    codec.pack_ahead(before, added, lambda: steps.append(None))
    assert len(steps) > 2 * len(added)
    record = record_of(many("shop", before.partitions | added), 2)
    expected = stored_message(MESSAGES.encode(as_message(record)))
    assert steps_of(lambda: codec.encode(record)) < 100
    assert stored_message(codec.encode(record)) == expected


def test_what_was_packed_and_not_added_is_not_in_the_next_record() -> None:
    added = {TopicPartition(f"t{topic}", 1) for topic in range(1000)}
    codec = TransactionCodec()
    codec.pack_ahead(many("shop", NO_PARTITIONS), added, no_step)
    other = frozenset(TopicPartition("other", number) for number in range(100))
    record = record_of(many("shop", other), 2)
    assert stored_message(codec.encode(record)) == stored_message(
        MESSAGES.encode(as_message(record))
    )


def test_few_transactional_ids_keep_what_is_packed() -> None:
    codec = TransactionCodec()
    partitions = frozenset(TopicPartition(f"t{topic}", 0) for topic in range(100))
    records = [record_of(many(f"id-{i}", partitions), 2) for i in range(MAX_LARGE_SETS + 1)]
    for record in records:
        codec.encode(record)
    assert steps_of(lambda: codec.encode(records[0])) > 100
    assert steps_of(lambda: codec.encode(records[-1])) < 50


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
    assert sorted_partitions(partitions) == sorted(partitions)
    by_topic = many("shop", partitions).partitions_by_topic(no_step)
    found = [(topic, number) for topic, numbers in by_topic.items() for number in numbers]
    assert found == sorted(partitions)


def test_other_requests_are_served_while_many_partitions_are_sorted() -> None:
    steps: list[None] = []
    partitions = frozenset(TopicPartition("t", number) for number in range(3000))
    many("shop", partitions).partitions_by_topic(lambda: steps.append(None))
    assert len(steps) > len(partitions)
