"""The fields of many records at once, from where the records lie.

    attributes (a byte), timestamp delta, offset delta, key length, key, value length, value,
    header count, headers: see protocol/record.py

The checks are those of protocol/record.py: every record lies in its batch and ends where its length
says. Which of them failed is then found by reading that batch with it: it says what is wrong.
"""

from typing import NamedTuple

import numpy as np

from .record_walk import RecordSpans
from .varints import Bools, Bytes, Ints, read_varints

LEAST_INT32 = -(1 << 31)


class RecordFields(NamedTuple):
    """One element per record. A length of -1 says that there is none; `_at` are bytes of the data.

    `headers_at` is where the first header's name has its length; the record ends at `end`.
    """

    begin: Ints
    end: Ints
    timestamp_delta: Ints
    offset_delta: Ints
    key_at: Ints
    key_bytes: Ints
    value_at: Ints
    value_bytes: Ints
    headers_at: Ints
    header_count: Ints


def read_fields(data: Bytes, spans: RecordSpans) -> tuple[RecordFields, Bools]:
    """The fields of records, and whether they fit what the record's length says.

    Headers are only found, not walked: a record with headers is sound if they begin in it.
    """
    begin, end = spans
    timestamp_delta, position = read_varints(data, begin + 1)
    offset_delta, position = read_varints(data, position)
    key_bytes, key_at = read_varints(data, position)
    value_bytes, value_at = read_varints(data, key_at + np.maximum(key_bytes, 0))
    header_count, headers_at = read_varints(data, value_at + np.maximum(value_bytes, 0))
    # Sums of damaged lengths may wrap: each is compared where it is still small.
    room = end - begin
    sound = (begin >= 0) & (end <= data.size) & (room > 0)
    sound &= (key_bytes <= room) & (value_bytes <= room) & (offset_delta >> 31 == 0)
    sound &= np.minimum(key_bytes, value_bytes) >= LEAST_INT32
    sound &= (header_count >= 0) & (header_count <= room)
    sound &= np.where(header_count == 0, headers_at == end, headers_at < end)
    fields = RecordFields(
        begin=begin,
        end=end,
        timestamp_delta=timestamp_delta,
        offset_delta=offset_delta,
        key_at=key_at,
        key_bytes=key_bytes,
        value_at=value_at,
        value_bytes=value_bytes,
        headers_at=headers_at,
        header_count=header_count,
    )
    return fields, sound


class HeaderFields(NamedTuple):
    """One element per header of a record, record after record."""

    name_at: Ints
    name_bytes: Ints
    value_at: Ints
    value_bytes: Ints


NO_HEADERS = HeaderFields(*(np.zeros(0, np.int64) for _ in HeaderFields._fields))


def read_headers(data: Bytes, fields: RecordFields) -> tuple[HeaderFields, Bools]:
    """The headers of sound records, and whether they end where each record does."""
    count, end = fields.header_count, fields.end
    starts = np.concatenate(([0], np.cumsum(count)))
    columns = tuple(np.zeros(starts[-1], np.int64) for _ in HeaderFields._fields)
    sound = np.ones(count.size, np.bool_)
    rows = np.flatnonzero(count > 0)
    position = fields.headers_at.copy()
    step = 0
    while rows.size:
        name_bytes, name_at = read_varints(data, position[rows])
        value_bytes, value_at = read_varints(data, name_at + np.maximum(name_bytes, 0))
        room = end[rows] - position[rows]
        sound[rows] &= (name_bytes >= 0) & (name_bytes <= room)
        sound[rows] &= (value_bytes >= LEAST_INT32) & (value_bytes <= room)
        behind = value_at + np.maximum(value_bytes, 0)
        sound[rows] &= behind <= end[rows]
        position[rows] = behind
        at = starts[rows] + step
        found = (name_at, name_bytes, value_at, value_bytes)
        for column, of_step in zip(columns, found, strict=True):
            column[at] = of_step
        step += 1
        rows = rows[(count[rows] > step) & sound[rows]]
    sound &= position == end
    return HeaderFields(*columns), sound
