"""Transactions that are older than their timeout are aborted, and their producers fenced."""

from pathlib import Path

import pytest

from odradek.coordinator.runtime.producer import ProducerIdAndEpoch
from odradek.coordinator.runtime.timers import Now
from odradek.protocol.errors import ErrorCode
from tests.support.transactions import (
    TIMEOUT_MS,
    WALL_MS,
    Producer,
    Transactions,
    transactions_in,
)

CHECKED_EVERY_MS = 10_000
DAY_MS = 86_400_000
NONE = ErrorCode.NONE
EPOCH, FENCED = ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED
WRONG_STATE = ErrorCode.INVALID_TXN_STATE
ABORTABLE = ErrorCode.TRANSACTION_ABORTABLE


def state_of(rig: Transactions, transactional_id: str = "shop") -> str:
    return rig.known(transactional_id).state.client_name


async def opened(rig: Transactions, *, is_v2: bool) -> Producer:
    """A producer with a transaction in partition 0."""
    await rig.finalize(2 if is_v2 else 1)
    one = rig.producer(is_v2=is_v2)
    await one.start()
    await one.begin()
    return one


async def timed_out(rig: Transactions, *, is_v2: bool) -> Producer:
    """A producer whose transaction was aborted."""
    one = await opened(rig, is_v2=is_v2)
    rig.wait(TIMEOUT_MS + CHECKED_EVERY_MS)
    assert state_of(rig) == "CompleteAbort"
    return one


@pytest.mark.parametrize("is_v2", [True, False])
async def test_a_transaction_is_aborted_at_the_first_check_after_its_timeout(
    rig: Transactions, is_v2: bool
) -> None:
    one = await opened(rig, is_v2=is_v2)
    rig.wait(TIMEOUT_MS)
    assert state_of(rig) == "Ongoing"
    rig.wait(CHECKED_EVERY_MS - 1)
    assert state_of(rig) == "Ongoing"
    assert rig.log().last_stable_offset == 0
    rig.wait(1)
    assert state_of(rig) == "CompleteAbort"
    assert rig.known("shop").producer_epoch == one.current.epoch + 1
    assert rig.log().last_stable_offset == rig.log().log_end_offset == 2
    (aborted,) = rig.log().segments.active.aborted()
    assert (aborted.first_offset, aborted.last_offset) == (0, 1)


async def test_after_a_timeout_a_producer_of_version_1_is_fenced(rig: Transactions) -> None:
    one = await timed_out(rig, is_v2=False)
    assert [await one.write(1, 0, version=version) for version in (9, 10, 11)] == [EPOCH] * 3
    assert [await one.write(0, 1, version=version) for version in (9, 10, 11)] == [EPOCH] * 3
    adds = [await one.add(1, version=version) for version in (0, 1, 2, 3)]
    assert adds == [EPOCH, EPOCH, FENCED, FENCED]
    assert await one.add_offsets() is FENCED
    assert [await one.commit_offset(5, version=version) for version in (3, 4)] == [EPOCH] * 2
    ends = [await one.end(version=version) for version in (0, 1, 2, 4)]
    assert ends == [EPOCH, EPOCH, FENCED, FENCED]
    starts = [await one.start(one.current, version=version) for version in (3, 4)]
    assert starts == [EPOCH, FENCED]
    assert await one.start() is NONE
    assert one.current.epoch == 2
    await one.begin()


async def test_after_a_timeout_a_producer_of_version_2_must_abort(rig: Transactions) -> None:
    one = await timed_out(rig, is_v2=True)
    assert await one.write(1, 0) is EPOCH
    assert await one.write(0, 1) is EPOCH
    assert await one.commit_offset(5) is EPOCH
    assert await one.end(commit=True) is WRONG_STATE
    old = one.current
    assert await one.end(commit=False) is NONE
    assert one.current == ProducerIdAndEpoch(old.producer_id, old.epoch + 1)
    await one.begin()
    assert await one.end() is NONE


async def test_after_a_timeout_a_producer_of_version_2_may_start_again(rig: Transactions) -> None:
    one = await timed_out(rig, is_v2=True)
    old = one.current
    assert await one.start(old) is NONE  # as if it had repeated the request that raised the epoch
    assert one.current == ProducerIdAndEpoch(old.producer_id, old.epoch + 1)
    assert await one.start(ProducerIdAndEpoch(old.producer_id, old.epoch + 9)) is FENCED


async def test_a_partition_that_was_not_added_is_an_abortable_error(rig: Transactions) -> None:
    one = await opened(rig, is_v2=False)
    errors = [await one.write(0, 1, version=version) for version in (9, 10, 11)]
    assert errors == [WRONG_STATE, WRONG_STATE, ABORTABLE]
    offsets = [await one.commit_offset(5, version=version) for version in (3, 4)]
    assert offsets == [WRONG_STATE, ABORTABLE]


async def test_only_the_transaction_that_is_too_old_is_aborted(rig: Transactions) -> None:
    await opened(rig, is_v2=True)
    rig.wait(TIMEOUT_MS)
    other = rig.producer("other")
    await other.start()
    await other.begin(1)
    rig.wait(CHECKED_EVERY_MS)
    assert (state_of(rig), state_of(rig, "other")) == ("CompleteAbort", "Ongoing")


@pytest.mark.parametrize("checked_before", [True, False])
async def test_a_wall_clock_that_jumps_ahead_aborts_nothing(
    rig: Transactions, checked_before: bool
) -> None:
    await opened(rig, is_v2=True)
    if checked_before:
        rig.wait(CHECKED_EVERY_MS)
    rig.wait(1, wall_ms=DAY_MS)
    rig.wait(TIMEOUT_MS - CHECKED_EVERY_MS - 1)
    assert state_of(rig) == "Ongoing"


async def test_a_wall_clock_that_jumps_back_keeps_nothing(rig: Transactions) -> None:
    await opened(rig, is_v2=True)
    rig.wait(1, wall_ms=-DAY_MS)
    rig.wait(TIMEOUT_MS + CHECKED_EVERY_MS)
    assert state_of(rig) == "CompleteAbort"


async def test_a_transaction_keeps_its_age_over_a_restart(tmp_path: Path) -> None:
    async with transactions_in(tmp_path) as rig:
        await opened(rig, is_v2=True)
    later = Now(WALL_MS + TIMEOUT_MS - CHECKED_EVERY_MS, 5_000_000)  # the timer clock begins anew
    async with transactions_in(tmp_path, now=later) as rig:
        rig.wait(CHECKED_EVERY_MS)
        assert state_of(rig) == "Ongoing"
        rig.wait(CHECKED_EVERY_MS)
        assert state_of(rig) == "CompleteAbort"
        assert rig.log().last_stable_offset == rig.log().log_end_offset


async def test_a_wall_clock_that_jumps_after_a_restart_aborts_nothing(tmp_path: Path) -> None:
    async with transactions_in(tmp_path) as rig:
        await opened(rig, is_v2=True)
    async with transactions_in(tmp_path) as rig:
        rig.wait(1, wall_ms=DAY_MS)
        rig.wait(TIMEOUT_MS - CHECKED_EVERY_MS)
        assert state_of(rig) == "Ongoing"


async def test_a_transaction_that_began_in_the_future_is_as_old_as_the_start(
    tmp_path: Path,
) -> None:
    async with transactions_in(tmp_path) as rig:
        await opened(rig, is_v2=True)
    async with transactions_in(tmp_path, now=Now(WALL_MS - DAY_MS, 0)) as rig:
        rig.wait(TIMEOUT_MS - CHECKED_EVERY_MS)
        assert state_of(rig) == "Ongoing"
        rig.wait(2 * CHECKED_EVERY_MS)
        assert state_of(rig) == "CompleteAbort"
