"""The Complete record of a transaction is written with the next record of its partition.

Nothing waits for it: the decision is in the log, and so are the markers. After a crash before it is
written, the markers are written again.
"""

import errno
from pathlib import Path

import pytest

from odradek.coordinator.transactions.completion import COMPLETE_RECORD_MS, LONGEST_RETRY_MS
from odradek.coordinator.transactions.states import TransactionState
from odradek.protocol.batch_header import read_header
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.list_transactions import ListTransactionsRequest
from odradek.protocol.record import read_records
from odradek.protocol.records.transaction_state import TransactionLogValue
from odradek.storage.log import PartitionLog
from tests.support.faulty_files import FaultyFiles, below
from tests.support.transactions import Producer, Transactions, transactions_in

EMPTY, ONGOING = TransactionState.EMPTY, TransactionState.ONGOING
PREPARED, COMPLETE = TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT
NONE = ErrorCode.NONE


def stored_states(log: PartitionLog) -> list[list[int]]:
    """The states in the log's records, by batch."""
    return [
        [
            TransactionLogValue.decode(record.value, record.value[1], 2).transaction_status
            for record in read_records(batch)
            if record.value is not None
        ]
        for batch in log.batches(0)
    ]


async def committed(rig: Transactions, name: str = "shop") -> Producer:
    """A producer that has committed a transaction."""
    one = rig.producer(name)
    await one.start()
    await one.begin()
    assert await one.end() is NONE
    return one


async def test_it_is_written_with_the_record_that_begins_the_next_transaction(
    rig: Transactions,
) -> None:
    one = await committed(rig)
    assert stored_states(rig.state_log) == [[EMPTY], [ONGOING], [PREPARED]]
    await one.begin()
    assert stored_states(rig.state_log)[3:] == [[COMPLETE, ONGOING]]
    assert rig.known("shop").state is ONGOING


async def test_it_is_written_with_a_record_of_another_id(rig: Transactions) -> None:
    await committed(rig)
    await rig.producer("another").start()
    assert stored_states(rig.state_log)[3:] == [[COMPLETE, EMPTY]]


async def test_it_is_written_alone_if_no_other_record_comes(rig: Transactions) -> None:
    await committed(rig)
    rig.wait(COMPLETE_RECORD_MS - 1)
    assert stored_states(rig.state_log)[3:] == []
    rig.wait(1)
    assert stored_states(rig.state_log)[3:] == [[COMPLETE]]
    rig.wait(COMPLETE_RECORD_MS)
    assert stored_states(rig.state_log)[3:] == [[COMPLETE]]


async def test_it_is_written_when_the_broker_stops(tmp_path: Path) -> None:
    async with transactions_in(tmp_path) as rig:
        await committed(rig)
    async with transactions_in(tmp_path) as rig:
        assert stored_states(rig.state_log)[3:] == [[COMPLETE]]


async def test_until_then_clients_see_that_the_transaction_is_completed(rig: Transactions) -> None:
    await committed(rig)
    assert rig.broker.coordinators.transactions.describe("shop").state is COMPLETE
    listed = await rig.ask(ListTransactionsRequest(state_filters=[], producer_id_filters=[]), 0)
    assert [each.transaction_state for each in listed.transaction_states] == ["CompleteCommit"]


async def test_a_full_disk_delays_it(rig: Transactions, files: FaultyFiles) -> None:
    await committed(rig)
    files.fail(below(rig.state_log.directory, "write"), error=errno.ENOSPC)
    rig.wait(COMPLETE_RECORD_MS)
    assert rig.known("shop").state is COMPLETE
    files.heal()
    rig.wait(LONGEST_RETRY_MS)
    assert stored_states(rig.state_log)[3:] == [[COMPLETE]]


async def test_a_record_that_was_refused_with_it_can_be_repeated(
    rig: Transactions, files: FaultyFiles
) -> None:
    one = await committed(rig)
    files.fail(below(rig.state_log.directory, "write"), error=errno.ENOSPC, lasting=False)
    assert await one.write() is ErrorCode.NOT_ENOUGH_REPLICAS
    assert await one.write() is NONE
    assert stored_states(rig.state_log)[3:] == [[COMPLETE, ONGOING]]


async def test_more_records_than_a_batch_may_hold_get_several(rig: Transactions) -> None:
    log = rig.state_log
    log.update_config(log.config.replace(max_message_bytes=700))
    rig.hold_markers()
    for number in range(4):
        one = rig.producer(f"{number}" * 100)
        await one.start()
        assert await one.add(0) is NONE
        assert await one.end() is NONE
    rig.release_markers()
    before = log.log_end_offset
    await rig.producer("another").start()
    batches = [read_header(batch) for batch in log.batches(before)]
    assert sum(header.record_count for header in batches) == 5
    assert len(batches) > 1


async def test_a_transaction_is_completed_although_its_first_try_fails(rig: Transactions) -> None:
    one = rig.producer()
    await one.start()
    await one.begin()

    def find_log(_topic: str, _partition: int) -> PartitionLog:
        raise RuntimeError("unexpected")

    rig.broker.coordinators.transactions.markers.find_log = find_log
    with pytest.raises(RuntimeError):
        await one.end()
    assert rig.known("shop").state is PREPARED
    rig.release_markers()
    assert rig.known("shop").state is COMPLETE
    assert rig.log().last_stable_offset == rig.log().log_end_offset == 2


async def test_nothing_is_due_after_the_coordinator_has_closed(rig: Transactions) -> None:
    await committed(rig)
    coordinator = rig.broker.coordinators.transactions
    coordinator.close()
    assert coordinator.alarm.deadlines.next_deadline_ms is None
