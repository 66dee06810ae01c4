"""The batch of a transaction's marker: one control record, the same in all of its partitions.

The record depends only on the marker's kind and the coordinator's epoch, because its time is that
of the batch. So its bytes are kept, and only the header is packed for each transaction.
"""

from functools import lru_cache
from typing import NamedTuple

from odradek.protocol.batch_header import (
    CONTROL_BIT,
    COVERED_HEADER,
    HEADER_BYTES,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD,
    MAGIC_AND_CRC,
    MAGIC_V2,
    NO_PARTITION_LEADER_EPOCH,
    NO_SEQUENCE,
    TRANSACTIONAL_BIT,
    BatchHeader,
)
from odradek.protocol.crc import crc32c
from odradek.protocol.record import Record, append_record
from odradek.protocol.records.control import ControlRecordType, control_key, end_txn_value

from .append import EndMarker

# A transaction ends in all of its partitions at once. Its batches differ by LogAppendTime of their
# topics, records of all transactions mostly by commit and abort.
CACHED = 2


class MarkerBatch(NamedTuple):
    """A batch that a log can append: the header, and the bytes after the first 16."""

    header: BatchHeader
    content: bytes


@lru_cache(CACHED)
def marker_batch(marker: EndMarker, now_ms: int, *, has_append_time: bool) -> MarkerBatch:
    """Build the batch of a marker. `has_append_time`: with LogAppendTime."""
    record = _marker_record(marker.is_commit, marker.coordinator_epoch)
    attributes = TRANSACTIONAL_BIT | CONTROL_BIT
    if has_append_time:
        attributes |= LOG_APPEND_TIME_BIT
    producer_id, epoch = marker.producer_id, marker.producer_epoch
    covered = COVERED_HEADER.pack(attributes, 0, now_ms, now_ms, producer_id, epoch, NO_SEQUENCE, 1)
    covered += record
    crc = crc32c(covered)
    header = BatchHeader(
        0,
        HEADER_BYTES - LOG_OVERHEAD + len(record),
        NO_PARTITION_LEADER_EPOCH,
        MAGIC_V2,
        crc,
        attributes,
        0,
        now_ms,
        now_ms,
        producer_id,
        epoch,
        NO_SEQUENCE,
        1,
    )
    return MarkerBatch(header, MAGIC_AND_CRC.pack(MAGIC_V2, crc) + covered)


@lru_cache(CACHED)
def _marker_record(is_commit: bool, coordinator_epoch: int) -> bytes:
    kind = ControlRecordType.COMMIT if is_commit else ControlRecordType.ABORT
    out = bytearray()
    append_record(out, Record(control_key(kind), end_txn_value(coordinator_epoch), 0), 0, 0)
    return bytes(out)
