"""Decoded records as columns, and their conversion from numpy to Arrow."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from .arrow_arrays import binary_array, constant, list_array, string_array
from .columns import COLUMN_TYPES, HEADER_TYPE, TIMESTAMP_MS, schema_of
from .record_fields import HeaderFields, RecordFields
from .varints import Bools, Ints

_US_PER_MS = 1000
# The largest timestamp that fits into 64 bits of microseconds: in the year 294247.
MAX_MS: Final = int(np.iinfo(np.int64).max) // _US_PER_MS


class DecodedRecords(NamedTuple):
    """Columns of numpy, one element per record; `headers` has one element per header."""

    offset: Ints
    timestamp_ms: Ints
    timestamp_type: Ints
    data: bytes = b""
    fields: RecordFields | None = None
    headers: HeaderFields | None = None

    def where(self, rows: Ints) -> "DecodedRecords":
        """Return the records with these row numbers."""
        fields, headers = self.fields, self.headers
        if fields is not None and headers is not None:
            first = np.cumsum(fields.header_count) - fields.header_count
            count = fields.header_count[rows]
            shift = first[rows] - (np.cumsum(count) - count)
            kept = np.repeat(shift, count) + np.arange(count.sum())
            headers = HeaderFields(*(column[kept] for column in headers))
        return DecodedRecords(
            self.offset[rows],
            self.timestamp_ms[rows],
            self.timestamp_type[rows],
            self.data,
            None if fields is None else RecordFields(*(column[rows] for column in fields)),
            headers,
        )

    def as_arrow(self, topic: str, partition: int, columns: Sequence[str]) -> pa.RecordBatch:
        """Return these columns as Arrow, in this order."""
        count = self.offset.size
        if not columns:
            # Without columns, a RecordBatch made from arrays has no row count.
            return pa.RecordBatch.from_struct_array(pa.array([{}] * count, pa.struct([])))
        constants = {"topic": topic, "partition": partition}
        arrays = [
            constant(constants[name], COLUMN_TYPES[name], count)
            if name in constants
            else _COLUMNS[name](self)
            for name in columns
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=schema_of(columns))


def timestamps(timestamp_ms: Ints) -> pa.Array:
    """Return Arrow's timestamps. Those outside [-MAX_MS, MAX_MS] become the nearest in it."""
    within = np.clip(timestamp_ms, -MAX_MS, MAX_MS)
    return pa.array(within * _US_PER_MS).cast(COLUMN_TYPES["timestamp"])


def clipped(column: pa.Array) -> Bools:
    """Whether each of these timestamps is at the limit, so it was clipped."""
    is_clipped: Bools = np.abs(column.cast(pa.int64()).to_numpy()) == MAX_MS * _US_PER_MS
    return is_clipped


def _key(records: DecodedRecords) -> pa.Array:
    assert records.fields is not None
    return binary_array(records.data, records.fields.key_at, records.fields.key_bytes)


def _value(records: DecodedRecords) -> pa.Array:
    assert records.fields is not None
    return binary_array(records.data, records.fields.value_at, records.fields.value_bytes)


def _headers(records: DecodedRecords) -> pa.Array:
    assert records.fields is not None
    assert records.headers is not None
    headers = records.headers
    names = string_array(binary_array(records.data, headers.name_at, headers.name_bytes))
    values = binary_array(records.data, headers.value_at, headers.value_bytes)
    pairs = pa.StructArray.from_arrays([names, values], fields=list(HEADER_TYPE))
    return list_array(records.fields.header_count, pairs, COLUMN_TYPES["headers"])


_COLUMNS: Mapping[str, Callable[[DecodedRecords], pa.Array]] = {
    "key": _key,
    "value": _value,
    "offset": lambda records: pa.array(records.offset),
    "timestamp": lambda records: timestamps(records.timestamp_ms),
    "timestampType": lambda records: pa.array(records.timestamp_type.astype(np.int32)),
    TIMESTAMP_MS: lambda records: pa.array(records.timestamp_ms),
    "headers": _headers,
}
