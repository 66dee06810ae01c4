"""Writes of a transaction that the disk refuses or loses: what clients get, and that retries work.

A full disk refuses a write, and takes the next one. A failed fsync takes the directory offline.
"""

import asyncio
import errno
from collections.abc import AsyncIterator, Awaitable, Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from odradek.coordinator.java.java_hash import partition_of
from odradek.coordinator.metadata.topic_creation import NewTopic
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from odradek.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from odradek.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from odradek.storage.log import PartitionLog
from odradek.storage.topic_names import TRANSACTION_STATE_TOPIC
from tests.support.broker_in_loop import BrokerInLoop, broker_in_loop
from tests.support.faulty_files import FaultyFiles, below
from tests.support.transactions import Producer, Transactions, transactions_in

NONE = ErrorCode.NONE
NOT_COORDINATOR = ErrorCode.NOT_COORDINATOR
RETRY_MS = 100
PARTITIONS = 6


# -- a full disk -----------------------------------------------------------------------------------


Step = Callable[[Producer], Awaitable[ErrorCode]]

# The requests of one transaction; by write: what the client gets if that write is refused.
STORAGE, LATER = ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_ENOUGH_REPLICAS
STEPS_OF_V2: dict[str, tuple[Step, tuple[ErrorCode, ...]]] = {
    "start": (lambda one: one.start(), (NOT_COORDINATOR,)),
    "first write": (lambda one: one.write(0, 0), (LATER, STORAGE)),
    "next write": (lambda one: one.write(1, 0), (STORAGE,)),
    "other write": (lambda one: one.write(0, 1), (LATER, STORAGE)),
    "offsets": (lambda one: one.commit_offset(5), (NOT_COORDINATOR, NOT_COORDINATOR)),
    # Prepare; the markers of three partitions. Once it is prepared, it is decided.
    "end": (lambda one: one.end(), (NOT_COORDINATOR, NONE, NONE, NONE)),
}
STEPS_OF_V1: dict[str, tuple[Step, tuple[ErrorCode, ...]]] = {
    "start": (lambda one: one.start(), (NOT_COORDINATOR,)),
    "add": (lambda one: one.add(0, 1), (NOT_COORDINATOR,)),
    "first write": (lambda one: one.write(0, 0), (STORAGE,)),
    "other write": (lambda one: one.write(0, 1), (STORAGE,)),
    "add offsets": (lambda one: one.add_offsets(), (NOT_COORDINATOR,)),
    "offsets": (lambda one: one.commit_offset(5), (NOT_COORDINATOR,)),
    "end": (lambda one: one.end(), (NOT_COORDINATOR, NONE, NONE, NONE)),
}
CASES = [
    pytest.param(is_v2, name, number, id=f"v{1 + is_v2}, {name}, write {number}")
    for is_v2, steps in ((True, STEPS_OF_V2), (False, STEPS_OF_V1))
    for name, (_, errors) in steps.items()
    for number in range(len(errors))
]


def is_write(kind: str, _path: Path) -> bool:
    return kind == "write"


@pytest.mark.parametrize(("is_v2", "failing", "number"), CASES)
async def test_a_request_that_a_full_disk_refused_can_be_repeated(
    rig: Transactions, files: FaultyFiles, is_v2: bool, failing: str, number: int
) -> None:
    await rig.finalize(2 if is_v2 else 1)
    await rig.producer("another").start()  # it takes a block of producer ids
    one = rig.producer(is_v2=is_v2)
    for name, (step, errors) in (STEPS_OF_V2 if is_v2 else STEPS_OF_V1).items():
        if name == failing:
            await rig.broker.metadata_log.sync()
            before = dict(rig.table.by_id)
            files.fail(is_write, at=number, error=errno.ENOSPC, lasting=False)
            assert await step(one) is errors[number]
            files.heal()
            if errors[number] is not NONE and number == 0:
                assert rig.table.by_id == before
            if errors[number] is NONE:
                rig.wait(RETRY_MS)
                break
        with files.counting() as seen:
            assert await step(one) is NONE
        writes = [path for kind, path in seen if kind == "write"]
        if name != failing:
            assert len(writes) == len(errors), writes
    assert rig.known("shop").state.client_name == "CompleteCommit"
    for partition in (0, 1):
        log = rig.log(partition)
        assert log.last_stable_offset == log.log_end_offset
        assert log.segments.active.aborted() == []
    assert await rig.committed(0, stable=True) == [(5, 0)]


@pytest.mark.parametrize("is_v2", [True, False])
async def test_a_transaction_waits_for_its_marker(
    rig: Transactions, files: FaultyFiles, is_v2: bool
) -> None:
    await rig.finalize(2 if is_v2 else 1)
    one = rig.producer(is_v2=is_v2)
    await one.start()
    await one.begin()
    files.fail(below(rig.log().directory, "write"), error=errno.ENOSPC)
    old = one.current
    assert await one.end() is NONE
    rig.wait(RETRY_MS)
    assert rig.known("shop").state.client_name == "PrepareCommit"
    assert rig.log().last_stable_offset == 0
    concurrent = ErrorCode.CONCURRENT_TRANSACTIONS
    assert await one.add(1) is concurrent
    assert await one.end() is concurrent
    assert await rig.producer(is_v2=is_v2).start() is concurrent
    if is_v2:
        one.current = old  # its answer was lost, and it repeats the request
        assert await one.end() is concurrent
    files.heal()
    rig.wait(2 * RETRY_MS)  # each delay is twice the one before
    assert await one.end() is NONE
    assert rig.log().last_stable_offset == rig.log().log_end_offset == 2


async def test_a_prepared_transaction_is_completed_after_a_restart(
    tmp_path: Path, files: FaultyFiles
) -> None:
    async with transactions_in(tmp_path, files=files) as rig:
        one = rig.producer()
        await one.start()
        await one.begin()
        await one.commit_offset(5)
        files.fail(below(rig.log().directory, "write"), error=errno.ENOSPC)
        assert await one.end() is NONE
        assert await rig.committed(0, stable=True) == [(5, 0)]  # the marker of this one is there
        files.heal()
    async with transactions_in(tmp_path) as rig:
        assert rig.known("shop").state.client_name == "PrepareCommit"  # there may be thousands
        rig.wait(0)
        assert rig.known("shop").state.client_name == "CompleteCommit"
        assert rig.log().last_stable_offset == rig.log().log_end_offset == 2
        assert await rig.committed(0, stable=True) == [(5, 0)]


# -- a failed fsync --------------------------------------------------------------------------------


class Served:
    """A broker with two data directories, and a transactional id in each."""

    def __init__(self, served: BrokerInLoop, files: FaultyFiles, failing: Path) -> None:
        self._served = served
        self._files = files
        self._failing = failing
        self.well, self.hurt = self._id_in("well"), self._id_in("hurt")

    def _id_in(self, place: str) -> str:
        """An id whose partition is in the directory that will fail ("hurt"), or in the other."""
        manager = self._served.broker.log_manager
        for name in (f"{place}-{number}" for number in count()):
            log = manager.get(TRANSACTION_STATE_TOPIC, partition_of(name, PARTITIONS))
            if log.directory.is_relative_to(self._failing) is (place == "hurt"):
                return name
        raise AssertionError

    def fail(self) -> None:
        self._files.fail(below(self._failing, "fsync"))

    async def ask(self, request: Any, response: Any, version: int) -> Any:
        return await self._served.ask(request, response, version)

    async def start(self, name: str) -> tuple[int, int, int]:
        request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000)
        answer = await self.ask(request, InitProducerIdResponse, 4)
        return answer.error_code, answer.producer_id, answer.producer_epoch

    async def add(self, name: str, producer_id: int, epoch: int, version: int) -> int:
        topics = [AddPartitionsToTxnTopic(name="t", partitions=[0])]
        if version < 4:
            request = AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=name,
                v3_and_below_producer_id=producer_id,
                v3_and_below_producer_epoch=epoch,
                v3_and_below_topics=topics,
            )
        else:
            transaction = AddPartitionsToTxnTransaction(
                transactional_id=name,
                producer_id=producer_id,
                producer_epoch=epoch,
                verify_only=False,
                topics=topics,
            )
            request = AddPartitionsToTxnRequest(transactions=[transaction])
        answer = await self.ask(request, AddPartitionsToTxnResponse, version)
        found = answer.results_by_topic_v3_and_below
        if version >= 4:
            found = answer.results_by_transaction[0].topic_results
        code: int = found[0].results_by_partition[0].partition_error_code
        return code

    async def add_offsets(self, name: str, producer_id: int, epoch: int) -> int:
        request = AddOffsetsToTxnRequest(
            transactional_id=name, producer_id=producer_id, producer_epoch=epoch, group_id="g"
        )
        code: int = (await self.ask(request, AddOffsetsToTxnResponse, 3)).error_code
        return code

    async def end(self, name: str, producer_id: int, epoch: int) -> int:
        request = EndTxnRequest(
            transactional_id=name, producer_id=producer_id, producer_epoch=epoch, committed=True
        )
        code: int = (await self.ask(request, EndTxnResponse, 5)).error_code
        return code


@pytest.fixture
async def served(tmp_path: Path, files: FaultyFiles) -> AsyncIterator[Served]:
    settings = {
        "log_flush_interval_messages": "1",
        "transaction_state_log_num_partitions": str(PARTITIONS),
        "offsets_topic_num_partitions": "1",
    }
    directories = [tmp_path / "a", tmp_path / "b"]  # the metadata log is in the first
    async with broker_in_loop(directories, files, **settings) as broker:
        await broker.broker.admin.topics.create([NewTopic(name="t")])
        for name in ("__consumer_offsets", TRANSACTION_STATE_TOPIC):
            await broker.broker.admin.topics.ensure_internal_topic(name)
        yield Served(broker, files, directories[1])
        files.heal()


async def test_a_start_whose_record_is_lost(served: Served) -> None:
    served.fail()
    assert await served.start(served.hurt) == (NOT_COORDINATOR, -1, -1)
    assert (await served.start(served.well))[0] == NONE


@pytest.mark.parametrize("version", [0, 3, 4, 5])
async def test_partitions_whose_record_is_lost(served: Served, version: int) -> None:
    _, *hurt = await served.start(served.hurt)
    _, *well = await served.start(served.well)
    served.fail()
    assert await served.add(served.hurt, *hurt, version=version) == NOT_COORDINATOR
    assert await served.add(served.well, *well, version=version) == NONE


async def test_offsets_whose_record_is_lost(served: Served) -> None:
    _, *hurt = await served.start(served.hurt)
    served.fail()
    assert await served.add_offsets(served.hurt, *hurt) == NOT_COORDINATOR


async def test_an_end_whose_record_is_lost(served: Served) -> None:
    _, *hurt = await served.start(served.hurt)
    assert await served.add(served.hurt, *hurt, version=3) == NONE
    served.fail()
    assert await served.end(served.hurt, *hurt) == NOT_COORDINATOR
    assert (await served.start(served.hurt))[0] == NOT_COORDINATOR


class Gate:
    """Holds the syncs of the transactions' log, and may let them fail."""

    def __init__(self, rig: Transactions) -> None:
        self._rig = rig
        self._is_open = asyncio.Event()
        self.fails = False
        log = rig.state_log
        log.update_config(log.config.replace(flush_messages=1))
        rig.broker.log_syncs.flush = self._flush  # type: ignore[method-assign] # instead of a thread

    async def _flush(self, log: PartitionLog, up_to_offset: int | None = None) -> None:
        await self._is_open.wait()
        if self.fails:
            raise ApiError(STORAGE, "the sync failed")
        log.flush(0)

    async def opens(self, waiting: "asyncio.Future[ErrorCode]") -> ErrorCode:
        """The answer to a request that waits until the gate is opened."""
        for _ in range(3):
            await asyncio.sleep(0)
        assert not waiting.done()
        assert self._rig.known("shop").state.client_name == "Ongoing"
        self._is_open.set()
        return await waiting


async def started(rig: Transactions) -> Producer:
    one = rig.producer()
    await one.start()
    return one


@pytest.mark.parametrize("fails", [True, False])
async def test_records_wait_until_their_partition_is_in_the_transaction(
    rig: Transactions, fails: bool
) -> None:
    one = await started(rig)
    gate = Gate(rig)
    gate.fails = fails
    writing = asyncio.ensure_future(one.write())
    await asyncio.sleep(0)
    assert rig.log().log_end_offset == 0
    assert await gate.opens(writing) is (LATER if fails else NONE)
    assert rig.log().log_end_offset == (0 if fails else 1)


@pytest.mark.parametrize("fails", [True, False])
async def test_offsets_wait_until_their_group_is_in_the_transaction(
    rig: Transactions, fails: bool
) -> None:
    one = await started(rig)
    gate = Gate(rig)
    gate.fails = fails
    committing = asyncio.ensure_future(one.commit_offset(5))
    await asyncio.sleep(0)
    log = rig.broker.log_manager.get("__consumer_offsets", 0)
    assert log.log_end_offset == 0
    assert await gate.opens(committing) is (NOT_COORDINATOR if fails else NONE)
    assert log.log_end_offset == (0 if fails else 1)


async def test_markers_wait_until_the_decision_is_synced(rig: Transactions) -> None:
    one = rig.producer()
    await one.start()
    await one.begin()
    log = rig.state_log
    log.update_config(log.config.replace(flush_messages=1))
    log.on_flush_due = lambda _: None
    assert await one.end() is NONE
    rig.wait(RETRY_MS)
    assert rig.known("shop").state.client_name == "PrepareCommit"
    assert rig.log().log_end_offset == 1
    log.flush(rig.now.wall_ms)
    rig.wait(2)
    assert rig.known("shop").state.client_name == "CompleteCommit"
    assert rig.log().last_stable_offset == 2


async def test_a_marker_whose_log_goes_offline_is_written_again(rig: Transactions) -> None:
    one = rig.producer()
    await one.start()
    await one.begin()
    log = rig.log()
    log.update_config(log.config.replace(flush_messages=1))
    log.on_flush_due = lambda _: None
    assert await one.end() is NONE
    assert rig.known("shop").state.client_name == "PrepareCommit"
    rig.wait(2)
    log.take_offline("its sync failed")
    for _ in range(3):  # until then, it looks often whether the marker is synced
        rig.wait(2)
    deadlines = rig.broker.coordinators.transactions.alarm.deadlines
    assert deadlines.next_deadline_ms is not None
    assert deadlines.next_deadline_ms - rig.now.timer_ms > RETRY_MS // 2
    rig.broker.coordinators.transactions.markers.find_log = lambda topic, partition: rig.log(1)
    rig.wait(RETRY_MS)
    assert rig.known("shop").state.client_name == "CompleteCommit"
    assert rig.log(1).log_end_offset == 1  # it stands for the log that is open again
