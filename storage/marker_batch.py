"""The batch of a transaction's marker: one control record, the same in all of its partitions."""

from functools import lru_cache
from typing import NamedTuple

from odradek.protocol.batch_header import PREFIX_BYTES, BatchHeader, read_header
from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from odradek.protocol.records.control import ControlRecordType, control_key, end_txn_value

from .append import EndMarker

# A transaction ends in all of its partitions at once; topics differ in whether they have
# LogAppendTime.
CACHED_BATCHES = 2


class MarkerBatch(NamedTuple):
    """A batch that a log can append: the header, and the bytes after the first 16."""

    header: BatchHeader
    content: bytes


@lru_cache(CACHED_BATCHES)
def marker_batch(marker: EndMarker, now_ms: int, *, has_append_time: bool) -> MarkerBatch:
    """Build the batch of a marker. `has_append_time`: with LogAppendTime."""
    kind = ControlRecordType.COMMIT if marker.is_commit else ControlRecordType.ABORT
    record = Record(control_key(kind), end_txn_value(marker.coordinator_epoch), now_ms)
    batch = build_batch(
        [record],
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        is_transactional=True,
        is_control=True,
        log_append_time_ms=now_ms if has_append_time else None,
    )
    return MarkerBatch(read_header(batch), bytes(batch[PREFIX_BYTES:]))
