"""Finds the records in the decompressed bytes of a batch, with the fields that the cleaner needs.

The layout is in protocol/record.py. A record is located with the same checks but not decoded, so a
kept record can be copied unchanged. This is the cleaner's inner loop.

A batch with a malformed record is refused as a whole.
"""

from odradek.protocol.batch_header import BatchHeader, CorruptRecordError
from odradek.protocol.primitives import read_varint
from odradek.protocol.record import SMALLEST_RECORD_BYTES, skip_headers

# One record: its start and end in the bytes, the position of its timestamp delta, its offset delta,
# its key, and whether it has a value. A bare tuple, because there are millions.
RecordSpan = tuple[int, int, int, int, bytes | None, bool]

_SMALLEST_SIZE = (SMALLEST_RECORD_BYTES - 1) << 1  # zigzag-encoded, as sizes are below


def record_spans(data: bytes, header: BatchHeader) -> list[RecordSpan]:
    """Locate all records of the batch. Raises CorruptRecordError."""
    count = header.record_count
    if count < 0 or count * SMALLEST_RECORD_BYTES > len(data):
        raise CorruptRecordError(
            f"the batch at offset {header.base_offset} claims {count} records in {len(data)} bytes"
        )
    spans: list[RecordSpan] = []
    try:
        position = _append_spans(spans, data, count, header.last_offset_delta)
    except (IndexError, ValueError) as error:
        raise CorruptRecordError(
            f"record {len(spans)} of the batch at offset {header.base_offset}: {error}"
        ) from None
    if position != len(data):
        raise CorruptRecordError(
            f"{len(data) - position} bytes follow the {count} records of the batch at offset "
            f"{header.base_offset}"
        )
    return spans


def _append_spans(  # noqa: C901, PLR0912, PLR0915 - varints written out: calls cost more
    spans: list[RecordSpan], data: bytes, count: int, last_delta: int
) -> int:
    position, limit, previous, append = 0, len(data), -1, spans.append
    for _ in range(count):
        start = position
        size = data[position]
        if size < 0x80:
            position += 1
        elif data[position + 1] < 0x80:
            size = size & 0x7F | data[position + 1] << 7
            position += 2
        else:
            size, position = read_varint(data, position)
            size <<= 1
        end = position + (size >> 1)
        if size < _SMALLEST_SIZE or end > limit or size & 1:
            raise ValueError(f"it claims {size / 2} bytes, {limit - position} are left")
        position += 1  # attributes
        at = position
        while data[position] > 0x7F:
            position += 1
        position += 1
        delta = data[position]
        if delta < 0x80:
            position += 1
        elif data[position + 1] < 0x80:
            delta = delta & 0x7F | data[position + 1] << 7
            position += 2
        else:
            delta, position = read_varint(data, position)
            delta <<= 1
        if delta & 1 or not previous < delta >> 1 <= last_delta:
            raise ValueError(f"offset delta {delta / 2} after {previous}, of {last_delta}")
        previous = delta >> 1
        size = data[position]
        if size < 0x80:
            position += 1
        elif data[position + 1] < 0x80:
            size = size & 0x7F | data[position + 1] << 7
            position += 2
        else:
            size, position = read_varint(data, position)
            size = size << 1 if size >= 0 else 1
        key = None
        if not size & 1:
            stop = position + (size >> 1)
            key = data[position:stop]
            position = stop
        if position >= end:
            raise ValueError(f"its key ends at byte {position}, the record at {end}")
        size = data[position]
        if size < 0x80:
            position += 1
        elif data[position + 1] < 0x80:
            size = size & 0x7F | data[position + 1] << 7
            position += 2
        else:
            size, position = read_varint(data, position)
            size = size << 1 if size >= 0 else 1
        has_value = not size & 1
        if has_value:
            position += size >> 1
        if position >= end:
            raise ValueError(f"its value ends at byte {position}, the record at {end}")
        position = position + 1 if data[position] == 0 else skip_headers(data, position, end)
        if position != end:
            raise ValueError(f"it ends at byte {end}, what is in it at byte {position}")
        append((start, end, at, previous, key, has_value))
    return position
