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

from odradek.protocol.batch_header import MAGIC_V2, BatchHeader
from odradek.protocol.compression import CompressionType
from odradek.protocol.message_set import MAGIC_V0

from .arrow_arrays import constant
from .batch_table import BatchTable
from .columns import COLUMN_TYPES
from .decoded_records import timestamps
from .legacy_messages import whole_messages

_TIME = COLUMN_TYPES["timestamp"]
BATCH_COLUMN_TYPES: dict[str, pa.DataType] = {
    "topic": pa.string(),
    "partition": pa.int32(),
    "baseOffset": pa.int64(),
    "lastOffset": pa.int64(),
    "sizeInBytes": pa.int32(),
    "recordCount": pa.int32(),
    "magic": pa.int32(),
    "codec": pa.string(),
    "timestampType": pa.int32(),
    "baseTimestamp": _TIME,
    "maxTimestamp": _TIME,
    "partitionLeaderEpoch": pa.int32(),
    "producerId": pa.int64(),
    "producerEpoch": pa.int32(),
    "baseSequence": pa.int32(),
    "isTransactional": pa.bool_(),
    "isControl": pa.bool_(),
    "crc": pa.int64(),
}
_CODECS = np.array([*(codec.name.lower() for codec in CompressionType), "5", "6", "7"])
_COLUMNS: Mapping[str, Callable[[BatchTable], object]] = {
    "baseOffset": lambda table: table.base_offset,
    "lastOffset": lambda table: table.last_offset,
    "sizeInBytes": lambda table: table.size_bytes,
    "recordCount": lambda table: table.record_count,
    "magic": lambda table: np.full(table.height, MAGIC_V2),
    "codec": lambda table: _CODECS[table.compression_id],
    "timestampType": lambda table: table.is_log_append_time.astype(np.int32),
    "baseTimestamp": lambda table: timestamps(table.base_timestamp),
    "maxTimestamp": lambda table: timestamps(table.max_timestamp),
    "partitionLeaderEpoch": lambda table: table.partition_leader_epoch,
    "producerId": lambda table: table.producer_id,
    "producerEpoch": lambda table: table.producer_epoch,
    "baseSequence": lambda table: table.base_sequence,
    "isTransactional": lambda table: table.is_transactional,
    "isControl": lambda table: table.is_control,
    "crc": lambda table: table.crc,
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
            columns = (self._column(name, table) for name in self.columns)
            yield pa.RecordBatch.from_arrays(list(columns), schema=batch_schema_of(self.columns))

    def decode_messages(
        self, data: bytes, start_offset: int, end_offset: int
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of whole messages of magic 0 or 1 with a last offset in [start, end)."""
        rows = [
            self._row(header)
            for _, header in whole_messages(data)
            if start_offset <= header.last_offset < end_offset
        ]
        if rows:
            yield pa.RecordBatch.from_pylist(rows, schema=batch_schema_of(self.columns))

    def _column(self, name: str, table: BatchTable) -> pa.Array:
        kind = BATCH_COLUMN_TYPES[name]
        if name in ("topic", "partition"):
            return constant(getattr(self, name), kind, table.height)
        return pa.array(_COLUMNS[name](table)).cast(kind)

    def _row(self, header: BatchHeader) -> dict[str, object]:
        row: dict[str, object] = {
            "topic": self.topic,
            "partition": self.partition,
            "baseOffset": header.base_offset,
            "lastOffset": header.last_offset,
            "sizeInBytes": header.size_bytes,
            "recordCount": None if header.compression_id else 1,
            "magic": header.magic,
            "codec": str(_CODECS[header.compression_id]),
            "timestampType": -1 if header.magic == MAGIC_V0 else int(header.is_log_append_time),
            "baseTimestamp": header.base_timestamp * 1000,
            "maxTimestamp": header.max_timestamp * 1000,
            "partitionLeaderEpoch": header.partition_leader_epoch,
            "producerId": header.producer_id,
            "producerEpoch": header.producer_epoch,
            "baseSequence": header.base_sequence,
            "isTransactional": False,
            "isControl": False,
            "crc": header.crc,
        }
        return {name: row[name] for name in self.columns}
