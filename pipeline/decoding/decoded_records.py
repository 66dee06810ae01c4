"""Records that are decoded, as columns: from numpy's arrays to Arrow's."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from .arrow_arrays import binary_array, constant, list_array, string_array
from .columns import COLUMN_TYPES, HEADER_TYPE, schema_of
from .record_fields import HeaderFields, RecordFields
from .varints import Ints

_US_PER_MS = 1000
_FARTHEST_MS = np.iinfo(np.int64).max // _US_PER_MS  # what fits into a timestamp of microseconds


class DecodedRecords(NamedTuple):
    """Records before they are Arrow's: one element per record, but for `headers`."""

    offset: Ints
    timestamp_ms: Ints
    timestamp_type: Ints
    data: bytes = b""
    fields: RecordFields | None = None
    headers: HeaderFields | None = None

    def where(self, rows: Ints) -> "DecodedRecords":
        """Some of the records."""
        fields, headers = self.fields, self.headers
        if fields is not None and headers is not None:
            first = np.cumsum(fields.header_count) - fields.header_count
            count = fields.header_count[rows]
            moved = first[rows] - (np.cumsum(count) - count)
            kept = np.repeat(moved, count) + np.arange(count.sum())
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
        """The columns of these names, in their order."""
        count = self.offset.size
        if not columns:
            # Arrow counts rows by its columns: without any it has to be told.
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
    """Arrow's timestamps; what does not fit is the farthest that does."""
    within = np.clip(timestamp_ms, -_FARTHEST_MS, _FARTHEST_MS)
    return pa.array(within * _US_PER_MS).cast(COLUMN_TYPES["timestamp"])


def _key(records: DecodedRecords) -> pa.Array:
    assert records.fields is not None
    return binary_array(records.data, records.fields.key_at, records.fields.key_bytes)


def _value(records: DecodedRecords) -> pa.Array:
    assert records.fields is not None
    return binary_array(records.data, records.fields.value_at, records.fields.value_bytes)


def _offset(records: DecodedRecords) -> pa.Array:
    return pa.array(records.offset)


def _timestamp(records: DecodedRecords) -> pa.Array:
    return timestamps(records.timestamp_ms)


def _timestamp_type(records: DecodedRecords) -> pa.Array:
    return pa.array(records.timestamp_type.astype(np.int32))


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
    "offset": _offset,
    "timestamp": _timestamp,
    "timestampType": _timestamp_type,
    "headers": _headers,
}
