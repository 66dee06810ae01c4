"""End a transaction: decide it, and complete it when its markers are written.

    Ongoing -> PrepareCommit -> (markers in every partition) -> CompleteCommit
    Ongoing -> PrepareAbort  -> (markers in every partition) -> CompleteAbort

Once PrepareCommit or PrepareAbort is in the log, the end is decided: after a crash the markers are
written again, and the transaction is completed.

In version 2 each transaction has an epoch of its own (KIP-890): the one that ends raises the epoch,
its markers carry the new epoch, and a late write of the old one is refused. A producer that repeats
EndTxn sends the old epoch:

                     Abort                          Commit
                     repeated         current       repeated         current
    Empty            PRODUCER_FENCED  aborts        PRODUCER_FENCED  INVALID_TXN_STATE
    CompleteAbort    no error         aborts        INVALID_TXN_     INVALID_TXN_STATE
                                                    STATE
    CompleteCommit   INVALID_TXN_     aborts        no error         INVALID_TXN_STATE
                     STATE

In version 1 the epoch stays. A request with another epoch is refused, Empty refuses both, and a
completed transaction accepts the request by which it ended.

Kafka: TransactionCoordinator.endTransaction, endTransactionWithTV1.
"""

from odradek.coordinator.runtime.producer import ProducerIdAndEpoch
from odradek.protocol.batch_header import NO_PRODUCER_ID
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.storage.producer_entry import FIRST_VERSION_WITH_EPOCH_BUMP, MAX_EPOCH

from .partitions import check_not_ending, check_producer, fenced
from .states import TransactionState
from .transaction import NO_PARTITIONS, Transaction

_COMPLETED = {True: TransactionState.COMPLETE_COMMIT, False: TransactionState.COMPLETE_ABORT}


def must_end_v1(transaction: Transaction, producer: ProducerIdAndEpoch, *, commit: bool) -> bool:
    """Whether an EndTxn of version 1 ends the transaction; False if that has happened already.

    Raises ApiError: INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS,
    INVALID_TXN_STATE.
    """
    check_producer(transaction, producer)
    check_not_ending(transaction)
    if transaction.state is TransactionState.ONGOING:
        return True
    if transaction.state is not _COMPLETED[commit]:
        raise _wrong_state(transaction, commit=commit)
    return False


def must_end_v2(transaction: Transaction, producer: ProducerIdAndEpoch, *, commit: bool) -> bool:
    """Whether an EndTxn of version 2 ends the transaction; False if it repeats the one that did.

    Raises the errors of `must_end_v1`.
    """
    check_not_ending(transaction)
    is_completed = transaction.state in _COMPLETED.values()
    is_rotated = _is_before_rotation(transaction, producer)
    is_repeated = producer.epoch + 1 == transaction.producer_epoch or is_rotated
    if producer.producer_id != transaction.producer_id and not is_rotated:
        check_producer(transaction, producer)
    if producer.epoch != transaction.producer_epoch and not (is_completed and is_repeated):
        raise fenced(transaction, producer)
    if transaction.state is TransactionState.ONGOING:
        return True
    if is_completed and is_repeated and transaction.state is _COMPLETED[commit]:
        return False
    if commit or (is_completed and is_repeated):
        raise _wrong_state(transaction, commit=commit)
    return True


def _is_before_rotation(transaction: Transaction, producer: ProducerIdAndEpoch) -> bool:
    """Whether the producer has the last epoch of the producer id that was replaced."""
    return (
        transaction.previous_producer_id == producer.producer_id
        and producer.epoch == MAX_EPOCH - 1
        and transaction.producer_epoch == 0
    )


def _wrong_state(transaction: Transaction, *, commit: bool) -> ApiError:
    request = "commit" if commit else "abort"
    return ApiError(
        ErrorCode.INVALID_TXN_STATE,
        f"cannot {request} {transaction.transactional_id}: it is {transaction.state.client_name}",
    )


def prepare(
    transaction: Transaction,
    *,
    commit: bool,
    client_version: int,
    next_producer_id: int,
    now_ms: int,
) -> Transaction:
    """Decide the end. `next_producer_id`: a new one if the epochs of version 2 are used up, or -1.

    Without an open transaction (version 2 only) the abort counts as begun now.
    """
    state = TransactionState.PREPARE_COMMIT if commit else TransactionState.PREPARE_ABORT
    epoch = transaction.producer_epoch
    if client_version >= FIRST_VERSION_WITH_EPOCH_BUMP:
        epoch = min(epoch + 1, MAX_EPOCH)
    is_open = transaction.state is TransactionState.ONGOING
    return transaction.become(
        state,
        producer_epoch=epoch,
        next_producer_id=next_producer_id,
        start_ms=transaction.start_ms if is_open else now_ms,
        last_update_ms=now_ms,
        client_version=client_version,
    )


def prepare_fence(
    transaction: Transaction,
    *,
    transaction_version: int,
    next_producer_id: int,
    now_ms: int,
) -> Transaction:
    """Decide to abort, with a new epoch, so that the producer is fenced.

    `transaction_version` is the finalized one. Kafka: prepareFenceProducerEpoch.
    """
    fenced_epoch = min(transaction.producer_epoch + 1, MAX_EPOCH)
    is_v2 = transaction_version >= FIRST_VERSION_WITH_EPOCH_BUMP
    return transaction.become(
        TransactionState.PREPARE_ABORT,
        producer_epoch=fenced_epoch,
        next_producer_id=next_producer_id if is_v2 else NO_PRODUCER_ID,
        last_update_ms=now_ms,
        client_version=transaction_version if is_v2 else 0,
    )


def complete(transaction: Transaction, now_ms: int) -> Transaction:
    """Complete a transaction whose markers are written."""
    is_commit = transaction.state is TransactionState.PREPARE_COMMIT
    after = producer_after(transaction)
    return transaction.become(
        _COMPLETED[is_commit],
        producer_id=after.producer_id,
        producer_epoch=after.epoch,
        next_producer_id=NO_PRODUCER_ID,
        partitions=NO_PARTITIONS,
        last_update_ms=now_ms,
    )


def producer_after(transaction: Transaction) -> ProducerIdAndEpoch:
    """Return the producer id and epoch that are valid after a transaction that is prepared."""
    is_v2 = transaction.client_version >= FIRST_VERSION_WITH_EPOCH_BUMP
    if is_v2 and transaction.next_producer_id != NO_PRODUCER_ID:
        return ProducerIdAndEpoch(transaction.next_producer_id, 0)
    return ProducerIdAndEpoch(transaction.producer_id, transaction.producer_epoch)
