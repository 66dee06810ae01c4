"""Searches stored batches for the first record that is not older than a time, within limits.

A timestamp is found only by reading records, and a batch of a kilobyte can hold gigabytes. So the
search of ListOffsets and of share groups (`by_duration`) reads at most one small batch on the event
loop. Larger ones, and further ones, are searched in a worker process (offset_lookup.py), up to a
megabyte of stored batches at a time. The limits are those of record_walk.py.
"""

from typing import NamedTuple

from odradek.protocol.any_batch import UNKNOWN_COUNT, read_any_header, read_any_records
from odradek.protocol.batch_header import (
    MAGIC_V2,
    BatchHeader,
    CorruptRecordError,
    TooManyRecordsError,
)
from odradek.protocol.compression import MAX_DECOMPRESSED_BYTES, Buffer
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.record import payload, skim_payload

from .record_walk import AT_ONCE, LONG, STEPS_OF_A_PART, WalkLimits


class OffsetAtTime(NamedTuple):
    """An offset, the timestamp of its record and its leader epoch; -1 for an unknown one."""

    timestamp_ms: int
    offset: int
    leader_epoch: int


def search_batches(
    batches: Buffer, *, timestamp_ms: int, start_offset: int, limits: WalkLimits
) -> OffsetAtTime | int:
    """The first record from `start_offset` on that is not older; else the offset to continue from.

    `batches` begins with a whole batch, and may end within another one. Raises ApiError with
    CORRUPT_MESSAGE, also if the first batch reaches the limit LONG, the highest. For other limits
    that is a TooManyRecordsError (a CorruptRecordError).
    """
    view = memoryview(batches)
    # LONG's bytes limit what producers send. A stored batch may be larger: all that can be read is
    # searched.
    left = limits._replace(unpacked_bytes=MAX_DECOMPRESSED_BYTES) if limits == LONG else limits
    position, next_offset = 0, start_offset
    try:
        while (header := _whole_batch(view, position)) is not None:
            if header.max_timestamp >= timestamp_ms and header.last_offset >= start_offset:
                batch = view[position : position + header.size_bytes]
                try:
                    found, left = _search(batch, header, timestamp_ms, start_offset, left)
                except TooManyRecordsError:
                    if not position:
                        raise
                    break
                if found is not None:
                    return found
            next_offset = header.next_offset
            position += header.size_bytes
    except CorruptRecordError as error:
        if isinstance(error, TooManyRecordsError) and limits != LONG:
            raise
        raise ApiError(ErrorCode.CORRUPT_MESSAGE, str(error)) from None
    if not position:
        raise ApiError(ErrorCode.CORRUPT_MESSAGE, f"no whole batch in {len(view)} bytes")
    return next_offset


def _whole_batch(view: memoryview, position: int) -> BatchHeader | None:
    """The header of the batch at `position`; None if the batch is not complete."""
    try:
        header = read_any_header(view, position)
    except CorruptRecordError:
        if not position:
            raise
        return None  # cut off; if it is corrupt, the next search begins with it, and raises
    return header if position + header.size_bytes <= len(view) else None


def _search(
    batch: memoryview, header: BatchHeader, timestamp_ms: int, start_offset: int, left: WalkLimits
) -> tuple[OffsetAtTime | None, WalkLimits]:
    """The first such record of one batch, and what is left of the limits."""
    if header.magic != MAGIC_V2:
        return _search_messages(batch, header, timestamp_ms, start_offset, left), left
    count = header.record_count
    if count > left.steps:
        raise TooManyRecordsError(f"{count} records")
    inside = payload(batch, header, left.unpacked_bytes, left.steps // STEPS_OF_A_PART)
    for skim in skim_payload(inside, header, left.steps):
        offset = header.base_offset + skim.offset_delta
        if skim.timestamp_ms >= timestamp_ms and offset >= start_offset:
            found = OffsetAtTime(skim.timestamp_ms, offset, header.partition_leader_epoch)
            return found, left
    return None, WalkLimits(left.unpacked_bytes - len(inside), left.steps - count)


def _search_messages(
    batch: memoryview, header: BatchHeader, timestamp_ms: int, start_offset: int, left: WalkLimits
) -> OffsetAtTime | None:
    """Like `_search`, for a message of magic 0 or 1.

    How many records a wrapper (a compressed message) has is not known. So none is unpacked with the
    limits of the event loop; others do not limit it.
    """
    if header.record_count == UNKNOWN_COUNT and left.unpacked_bytes <= AT_ONCE.unpacked_bytes:
        raise TooManyRecordsError("the number of records in a wrapper is not known")
    for record in read_any_records(batch, header):
        if record.timestamp_ms >= timestamp_ms and record.offset >= start_offset:
            return OffsetAtTime(record.timestamp_ms, record.offset, header.partition_leader_epoch)
    return None
