"""Transactional ids that have been idle for transactional.id.expiration.ms are forgotten."""

import asyncio
import errno
from pathlib import Path

import pytest

from odradek.coordinator.runtime.producer import ProducerIdAndEpoch
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_transactions import DescribeTransactionsRequest
from odradek.protocol.record import Record
from tests.support.faulty_files import FaultyFiles, below
from tests.support.log_box import records_from
from tests.support.transactions import Transactions, transactions_in

EXPIRATION_MS = 7 * 86_400_000
CHECKED_EVERY_MS = 3_600_000
NONE = ErrorCode.NONE


@pytest.fixture
def rig_settings() -> dict[str, str]:
    return {"transaction_two_phase_commit_enable": "true"}


def ids(rig: Transactions) -> set[str]:
    return set(rig.table.by_id)


def tombstones(rig: Transactions) -> list[Record]:
    return [record for record in records_from(rig.state_log) if record.value is None]


def wait_in_steps(rig: Transactions, ms: int) -> None:
    """Let time pass with all the checks for timeouts and expiry that fall into it."""
    for _ in range(ms // CHECKED_EVERY_MS):
        rig.wait(CHECKED_EVERY_MS)


async def test_idle_ids_expire_at_a_check_and_open_ones_do_not(rig: Transactions) -> None:
    for name in ("empty", "committed", "aborted", "open"):
        one = rig.producer(name)
        is_open = name == "open"  # for ever: only two-phase commit has no timeout
        await one.start(is_two_phase=is_open, version=6 if is_open else None)
        if name != "empty":
            await one.begin()
        if name in ("committed", "aborted"):
            await one.end(commit=name == "committed")
    rig.wait(EXPIRATION_MS - 1)
    assert len(ids(rig)) == 4
    rig.wait(CHECKED_EVERY_MS - 1)  # it is time, but the check is not due
    assert len(ids(rig)) == 4
    rig.wait(1)
    assert ids(rig) == {"open"}
    assert len(tombstones(rig)) == 3
    request = DescribeTransactionsRequest(transactional_ids=["empty", "open"])
    answer = await rig.ask(request, 0)
    codes = [state.error_code for state in answer.transaction_states]
    assert codes == [ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, NONE]


async def test_each_use_renews_an_id(rig: Transactions) -> None:
    one = rig.producer()
    await one.start()
    for _ in range(3):
        wait_in_steps(rig, EXPIRATION_MS - CHECKED_EVERY_MS)
        await one.begin()
        await one.end()
    assert ids(rig) == {"shop"}
    wait_in_steps(rig, EXPIRATION_MS)
    assert ids(rig) == set()


async def test_an_expired_id_gets_a_new_producer_id_also_after_a_restart(tmp_path: Path) -> None:
    async with transactions_in(tmp_path) as rig:
        one = rig.producer()
        await one.start()
        old = one.current
        await one.begin()
        await one.end()
        wait_in_steps(rig, EXPIRATION_MS)
        assert await one.write() is ErrorCode.INVALID_PRODUCER_ID_MAPPING
        assert await one.end() is ErrorCode.INVALID_PRODUCER_ID_MAPPING
        now = rig.now
    async with transactions_in(tmp_path, now=now) as rig:
        assert ids(rig) == set()
        one = rig.producer()
        assert await one.start(old) is NONE  # what an unknown id expects is not compared
        assert one.current.producer_id > old.producer_id
        assert one.current.epoch == 0
        await one.begin()
        assert await one.end() is NONE


async def test_an_id_whose_tombstone_cannot_be_written_stays(
    rig: Transactions, files: FaultyFiles
) -> None:
    one = rig.producer()
    await one.start()
    files.fail(below(rig.state_log.directory, "write"), error=errno.ENOSPC)
    wait_in_steps(rig, EXPIRATION_MS)
    assert ids(rig) == {"shop"}
    files.heal()
    await one.begin()
    assert await one.end() is NONE
    files.fail(below(rig.state_log.directory, "write"), error=errno.ENOSPC)
    wait_in_steps(rig, EXPIRATION_MS)
    assert ids(rig) == {"shop"}
    files.heal()
    rig.wait(CHECKED_EVERY_MS)
    assert ids(rig) == set()


@pytest.mark.slow
async def test_many_ids_expire_in_batches_that_the_log_takes(rig: Transactions) -> None:
    names = [f"{number}-".ljust(30_000, "x") for number in range(80)]  # 2.4 MB of keys
    for name in names:
        await rig.producer(name).start()
    assert ids(rig) == set(names)
    wait_in_steps(rig, EXPIRATION_MS)
    assert ids(rig) == set()
    assert sorted(record.key for record in tombstones(rig)) == sorted(
        {record.key for record in records_from(rig.state_log)}
    )


async def test_a_start_that_waits_for_its_producer_id_survives_an_expiry(
    rig: Transactions,
) -> None:
    one = rig.producer()
    await one.start()
    one.current = rig.exhaust("shop")
    ids_of_block = rig.broker.controller.producer_ids
    while (ids_of_block.take(0) + 1) % 1000:
        pass
    starting = asyncio.ensure_future(one.start())  # a new block is being synced
    await asyncio.sleep(0)
    wait_in_steps(rig, EXPIRATION_MS)
    assert ids(rig) == set()
    old = one.current
    assert await starting is NONE
    assert ids(rig) == {"shop"}
    assert one.current.producer_id > old.producer_id
    assert one.current == ProducerIdAndEpoch(rig.known("shop").producer_id, 0)
    await one.begin()
