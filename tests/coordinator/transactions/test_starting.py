"""InitProducerId with a transactional id: new, restarted, fenced and repeating producers."""

import pytest

from odradek.coordinator.runtime.producer import ProducerIdAndEpoch
from odradek.coordinator.transactions.starting import (
    check_start,
    needs_producer_id,
    raise_epoch,
    rotate_producer_id,
)
from odradek.coordinator.transactions.states import TransactionState
from odradek.coordinator.transactions.transaction import Transaction
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.storage.producer_entry import MAX_EPOCH

NOW_MS = 1_000_000
IDLE = (
    TransactionState.EMPTY,
    TransactionState.COMPLETE_COMMIT,
    TransactionState.COMPLETE_ABORT,
)


def known(state: TransactionState = TransactionState.EMPTY, epoch: int = 5) -> Transaction:
    return Transaction(
        transactional_id="shop",
        producer_id=7,
        previous_producer_id=6,
        producer_epoch=epoch,
        timeout_ms=60_000,
        state=state,
        last_update_ms=600,
    )


def begun(
    transaction: Transaction, expected: tuple[int, int] | None, last_epoch: int = -1
) -> tuple[int, int, int]:
    """The producer's id and epoch, and the last epoch."""
    start = raise_epoch(
        transaction,
        None if expected is None else ProducerIdAndEpoch(*expected),
        last_epoch=last_epoch,
        timeout_ms=1000,
        now_ms=NOW_MS,
    )
    assert start.transaction.state is TransactionState.EMPTY
    assert start.transaction.timeout_ms == 1000
    return start.transaction.producer_id, start.transaction.producer_epoch, start.last_epoch


def test_a_new_transactional_id_begins_with_epoch_0() -> None:
    assert begun(known(epoch=-1), None) == (7, 0, -1)
    assert begun(known(epoch=-1), (3, 9)) == (7, 0, -1)  # its old producer id has expired


@pytest.mark.parametrize("state", IDLE)
def test_every_new_instance_gets_the_next_epoch(state: TransactionState) -> None:
    assert begun(known(state), None) == (7, 6, -1)


def test_a_producer_that_continues_gets_the_next_epoch_and_may_repeat_the_request() -> None:
    assert begun(known(epoch=5), (7, 5)) == (7, 6, 5)
    assert begun(known(epoch=6), (7, 5), last_epoch=5) == (7, 6, 5)


def test_a_producer_is_fenced_by_another_instance() -> None:
    with pytest.raises(ApiError) as refused:
        begun(known(epoch=6), (7, 5), last_epoch=-1)
    assert refused.value.code is ErrorCode.PRODUCER_FENCED


@pytest.mark.parametrize("state", [TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT])
def test_a_producer_waits_until_the_last_transaction_is_completed(state: TransactionState) -> None:
    with pytest.raises(ApiError) as refused:
        check_start(known(state), None)
    assert refused.value.code is ErrorCode.CONCURRENT_TRANSACTIONS


@pytest.mark.parametrize(
    ("expected", "is_fenced"),
    [
        (None, False),
        ((7, 5), False),
        ((7, 4), False),  # the epoch is checked when it is raised
        ((8, 5), True),
        ((6, 5), True),
        ((6, MAX_EPOCH - 1), False),  # repeats the request that replaced its producer id
    ],
)
def test_only_the_current_producer_id_continues(
    expected: tuple[int, int] | None, is_fenced: bool
) -> None:
    producer = None if expected is None else ProducerIdAndEpoch(*expected)
    if not is_fenced:
        check_start(known(), producer)
        return
    with pytest.raises(ApiError) as refused:
        check_start(known(), producer)
    assert refused.value.code is ErrorCode.PRODUCER_FENCED


def test_the_last_epoch_is_followed_by_a_new_producer_id() -> None:
    last = known(epoch=MAX_EPOCH - 1)
    current = ProducerIdAndEpoch(7, MAX_EPOCH - 1)
    assert needs_producer_id(last, None)
    assert needs_producer_id(last, current)
    assert not needs_producer_id(last, ProducerIdAndEpoch(7, MAX_EPOCH - 2))
    assert not needs_producer_id(known(epoch=MAX_EPOCH - 2), None)
    start = rotate_producer_id(last, current, new_producer_id=99, timeout_ms=1, now_ms=NOW_MS)
    assert (start.transaction.producer_id, start.transaction.producer_epoch) == (99, 0)
    assert (start.transaction.previous_producer_id, start.last_epoch) == (7, MAX_EPOCH - 1)
    assert (
        rotate_producer_id(last, None, new_producer_id=99, timeout_ms=1, now_ms=NOW_MS).last_epoch
        == -1
    )
