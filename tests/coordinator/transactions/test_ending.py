"""EndTxn: what each state answers to each request, and what the transaction becomes."""

import pytest

from odradek.coordinator.runtime.producer import ProducerIdAndEpoch
from odradek.coordinator.transactions.ending import (
    complete,
    must_end_v1,
    must_end_v2,
    prepare,
    prepare_fence,
    producer_after,
)
from odradek.coordinator.transactions.states import TransactionState
from odradek.coordinator.transactions.transaction import Transaction
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.storage.producer_entry import MAX_EPOCH

EMPTY, ONGOING = TransactionState.EMPTY, TransactionState.ONGOING
PREPARE_COMMIT, PREPARE_ABORT = TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT
COMPLETE_COMMIT = TransactionState.COMPLETE_COMMIT
COMPLETE_ABORT = TransactionState.COMPLETE_ABORT

ENDS, NOTHING = True, False
FENCED = ErrorCode.PRODUCER_FENCED
WRONG_STATE = ErrorCode.INVALID_TXN_STATE
CONCURRENT = ErrorCode.CONCURRENT_TRANSACTIONS
MAPPING = ErrorCode.INVALID_PRODUCER_ID_MAPPING
EPOCH = 5
NOW_MS = 1_000_000


def transaction(state: TransactionState, **fields: object) -> Transaction:
    return Transaction(
        **{
            "transactional_id": "shop",
            "producer_id": 7,
            "producer_epoch": EPOCH,
            "timeout_ms": 60_000,
            "state": state,
            "partitions": frozenset({("orders", 0)}) if state is ONGOING else frozenset(),
            "start_ms": 500,
            "last_update_ms": 600,
            **fields,
        }
    )


def answer(end: object, known: Transaction, epoch: int, *, commit: bool, pid: int = 7) -> object:
    try:
        return end(known, ProducerIdAndEpoch(pid, epoch), commit=commit)  # type: ignore[operator] # must_end_v1 or _v2
    except ApiError as error:
        return error.code


# By state: an abort of the epoch before, of this epoch; a commit of the epoch before, of this one.
V2 = {
    EMPTY: (FENCED, ENDS, FENCED, WRONG_STATE),
    ONGOING: (FENCED, ENDS, FENCED, ENDS),
    PREPARE_COMMIT: (CONCURRENT, CONCURRENT, CONCURRENT, CONCURRENT),
    PREPARE_ABORT: (CONCURRENT, CONCURRENT, CONCURRENT, CONCURRENT),
    COMPLETE_COMMIT: (WRONG_STATE, ENDS, NOTHING, WRONG_STATE),
    COMPLETE_ABORT: (NOTHING, ENDS, WRONG_STATE, WRONG_STATE),
}
V1 = {
    EMPTY: (FENCED, WRONG_STATE, FENCED, WRONG_STATE),
    ONGOING: (FENCED, ENDS, FENCED, ENDS),
    PREPARE_COMMIT: (FENCED, CONCURRENT, FENCED, CONCURRENT),
    PREPARE_ABORT: (FENCED, CONCURRENT, FENCED, CONCURRENT),
    COMPLETE_COMMIT: (FENCED, WRONG_STATE, FENCED, NOTHING),
    COMPLETE_ABORT: (FENCED, NOTHING, FENCED, WRONG_STATE),
}


@pytest.mark.parametrize("state", V2)
@pytest.mark.parametrize(("end", "table"), [(must_end_v1, V1), (must_end_v2, V2)])
def test_each_state_has_an_answer(
    end: object, table: dict[TransactionState, tuple[object, ...]], state: TransactionState
) -> None:
    known = transaction(state)
    answers = tuple(
        answer(end, known, epoch, commit=commit)
        for commit in (False, True)
        for epoch in (EPOCH - 1, EPOCH)
    )
    assert answers == table[state]


@pytest.mark.parametrize("state", V2)
@pytest.mark.parametrize("end", [must_end_v1, must_end_v2])
def test_a_newer_epoch_or_another_producer_is_refused(end: object, state: TransactionState) -> None:
    known = transaction(state)
    is_busy = end is must_end_v2 and state in (PREPARE_COMMIT, PREPARE_ABORT)
    assert answer(end, known, EPOCH + 1, commit=True) is (CONCURRENT if is_busy else FENCED)
    assert answer(end, known, EPOCH, commit=True, pid=8) is (CONCURRENT if is_busy else MAPPING)


def test_version_1_keeps_the_epoch() -> None:
    prepared = prepare(
        transaction(ONGOING), commit=True, client_version=0, next_producer_id=-1, now_ms=NOW_MS
    )
    assert (prepared.state, prepared.producer_epoch) == (PREPARE_COMMIT, EPOCH)
    done = complete(prepared, NOW_MS + 1)
    assert (done.state, done.producer_epoch, done.partitions) == (
        COMPLETE_COMMIT,
        EPOCH,
        frozenset(),
    )


def test_version_2_raises_the_epoch_with_each_transaction() -> None:
    prepared = prepare(
        transaction(ONGOING), commit=False, client_version=2, next_producer_id=-1, now_ms=NOW_MS
    )
    assert (prepared.state, prepared.producer_epoch) == (PREPARE_ABORT, EPOCH + 1)
    assert prepared.partitions == {("orders", 0)}
    assert producer_after(prepared) == (7, EPOCH + 1)
    assert complete(prepared, NOW_MS).state is COMPLETE_ABORT


def test_an_abort_without_a_transaction_counts_as_begun_now() -> None:
    prepared = prepare(
        transaction(EMPTY, start_ms=-1),
        commit=False,
        client_version=2,
        next_producer_id=-1,
        now_ms=NOW_MS,
    )
    assert prepared.start_ms == NOW_MS


def test_the_last_epoch_is_followed_by_a_new_producer_id() -> None:
    known = transaction(ONGOING, producer_epoch=MAX_EPOCH - 1)
    prepared = prepare(known, commit=True, client_version=2, next_producer_id=99, now_ms=NOW_MS)
    assert (prepared.producer_id, prepared.producer_epoch) == (7, MAX_EPOCH)
    assert producer_after(prepared) == (99, 0)
    done = complete(prepared, NOW_MS)
    assert (done.producer_id, done.producer_epoch) == (99, 0)
    assert (done.previous_producer_id, done.next_producer_id) == (7, -1)
    # The producer did not get the answer and repeats its request with the old id.
    assert answer(must_end_v2, done, MAX_EPOCH - 1, commit=True) is NOTHING
    assert answer(must_end_v2, done, MAX_EPOCH - 1, commit=False) is WRONG_STATE
    assert answer(must_end_v2, done, MAX_EPOCH - 2, commit=True) is MAPPING


@pytest.mark.parametrize(("version", "client_version"), [(0, 0), (1, 0), (2, 2)])
def test_fencing_aborts_with_a_new_epoch(version: int, client_version: int) -> None:
    prepared = prepare_fence(
        transaction(ONGOING), transaction_version=version, next_producer_id=-1, now_ms=NOW_MS
    )
    assert (prepared.state, prepared.producer_epoch) == (PREPARE_ABORT, EPOCH + 1)
    assert prepared.client_version == client_version
    assert prepared.start_ms == 500


def test_a_producer_of_the_last_epoch_can_be_fenced() -> None:
    known = transaction(ONGOING, producer_epoch=MAX_EPOCH)
    prepared = prepare_fence(known, transaction_version=2, next_producer_id=99, now_ms=NOW_MS)
    assert prepared.producer_epoch == MAX_EPOCH
    assert producer_after(prepared) == (99, 0)
