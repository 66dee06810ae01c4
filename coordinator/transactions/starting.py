"""InitProducerId with a transactional id: give the producer its id and epoch.

Every instance of a producer gets an epoch of its own, so that an older instance is fenced. Epochs
are int16. When those of a producer id are used up, the transactional id gets a new producer id.

A producer that continues after an error sends the id and epoch that it has (KIP-360). It keeps the
id if no other instance has begun in the meantime. It may repeat the request: if it sends the epoch
before the current one, the request has been served, and it gets the same answer.

Kafka: TransactionCoordinator.handleInitProducerId, prepareIncrementProducerEpoch.
"""

from typing import NamedTuple

from odradek.coordinator.runtime.producer import ProducerIdAndEpoch
from odradek.protocol.batch_header import NO_PRODUCER_EPOCH

from .partitions import check_not_ending, fenced
from .states import TransactionState
from .transaction import NO_PARTITIONS, NO_TIME, Transaction, is_exhausted


class NewProducer(NamedTuple):
    """The transaction after InitProducerId; `last_epoch` is the producer's epoch before it."""

    transaction: Transaction
    last_epoch: int


def check_start(transaction: Transaction, expected: ProducerIdAndEpoch | None) -> None:
    """Raise CONCURRENT_TRANSACTIONS while the last transaction ends, PRODUCER_FENCED for a zombie.

    `expected`: the producer id and epoch that the producer has; None if it is new.
    """
    check_not_ending(transaction)
    if expected is not None and not _may_continue(transaction, expected):
        raise fenced(transaction, expected)


def _may_continue(transaction: Transaction, expected: ProducerIdAndEpoch) -> bool:
    """Whether the producer id is the current one, or the one that it replaced.

    A transactional id that was unknown until now accepts every producer id: the old one expired.
    """
    if (
        transaction.producer_epoch == NO_PRODUCER_EPOCH
        or expected.producer_id == transaction.producer_id
    ):
        return True
    is_previous = expected.producer_id == transaction.previous_producer_id
    return is_previous and is_exhausted(expected.epoch)


def needs_producer_id(transaction: Transaction, expected: ProducerIdAndEpoch | None) -> bool:
    """Whether the epochs are used up and the producer is not a zombie."""
    is_current = expected is None or expected.epoch == transaction.producer_epoch
    return transaction.is_epoch_exhausted and is_current


def rotate_producer_id(
    transaction: Transaction,
    expected: ProducerIdAndEpoch | None,
    *,
    new_producer_id: int,
    timeout_ms: int,
    now_ms: int,
) -> NewProducer:
    """Begin with the first epoch of a new producer id."""
    last_epoch = NO_PRODUCER_EPOCH if expected is None else transaction.producer_epoch
    started = _started(transaction, timeout_ms, now_ms, producer_id=new_producer_id, epoch=0)
    return NewProducer(started, last_epoch)


def raise_epoch(
    transaction: Transaction,
    expected: ProducerIdAndEpoch | None,
    *,
    last_epoch: int,
    timeout_ms: int,
    now_ms: int,
) -> NewProducer:
    """Begin with the next epoch, or with the current one if the request is repeated.

    `last_epoch`: the epoch before the current one; -1 if it is not known, or if another instance
    began then. Raises ApiError: PRODUCER_FENCED.
    """
    epoch = transaction.producer_epoch
    if expected is None:
        new_epoch, new_last_epoch = epoch + 1, NO_PRODUCER_EPOCH
    elif epoch in (NO_PRODUCER_EPOCH, expected.epoch):
        new_epoch, new_last_epoch = epoch + 1, epoch
    elif expected.epoch == last_epoch:
        new_epoch, new_last_epoch = epoch, last_epoch
    else:
        raise fenced(transaction, expected)
    started = _started(
        transaction, timeout_ms, now_ms, producer_id=transaction.producer_id, epoch=new_epoch
    )
    return NewProducer(started, new_last_epoch)


def _started(
    transaction: Transaction, timeout_ms: int, now_ms: int, *, producer_id: int, epoch: int
) -> Transaction:
    return transaction.become(
        TransactionState.EMPTY,
        producer_id=producer_id,
        producer_epoch=epoch,
        timeout_ms=timeout_ms,
        partitions=NO_PARTITIONS,
        start_ms=NO_TIME,
        last_update_ms=now_ms,
    )
