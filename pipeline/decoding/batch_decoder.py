"""Makes one row of each batch, from its header. Nothing is decompressed.

topic, partition      string, int
baseOffset            long; for a compressed wrapper message, whose header does not hold the first
                      offset, the last one
lastOffset            long
sizeInBytes           int, with the header
recordCount           int; null for a compressed wrapper message
magic                 int: 0, 1, 2
codec                 string: none, gzip, snappy, lz4, zstd
timestampType         int: -1 none, 0 CreateTime, 1 LogAppendTime
baseTimestamp         timestamp
maxTimestamp          timestamp
partitionLeaderEpoch, producerId, producerEpoch, baseSequence      int, long, int, int; -1: none
isTransactional, isControl                                         boolean
crc                   long, as it is stored
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from odradek.protocol.batch_header import MAGIC_V2
from odradek.protocol.compression import CompressionType
from odradek.protocol.message_set import MAGIC_V0

from .arrow_arrays import constant
from .batch_table import BatchTable, table_of
from .columns import COLUMN_TYPES
from .decoded_records import timestamps
from .legacy_messages import whole_messages

_TIME = COLUMN_TYPES["timestamp"]
_CODECS = np.array([*(codec.name.lower() for codec in CompressionType), "5", "6", "7"])
_COLUMNS: Mapping[str, tuple[pa.DataType, Callable[[BatchTable], object]]] = {
    "baseOffset": (pa.int64(), lambda table: table.base_offset),
    "lastOffset": (pa.int64(), lambda table: table.last_offset),
    "sizeInBytes": (pa.int32(), lambda table: table.size_bytes),
    "recordCount": (pa.int32(), lambda table: table.record_count),
    "magic": (pa.int32(), lambda table: np.full(table.height, MAGIC_V2)),
    "codec": (pa.string(), lambda table: _CODECS[table.compression_id]),
    "timestampType": (pa.int32(), lambda table: table.is_log_append_time.astype(np.int32)),
    "baseTimestamp": (_TIME, lambda table: timestamps(table.base_timestamp)),
    "maxTimestamp": (_TIME, lambda table: timestamps(table.max_timestamp)),
    "partitionLeaderEpoch": (pa.int32(), lambda table: table.partition_leader_epoch),
    "producerId": (pa.int64(), lambda table: table.producer_id),
    "producerEpoch": (pa.int32(), lambda table: table.producer_epoch),
    "baseSequence": (pa.int32(), lambda table: table.base_sequence),
    "isTransactional": (pa.bool_(), lambda table: table.is_transactional),
    "isControl": (pa.bool_(), lambda table: table.is_control),
    "crc": (pa.int64(), lambda table: table.crc),
}
BATCH_COLUMN_TYPES: dict[str, pa.DataType] = {
    "topic": pa.string(),
    "partition": pa.int32(),
    **{name: kind for name, (kind, _) in _COLUMNS.items()},
}


def batch_schema_of(columns: Iterable[str]) -> pa.Schema:
    """Return the Arrow schema of these columns. Raises KeyError for an unknown name."""
    return pa.schema([pa.field(name, BATCH_COLUMN_TYPES[name]) for name in columns])


@dataclass(frozen=True, slots=True)
class BatchDecoder:
    """Makes a row of each batch whose last offset is in the range, with the given columns."""

    only_data_batches: ClassVar[bool] = False
    topic: str
    partition: int
    columns: tuple[str, ...]

    def decode(
        self,
        piece: bytes,  # noqa: ARG002 - RecordDecoder, which has the same interface, needs it
        table: BatchTable,
        start_offset: int,
        end_offset: int,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of batches of magic 2 with a last offset in [start, end)."""
        table = table.where((table.last_offset >= start_offset) & (table.last_offset < end_offset))
        if table.height:
            yield self._rows(table, {})

    def decode_messages(
        self, data: bytes, start_offset: int, end_offset: int
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of whole messages of magic 0 or 1 with a last offset in [start, end)."""
        headers = [
            (position, header)
            for position, header in whole_messages(data)
            if start_offset <= header.last_offset < end_offset
        ]
        if not headers:
            return
        table = table_of(headers)
        magic = np.array([header.magic for _, header in headers])
        special = {
            "recordCount": pa.array(table.record_count, mask=table.compression_id > 0),
            "magic": magic,
            "timestampType": np.where(magic == MAGIC_V0, -1, table.is_log_append_time),
        }
        yield self._rows(table, special)

    def _rows(self, table: BatchTable, special: Mapping[str, object]) -> pa.RecordBatch:
        arrays = [self._column(name, table, special) for name in self.columns]
        return pa.RecordBatch.from_arrays(arrays, schema=batch_schema_of(self.columns))

    def _column(self, name: str, table: BatchTable, special: Mapping[str, object]) -> pa.Array:
        if name in ("topic", "partition"):
            return constant(getattr(self, name), BATCH_COLUMN_TYPES[name], table.height)
        kind, values_of = _COLUMNS[name]
        return pa.array(special[name] if name in special else values_of(table)).cast(kind)
