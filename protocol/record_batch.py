"""Builds a v2 record batch from records.

batch_header.py draws the layout of the header, record.py that of the records.

Kafka: MemoryRecordsBuilder.
"""

from collections.abc import Iterable

from .batch_header import (
    CONTROL_BIT,
    HEADER,
    HEADER_BYTES,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD,
    MAGIC_V2,
    NO_PARTITION_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL_BIT,
    stamp_crc,
)
from .compression import CompressionType, compress
from .record import Record, append_record


def build_batch(  # noqa: PLR0913 - one keyword per field of the header
    records: Iterable[Record],
    *,
    base_offset: int = 0,
    partition_leader_epoch: int = NO_PARTITION_LEADER_EPOCH,
    compression: CompressionType = CompressionType.NONE,
    compression_level: int | None = None,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    is_transactional: bool = False,
    is_control: bool = False,
    log_append_time_ms: int | None = None,
) -> bytearray:
    """Build one batch of `records`, with consecutive offsets from `base_offset` on.

    `Record.offset` is ignored. With `log_append_time_ms` the batch has LogAppendTime, and that time
    as its max timestamp. The records' own timestamps are still stored, but readers ignore them.
    Raises ValueError if there are no records.
    """
    encoded = bytearray()
    count, base_timestamp, max_timestamp = 0, NO_TIMESTAMP, NO_TIMESTAMP
    for record in records:
        if count == 0:
            base_timestamp = max_timestamp = record.timestamp_ms
        max_timestamp = max(max_timestamp, record.timestamp_ms)
        append_record(encoded, record, record.timestamp_ms - base_timestamp, count)
        count += 1
    if count == 0:
        raise ValueError("a batch must have at least one record")
    if log_append_time_ms is not None:
        max_timestamp = log_append_time_ms
    stored = compress(compression, encoded, compression_level) if compression else encoded
    attributes = int(compression)
    if log_append_time_ms is not None:
        attributes |= LOG_APPEND_TIME_BIT
    if is_transactional:
        attributes |= TRANSACTIONAL_BIT
    if is_control:
        attributes |= CONTROL_BIT
    return with_header(
        stored,
        count,
        base_timestamp,
        max_timestamp,
        attributes=attributes,
        base_offset=base_offset,
        partition_leader_epoch=partition_leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
    )


def with_header(  # noqa: PLR0913 - the fields of the header
    content: bytes | bytearray,
    record_count: int,
    base_timestamp: int,
    max_timestamp: int,
    *,
    attributes: int = 0,
    base_offset: int = 0,
    partition_leader_epoch: int = NO_PARTITION_LEADER_EPOCH,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
) -> bytearray:
    """Prepend the batch header to the encoded (and compressed) records, and stamp its CRC."""
    batch = bytearray(
        HEADER.pack(
            base_offset,
            HEADER_BYTES - LOG_OVERHEAD + len(content),
            partition_leader_epoch,
            MAGIC_V2,
            0,  # the CRC
            attributes,
            record_count - 1,  # the last offset delta
            base_timestamp,
            max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            record_count,
        )
    )
    batch += content
    stamp_crc(batch)
    return batch
