"""A producer of version 2 writes again while its last transaction is still being completed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from odradek.protocol.errors import ErrorCode
from tests.support.log_box import values_from
from tests.support.transactions import Producer, Transactions, transactions_in

NONE, CONCURRENT = ErrorCode.NONE, ErrorCode.CONCURRENT_TRANSACTIONS
LONG_MS, SHORT_MS = "20000", "10"


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Transactions]:
    async with broker(tmp_path, LONG_MS) as rig:
        yield rig


def broker(path: Path, longest_ms: str) -> AbstractAsyncContextManager[Transactions]:
    """A broker that retries for that long, each millisecond."""
    return transactions_in(
        path,
        add_partitions_to_txn_retry_backoff_ms="1",
        add_partitions_to_txn_retry_backoff_max_ms=longest_ms,
    )


async def ending(rig: Transactions) -> Producer:
    """A producer whose transaction waits for its marker in partition 0."""
    one = rig.producer()
    await one.start()
    await one.begin()
    rig.hold_markers()
    assert await one.end() is NONE
    return one


async def test_the_write_waits_until_the_transaction_has_ended(
    rig: Transactions,
) -> None:
    one = await ending(rig)
    writing = asyncio.ensure_future(one.write(0, 1))
    for _ in range(3):
        await asyncio.sleep(0.001)
    assert not writing.done()
    rig.release_markers()
    assert await writing is NONE
    assert values_from(rig.log(1)) == [b"value"]
    assert rig.known("shop").partitions == {("t", 1)}
    assert await one.end() is NONE


async def test_it_is_refused_when_that_takes_too_long(tmp_path: Path) -> None:
    async with broker(tmp_path, SHORT_MS) as rig:
        one = await ending(rig)
        assert await one.write(0, 1) is CONCURRENT
        assert rig.log(1).log_end_offset == 0


async def test_the_records_of_a_request_that_waits_are_copied(
    rig: Transactions,
) -> None:
    one = await ending(rig)
    buffer = bytearray(one.batch(0))
    writing = asyncio.ensure_future(one.send(memoryview(buffer), 1))
    await asyncio.sleep(0.001)
    buffer[:] = bytes(len(buffer))  # the next request is received into it
    rig.release_markers()
    assert await writing is NONE
    assert values_from(rig.log(1)) == [b"value"]


async def test_an_id_that_is_fenced_meanwhile_is_refused(
    rig: Transactions,
) -> None:
    one = await ending(rig)
    writing = asyncio.ensure_future(one.write(0, 1))
    await asyncio.sleep(0.001)
    rig.release_markers()
    assert await rig.producer().start() is NONE
    assert await writing is ErrorCode.INVALID_PRODUCER_EPOCH


async def test_a_producer_of_version_1_is_answered_at_once(
    rig: Transactions,
) -> None:
    await rig.finalize(1)
    one = await ending(rig)
    assert await one.write(0, 1, version=11) is ErrorCode.NOT_ENOUGH_REPLICAS


async def test_offsets_are_answered_at_once(rig: Transactions) -> None:
    one = await ending(rig)
    assert await one.commit_offset(5) is CONCURRENT
