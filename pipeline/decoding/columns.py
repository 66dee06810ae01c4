"""The columns of a record, with the names and types of Spark's Kafka source.

    key            binary, null
    value          binary, null
    topic          string
    partition      int
    offset         long
    timestamp      timestamp, in microseconds, UTC
    timestampType  int: -1 none, 0 CreateTime, 1 LogAppendTime
    headers        array of (key: string, value: binary), null where a record has none

Only the requested columns are made, in the requested order.
"""

from collections.abc import Iterable

import pyarrow as pa

HEADER_TYPE = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
COLUMN_TYPES: dict[str, pa.DataType] = {
    "key": pa.binary(),
    "value": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestampType": pa.int32(),
    "headers": pa.list_(pa.field("element", HEADER_TYPE)),
}
ALL_COLUMNS = tuple(COLUMN_TYPES)
# Not a column of the source: the timestamp as it is stored, which may not fit into microseconds.
TIMESTAMP_MS = "timestampMs"
_TYPES = {**COLUMN_TYPES, TIMESTAMP_MS: pa.int64()}


def schema_of(columns: Iterable[str]) -> pa.Schema:
    """Return the Arrow schema of these columns. Raises KeyError for an unknown name."""
    return pa.schema([pa.field(name, _TYPES[name]) for name in columns])
