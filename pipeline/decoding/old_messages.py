"""Messages of magic 0 and 1, record by record: old logs can be read, though not fast.

Keys and values are laid behind each other, so that the rest is as with batches.
"""

from collections.abc import Iterator
from itertools import islice

import numpy as np

from odradek.protocol.any_batch import SMALLEST_MESSAGE_BYTES, read_message_header
from odradek.protocol.batch_header import MAGIC_POSITION, MAGIC_V2, BatchHeader
from odradek.protocol.legacy import read_message_set
from odradek.protocol.message_set import MAGIC_V0, LegacyRecord

from .decoded_records import DecodedRecords
from .record_fields import NO_HEADERS, RecordFields

_AT_ONCE = 1 << 15
_NO_TIMESTAMP_TYPE = -1


def whole_messages(data: bytes) -> Iterator[tuple[int, BatchHeader]]:
    """Position and head of each message that lies whole at the front of `data`.

    Raises CorruptRecordError.
    """
    position = 0
    while position + SMALLEST_MESSAGE_BYTES <= len(data):
        if data[position + MAGIC_POSITION] == MAGIC_V2:
            return
        header = read_message_header(data, position)
        if position + header.size_bytes > len(data):
            return
        yield position, header
        position += header.size_bytes


def read_messages(data: bytes) -> Iterator[DecodedRecords]:
    """The records of whole messages, so many at a time. Raises CorruptRecordError.

    Checksums are always looked at: a v2 batch with a damaged byte might pass for a message.
    """
    records = read_message_set(data, whole=True)
    while some := list(islice(records, _AT_ONCE)):
        yield _decoded(some)


def _decoded(records: list[LegacyRecord]) -> DecodedRecords:
    data = b"".join(part or b"" for record in records for part in (record.key, record.value))
    sizes = np.array(
        [
            -1 if part is None else len(part)
            for record in records
            for part in (record.key, record.value)
        ],
        np.int64,
    )
    stored = np.maximum(sizes, 0)
    at = np.cumsum(stored) - stored
    nothing = np.zeros(len(records), np.int64)
    return DecodedRecords(
        offset=np.array([record.offset for record in records], np.int64),
        timestamp_ms=np.array([record.timestamp_ms for record in records], np.int64),
        timestamp_type=np.array([_timestamp_type(record) for record in records], np.int64),
        data=data,
        fields=RecordFields(
            begin=at[0::2],
            end=at[0::2] + stored[0::2] + stored[1::2],
            timestamp_delta=nothing,
            offset_delta=nothing,
            key_at=at[0::2],
            key_bytes=sizes[0::2],
            value_at=at[1::2],
            value_bytes=sizes[1::2],
            headers_at=nothing,
            header_count=nothing,
        ),
        headers=NO_HEADERS,
    )


def _timestamp_type(record: LegacyRecord) -> int:
    return _NO_TIMESTAMP_TYPE if record.magic == MAGIC_V0 else int(record.is_log_append_time)
