"""WriteTxnMarkers answers for each partition of each marker."""

import pytest

from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.write_txn_markers import (
    WriteTxnMarkersMarker,
    WriteTxnMarkersRequest,
    WriteTxnMarkersTopic,
)
from odradek.storage.log import PartitionLog
from tests.support.transactions import TOPIC, Transactions

NONE, UNKNOWN = ErrorCode.NONE, ErrorCode.UNKNOWN_SERVER_ERROR
MISSING = 7  # a partition


def marker(producer_id: int = 7, epoch: int = 0) -> WriteTxnMarkersMarker:
    return WriteTxnMarkersMarker(
        producer_id=producer_id,
        producer_epoch=epoch,
        transaction_result=False,
        topics=[WriteTxnMarkersTopic(name=TOPIC, partition_indexes=[0, MISSING, 1])],
        coordinator_epoch=0,
    )


async def codes(rig: Transactions, *markers: WriteTxnMarkersMarker) -> list[list[int]]:
    answer = await rig.ask(WriteTxnMarkersRequest(markers=list(markers)), 1)
    return [[each.error_code for each in one.topics[0].partitions] for one in answer.markers]


@pytest.mark.parametrize(("producer_id", "epoch"), [(-1, 0), (7, -1), (-1, -1)])
async def test_no_marker_is_written_if_one_is_of_no_producer(
    rig: Transactions, producer_id: int, epoch: int
) -> None:
    assert await codes(rig, marker(), marker(producer_id, epoch)) == [[UNKNOWN] * 3] * 2
    assert rig.log().log_end_offset == 0


async def test_a_marker_whose_sync_fails_is_an_error(rig: Transactions) -> None:
    lost = rig.log(1)

    async def flush(log: PartitionLog, _up_to_offset: int | None = None) -> None:
        if log is lost:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "the sync failed")

    rig.broker.log_syncs.flush = flush  # type: ignore[method-assign] # instead of a thread
    for log in (rig.log(), lost):
        log.update_config(log.config.replace(flush_messages=1))
    missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert await codes(rig, marker()) == [[NONE, missing, ErrorCode.KAFKA_STORAGE_ERROR]]
