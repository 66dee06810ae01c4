"""Reads the fields of many records at once, given the records' positions.

    attributes (a byte), timestamp delta, offset delta, key length, key, value length, value,
    header count, headers: see protocol/record.py

The checks are those of protocol/record.py: each record lies within its batch and ends where its
length says. If one fails, the caller reads the batch again with protocol/record.py, which reports
what is wrong.
"""

from typing import NamedTuple

import numpy as np

from .record_walk import RecordSpans
from .varints import Bools, Bytes, Ints, read_varints

MIN_INT32 = -(1 << 31)


class RecordFields(NamedTuple):
    """One element per record. A length of -1 means null. `_at` columns are positions in the data.

    `headers_at` is the position of the first header. The record ends before `end`.
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
    """Return the fields of records, and whether they fit the record's length.

    Headers are not read. A record with headers is valid here if the first begins within it.
    """
    begin, end = spans
    timestamp_delta, position = read_varints(data, begin + 1)
    offset_delta, position = read_varints(data, position)
    key_bytes, key_at = read_varints(data, position)
    value_bytes, value_at = read_varints(data, key_at + np.maximum(key_bytes, 0))
    header_count, headers_at = read_varints(data, value_at + np.maximum(value_bytes, 0))
    # Sums of damaged lengths may overflow, so each length is compared before it is added.
    room = end - begin
    valid = (begin >= 0) & (end <= data.size) & (room > 0)
    valid &= (key_bytes <= room) & (value_bytes <= room) & (offset_delta >> 31 == 0)
    valid &= np.minimum(key_bytes, value_bytes) >= MIN_INT32
    valid &= (header_count >= 0) & (header_count <= room)
    valid &= np.where(header_count == 0, headers_at == end, headers_at < end)
    deltas = (timestamp_delta, offset_delta)
    key_and_value = (key_at, key_bytes, value_at, value_bytes)
    return RecordFields(begin, end, *deltas, *key_and_value, headers_at, header_count), valid


class HeaderFields(NamedTuple):
    """One element per header, in the order of the records."""

    name_at: Ints
    name_bytes: Ints
    value_at: Ints
    value_bytes: Ints


NO_HEADERS = HeaderFields(*(np.zeros(0, np.int64) for _ in HeaderFields._fields))


def read_headers(data: Bytes, fields: RecordFields) -> tuple[HeaderFields, Bools]:
    """Return the headers of valid records, and whether they end where the record ends."""
    count, end = fields.header_count, fields.end
    starts = np.concatenate(([0], np.cumsum(count)))
    columns = tuple(np.zeros(starts[-1], np.int64) for _ in HeaderFields._fields)
    valid = np.ones(count.size, np.bool_)
    rows = np.flatnonzero(count > 0)
    position = fields.headers_at.copy()
    step = 0
    while rows.size:
        name_bytes, name_at = read_varints(data, position[rows])
        value_bytes, value_at = read_varints(data, name_at + np.maximum(name_bytes, 0))
        room = end[rows] - position[rows]
        valid[rows] &= (name_bytes >= 0) & (name_bytes <= room)
        valid[rows] &= (value_bytes >= MIN_INT32) & (value_bytes <= room)
        next_position = value_at + np.maximum(value_bytes, 0)
        valid[rows] &= next_position <= end[rows]
        position[rows] = next_position
        at = starts[rows] + step
        fields_of_step = (name_at, name_bytes, value_at, value_bytes)
        for column, values in zip(columns, fields_of_step, strict=True):
            column[at] = values
        step += 1
        rows = rows[(count[rows] > step) & valid[rows]]
    valid &= position == end
    return HeaderFields(*columns), valid
