"""Producer ids: never the same one twice."""

import pytest

from odradek.coordinator.metadata.producer_ids import (
    BLOCK_SIZE,
    MAX_PRODUCER_ID,
    ProducerIds,
    take_block,
)
from odradek.coordinator.runtime.outcome import JournalRecord, Outcome
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.records.cluster_metadata import ProducerIdsRecord
from tests.support.metadata import NODE, Metadata


def ids_of(metadata: Metadata) -> ProducerIds:
    return ProducerIds(lambda now_ms: metadata.commit(take_block(metadata.state, NODE)))


def test_ids_count_up_and_a_block_is_in_the_log_before_its_first_id_leaves() -> None:
    metadata = Metadata()
    ids = ids_of(metadata)
    blocks_before = metadata.log.log_end_offset
    taken = [ids.take(0) for _ in range(BLOCK_SIZE + 1)]
    assert taken == list(range(BLOCK_SIZE + 1))
    assert metadata.log.log_end_offset - blocks_before == 2
    assert metadata.state.next_producer_id == 2 * BLOCK_SIZE


def test_a_restart_goes_on_with_the_next_block() -> None:
    metadata = Metadata()
    assert ids_of(metadata).take(0) == 0
    assert ids_of(metadata.restarted()).take(0) == BLOCK_SIZE


def test_no_id_leaves_when_its_block_could_not_be_written() -> None:
    metadata = Metadata()
    ids = ids_of(metadata)
    metadata.log.fail_next = ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "no")
    with pytest.raises(ApiError):
        ids.take(0)
    assert ids.take(0) == 0


def test_the_record_names_the_broker_and_its_epoch() -> None:
    metadata = Metadata()
    ids_of(metadata).take(0)
    (record,) = metadata.last_records
    assert record.value == ProducerIdsRecord(
        broker_id=NODE,
        broker_epoch=metadata.state.brokers[NODE].broker_epoch,
        next_producer_id=BLOCK_SIZE,
    )


def test_the_last_ids_of_an_int64_are_not_exceeded() -> None:
    metadata = Metadata()
    record = ProducerIdsRecord(broker_id=NODE, next_producer_id=MAX_PRODUCER_ID - BLOCK_SIZE + 1)
    metadata.commit(Outcome(reply=None, records=(JournalRecord(record),)))
    with pytest.raises(ApiError, match="Exhausted"):
        ids_of(metadata).take(0)
