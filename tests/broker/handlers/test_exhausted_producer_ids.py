"""A transaction that uses up the epochs of its producer id gets a new producer id."""

from odradek.coordinator.metadata.producer_ids import BLOCK_SIZE
from odradek.protocol.errors import ErrorCode
from tests.support.transactions import Transactions

NOT_SYNCED_YET = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def use_up_the_block(rig: Transactions) -> int:
    """The next producer id begins a new block. Returns that id."""
    ids = rig.broker.controller.producer_ids
    while (taken := ids.take(0) + 1) % BLOCK_SIZE:
        pass
    return taken


async def test_an_end_waits_until_the_block_of_the_new_id_is_synced(rig: Transactions) -> None:
    one = rig.producer()
    await one.start()
    old = one.current = rig.exhaust("shop")
    await one.begin()
    first_of_block = use_up_the_block(rig)
    end_offset = rig.state_log.log_end_offset
    assert await one.end() is NOT_SYNCED_YET
    assert rig.state_log.log_end_offset == end_offset  # the id is in no record
    await rig.broker.metadata_log.sync()
    assert await one.end() is ErrorCode.NONE
    assert one.current.producer_id > first_of_block > old.producer_id
    assert one.current.epoch == 0
    await one.begin()


async def test_an_abort_by_timeout_waits_for_it_too(rig: Transactions) -> None:
    one = rig.producer()
    await one.start()
    one.current = rig.exhaust("shop")
    await one.begin()
    use_up_the_block(rig)
    rig.wait(70_001)
    assert rig.known("shop").state.client_name == "Ongoing"
    await rig.broker.metadata_log.sync()
    rig.wait(10_001)
    assert rig.known("shop").state.client_name == "CompleteAbort"


async def test_the_new_id_is_kept_until_the_markers_are_written(rig: Transactions) -> None:
    """Records of transaction.version 0 do not have it."""
    await rig.finalize(0)
    one = rig.producer()
    await one.start()
    one.current = rig.exhaust("shop")
    await one.begin()
    rig.hold_markers()
    assert await one.end() is ErrorCode.NONE
    rig.release_markers()
    known = rig.known("shop")
    assert (known.producer_id, known.producer_epoch) == one.current
    await one.begin()
