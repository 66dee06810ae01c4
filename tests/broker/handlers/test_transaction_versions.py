"""transaction.version and the verification of partitions change while transactions are open."""

import pytest

from odradek.coordinator.runtime.producer import ProducerIdAndEpoch
from odradek.coordinator.transactions.completion import COMPLETE_RECORD_MS
from odradek.protocol.batch_header import read_header
from odradek.protocol.errors import ErrorCode
from odradek.storage.log import PartitionLog
from tests.support.config_requests import alter_configs_request
from tests.support.log_box import records_from
from tests.support.transactions import Transactions

NONE = ErrorCode.NONE
BROKER_RESOURCE = 4
VERIFICATION = "transaction.partition.verification.enable"


async def verify_old_producers(rig: Transactions, value: str) -> None:
    request = alter_configs_request(BROKER_RESOURCE, "", {VERIFICATION: value})
    answer = await rig.ask(request, 1)
    assert answer.responses[0].error_code == NONE


def value_versions(rig: Transactions, start_offset: int) -> list[int]:
    """The versions of the transactions' records from an offset on."""
    records = records_from(rig.state_log, start_offset)
    return [int.from_bytes((record.value or b"")[:2], "big") for record in records]


def marker_epochs(log: PartitionLog) -> list[int]:
    headers = [read_header(batch) for batch in log.batches(0)]
    return [header.producer_epoch for header in headers if header.is_control]


# -- transaction.version ---------------------------------------------------------------------------


async def test_an_open_transaction_of_version_1_survives_the_upgrade(rig: Transactions) -> None:
    await rig.finalize(1)
    one = rig.producer(is_v2=False)
    await one.start()
    await one.begin()
    await rig.finalize(2)
    assert await one.write(1) is NONE
    assert await one.end() is NONE
    assert marker_epochs(rig.log()) == [0]
    two = rig.producer(is_v2=True)
    assert await two.start(one.current) is NONE
    await two.begin()
    assert await two.end() is NONE
    assert two.current.epoch == 2
    assert marker_epochs(rig.log()) == [0, 2]


async def test_an_open_transaction_of_version_2_survives_the_downgrade(rig: Transactions) -> None:
    one = rig.producer(is_v2=True)
    await one.start()
    await one.begin()
    await rig.finalize(1)
    assert await one.write(1) is NONE
    assert await one.write(0, 1) is NONE
    assert await one.end() is NONE
    assert marker_epochs(rig.log()) == marker_epochs(rig.log(1)) == [1]
    two = rig.producer(is_v2=False)
    assert await two.start(one.current) is NONE
    await two.begin()
    assert await two.end() is NONE
    assert marker_epochs(rig.log()) == [1, 2]


@pytest.mark.parametrize(("version", "epoch"), [(0, -1), (1, -1), (2, 0)])
async def test_a_transaction_is_fenced_by_the_version_of_now(
    rig: Transactions, version: int, epoch: int
) -> None:
    one = rig.producer(is_v2=True)
    await one.start()
    await one.begin()
    if version < 2:
        await rig.finalize(version)
    assert await rig.producer().start() is ErrorCode.CONCURRENT_TRANSACTIONS
    assert marker_epochs(rig.log()) == [1]
    assert rig.table.last_epoch("shop") == epoch
    two = rig.producer()
    assert await two.start() is NONE
    assert two.current.epoch == 2


async def test_records_have_the_format_of_the_version(rig: Transactions) -> None:
    found = {}
    for version in (0, 1, 2):
        await rig.finalize(version)
        start_offset = rig.state_log.log_end_offset
        one = rig.producer(f"shop-{version}", is_v2=version == 2)
        await one.start()
        await one.begin()
        assert rig.known(f"shop-{version}").client_version == (2 if version == 2 else 0)
        await one.end()
        rig.wait(COMPLETE_RECORD_MS)
        found[version] = value_versions(rig, start_offset)
    assert found == {0: [0] * 4, 1: [1] * 4, 2: [1] * 4}


async def test_the_last_epoch_gets_a_new_producer_id_in_any_version(rig: Transactions) -> None:
    one = rig.producer(is_v2=True)
    await one.start()
    old = one.current = rig.exhaust("shop")
    await one.begin()
    await rig.finalize(0)  # its records do not have the next producer id
    assert await one.end() is NONE
    assert one.current.producer_id > old.producer_id
    known = rig.known("shop")
    assert one.current == ProducerIdAndEpoch(known.producer_id, known.producer_epoch)
    await one.begin()


# -- transaction.partition.verification.enable -----------------------------------------------------


async def test_old_producers_are_trusted_while_verification_is_off(rig: Transactions) -> None:
    one = rig.producer(is_v2=False)
    await one.start()
    assert await one.write() is ErrorCode.INVALID_TXN_STATE
    await verify_old_producers(rig, "false")
    assert await one.write() is NONE
    assert await one.commit_offset(5) is NONE
    assert rig.known("shop").state.client_name == "Empty"
    await verify_old_producers(rig, "true")
    assert await one.write(1) is NONE  # the log has a transaction of it open
    assert await one.write(0, 1) is ErrorCode.INVALID_TXN_STATE
    await one.begin(2)
    assert await one.end() is NONE
    assert rig.log(2).last_stable_offset == 2
    assert rig.log().last_stable_offset == 0  # the coordinator does not know of it


async def test_partitions_are_added_for_new_producers_while_it_is_off(rig: Transactions) -> None:
    await verify_old_producers(rig, "false")
    one = rig.producer(is_v2=True)
    await one.start()
    await one.begin()
    assert await one.commit_offset(5) is NONE
    assert rig.known("shop").partitions == {("t", 0), ("__consumer_offsets", 0)}
    assert await one.end() is NONE
    assert rig.log().last_stable_offset == 2
    assert await rig.committed(0, stable=True) == [(5, 0)]
