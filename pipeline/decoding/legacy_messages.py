"""Decodes messages of magic 0 and 1, one by one: old logs can be read, but slowly.

Keys and values are concatenated in one buffer, so that the rest is the same as for v2 batches.
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

_MESSAGES_PER_CHUNK = 1 << 15
_NO_TIMESTAMP_TYPE = -1


def whole_messages(data: bytes) -> Iterator[tuple[int, BatchHeader]]:
    """Yield position and header of each message, up to the first that is cut off or is v2.

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
    """Yield the records of whole messages, in chunks. Raises CorruptRecordError.

    Checksums are always verified: a v2 batch with a damaged byte could look like a message.
    """
    records = read_message_set(data, whole=True)
    while chunk := list(islice(records, _MESSAGES_PER_CHUNK)):
        yield _decoded(chunk)


def _decoded(records: list[LegacyRecord]) -> DecodedRecords:
    texts = [text for record in records for text in (record.key, record.value)]
    data = b"".join(text or b"" for text in texts)
    sizes = np.array([-1 if text is None else len(text) for text in texts], np.int64)
    stored = np.maximum(sizes, 0)
    begin = np.cumsum(stored) - stored
    zeros = np.zeros(len(records), np.int64)
    return DecodedRecords(
        offset=np.array([record.offset for record in records], np.int64),
        timestamp_ms=np.array([record.timestamp_ms for record in records], np.int64),
        timestamp_type=np.array([_timestamp_type(record) for record in records], np.int64),
        data=data,
        fields=RecordFields(
            begin=begin[0::2],
            end=begin[0::2] + stored[0::2] + stored[1::2],
            timestamp_delta=zeros,
            offset_delta=zeros,
            key_at=begin[0::2],
            key_bytes=sizes[0::2],
            value_at=begin[1::2],
            value_bytes=sizes[1::2],
            headers_at=zeros,
            header_count=zeros,
        ),
        headers=NO_HEADERS,
    )


def _timestamp_type(record: LegacyRecord) -> int:
    return _NO_TIMESTAMP_TYPE if record.magic == MAGIC_V0 else int(record.is_log_append_time)
