"""Add partitions to a transaction, or check that they are in it.

The first partition begins the transaction. Producers of version 1 add partitions by requests of
their own (AddPartitionsToTxn, AddOffsetsToTxn), and the broker checks each write against them. For
producers of version 2 the broker adds the partitions to which they write.

Kafka: TransactionCoordinator.handleAddPartitionsToTransaction, handleVerifyPartitionsInTransaction.
"""

from collections.abc import Set as AbstractSet

from odradek.coordinator.runtime.producer import ProducerIdAndEpoch
from odradek.coordinator.runtime.steps import Step, no_step, stepping
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.storage.topic_partition import TopicPartition

from .states import IDLE, PREPARED, TransactionState
from .transaction import Transaction


def add_partitions(
    transaction: Transaction,
    producer: ProducerIdAndEpoch,
    partitions: AbstractSet[TopicPartition],
    *,
    client_version: int,
    now_ms: int,
) -> Transaction | None:
    """Return the transaction with the partitions; None if it has them already.

    Raises ApiError: CONCURRENT_TRANSACTIONS, INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED.
    """
    check_may_add(transaction, producer)
    if transaction.state is TransactionState.ONGOING and partitions <= transaction.partitions:
        return None
    return transaction.become(
        TransactionState.ONGOING,
        partitions=transaction.partitions | partitions,
        start_ms=now_ms if transaction.state in IDLE else transaction.start_ms,
        last_update_ms=now_ms,
        client_version=client_version,
    )


def missing_partitions(
    transaction: Transaction,
    producer: ProducerIdAndEpoch,
    partitions: AbstractSet[TopicPartition],
    step: Step = no_step,
) -> list[TopicPartition]:
    """Return those of the partitions that are not in the producer's transaction.

    The transaction is the one that it is now; `partitions` must not change in a step.

    Raises ApiError: INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS.
    """
    check_producer(transaction, producer)
    check_not_ending(transaction)
    return [each for each in stepping(iter(partitions), step) if each not in transaction.partitions]


def check_may_add(transaction: Transaction, producer: ProducerIdAndEpoch) -> None:
    """Raise the ApiError of `add_partitions`, if there is one."""
    check_not_ending(transaction)
    check_producer(transaction, producer)


def check_not_ending(transaction: Transaction) -> None:
    """Raise CONCURRENT_TRANSACTIONS while the last transaction is being completed."""
    if transaction.state in PREPARED:
        raise ApiError(
            ErrorCode.CONCURRENT_TRANSACTIONS,
            f"the last transaction of {transaction.transactional_id} is being completed",
        )


def check_producer(transaction: Transaction, producer: ProducerIdAndEpoch) -> None:
    """Raise INVALID_PRODUCER_ID_MAPPING or PRODUCER_FENCED unless it is the current producer."""
    if transaction.producer_id != producer.producer_id:
        raise ApiError(
            ErrorCode.INVALID_PRODUCER_ID_MAPPING,
            f"{transaction.transactional_id} has producer id {transaction.producer_id},"
            f" not {producer.producer_id}",
        )
    if transaction.producer_epoch != producer.epoch:
        raise fenced(transaction, producer)


def fenced(transaction: Transaction, producer: ProducerIdAndEpoch) -> ApiError:
    """Return the error for a producer whose epoch is not the current one."""
    return ApiError(
        ErrorCode.PRODUCER_FENCED,
        f"producer {producer.producer_id} of epoch {producer.epoch}: {transaction.transactional_id}"
        f" has producer {transaction.producer_id} of epoch {transaction.producer_epoch}",
    )
