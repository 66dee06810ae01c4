"""Decodes record batches of one partition into Arrow record batches with the requested columns.

    BatchTable    headers of batches              batch_table.py
    Bodies        their records, decompressed     bodies.py
    RecordSpans   positions of records            record_walk.py
    RecordFields  positions of fields             record_fields.py
    RecordBatch   keys, values, offsets, ...      decoded_records.py

Only what a requested column needs is read: to count records, or to list the offsets of batches
without gaps, nothing is decompressed. Memory is bounded: batches are decoded in chunks of at most
_CHUNK_BYTES and _CHUNK_RECORDS. A larger batch is decoded by itself, _CHUNK_RECORDS at a time. One
that decompresses to more than MAX_DECOMPRESSED_BYTES is decompressed in parts (large_batches.py).
"""

from collections.abc import Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar

import numpy as np
import pyarrow as pa

from odradek.protocol.batch_header import HEADER_BYTES, CorruptRecordError
from odradek.protocol.compression import CompressionType
from odradek.protocol.record import read_records

from .batch_table import BatchTable
from .bodies import Bodies, LargeBatchError, read_bodies
from .decoded_records import DecodedRecords
from .large_batches import read_parts
from .legacy_messages import read_messages
from .record_fields import read_fields, read_headers
from .record_walk import RecordSpans, find_records
from .varints import Bools, Ints

_CHUNK_BYTES = 8 << 20
_CHUNK_RECORDS = 1 << 17
_IN_BODIES = frozenset({"key", "value", "headers"})


@dataclass(frozen=True, slots=True)
class RecordDecoder:
    """Decodes the batches of one partition.

    `columns` are names of columns.py. With `threads`, several batches are decompressed at the same
    time.
    """

    only_data_batches: ClassVar[bool] = True
    topic: str
    partition: int
    columns: tuple[str, ...]
    threads: Executor | None = None

    def decode(
        self, piece: bytes, table: BatchTable, start_offset: int, end_offset: int
    ) -> Iterator[pa.RecordBatch]:
        """Yield the records with offsets in [start, end) of data batches of magic 2 in `piece`.

        Raises CorruptRecordError, which names the batch and what is wrong with it.
        """
        for records in self.records(piece, table):
            yield from self._as_arrow(records, start_offset, end_offset)

    def records(self, piece: bytes, table: BatchTable) -> Iterator[DecodedRecords]:
        """Yield all records of data batches of magic 2 as numpy columns. Raises like `decode`."""
        for chunk in _chunks(table):
            yield from self._records(piece, chunk)

    def decode_messages(
        self, data: bytes, start_offset: int, end_offset: int
    ) -> Iterator[pa.RecordBatch]:
        """Yield the records with offsets in [start, end) of whole messages of magic 0 or 1."""
        for records in read_messages(data):
            yield from self._as_arrow(records, start_offset, end_offset)

    def _as_arrow(
        self, records: DecodedRecords, start_offset: int, end_offset: int
    ) -> Iterator[pa.RecordBatch]:
        wanted = (records.offset >= start_offset) & (records.offset < end_offset)
        if not wanted.all():
            records = records.where(np.flatnonzero(wanted))
        if records.offset.size:
            yield records.as_arrow(self.topic, self.partition, self.columns)

    def _records(self, piece: bytes, table: BatchTable) -> Iterator[DecodedRecords]:
        if not self._needs_bodies(table):
            yield _from_headers(table)
            return
        done = 0
        try:
            for part, bodies in read_bodies(piece, table, self.threads):
                for spans, batch_row in _record_spans(piece, part, bodies):
                    yield self._from_bodies(piece, part, bodies, spans, batch_row)
                done += part.height
        except LargeBatchError:
            if table.height == 1:
                yield from self._from_large_batch(piece, table)
            else:
                for row in range(done, table.height):
                    yield from self._records(piece, table.rows(row, row + 1))

    def _from_large_batch(self, piece: bytes, table: BatchTable) -> Iterator[DecodedRecords]:
        """Yield the records of a single batch that is not decompressed as a whole."""
        begin, end = int(table.position[0]), int(table.position[0] + table.size_bytes[0])
        stored = memoryview(piece)[begin + HEADER_BYTES : end]
        codec = CompressionType(int(table.compression_id[0]))
        try:
            for data, count, end in read_parts(stored, codec, int(table.record_count[0])):
                part = replace(table, record_count=np.array([count]))
                bodies = Bodies(data, np.array([0]), np.array([end]))
                for spans, batch_row in _record_spans(piece, part, bodies):
                    yield self._from_bodies(piece, part, bodies, spans, batch_row)
        except CorruptRecordError as error:
            offset = table.base_offset[0]
            raise CorruptRecordError(
                f"the batch at offset {offset} ({len(stored)} bytes): {error}"
            ) from None

    def _needs_bodies(self, table: BatchTable) -> bool:
        if not _IN_BODIES.isdisjoint(self.columns):
            return True
        if "timestamp" in self.columns and not table.is_log_append_time.all():
            return True
        return not table.has_no_gaps.all()

    def _from_bodies(
        self, piece: bytes, table: BatchTable, bodies: Bodies, spans: RecordSpans, batch_row: Ints
    ) -> DecodedRecords:
        data = np.frombuffer(bodies.data, np.uint8)
        fields, valid = read_fields(data, spans)
        _check(valid, piece, table, batch_row)
        headers = None
        if "headers" in self.columns:
            headers, valid = read_headers(data, fields)
            _check(valid, piece, table, batch_row)
        is_append_time = table.is_log_append_time[batch_row]
        timestamp_ms = table.base_timestamp[batch_row] + fields.timestamp_delta
        if is_append_time.any():
            timestamp_ms = np.where(is_append_time, table.max_timestamp[batch_row], timestamp_ms)
        return DecodedRecords(
            offset=table.base_offset[batch_row] + fields.offset_delta,
            timestamp_ms=timestamp_ms,
            timestamp_type=is_append_time.astype(np.int64),
            data=bodies.data,
            fields=fields,
            headers=headers,
        )


def _chunks(table: BatchTable) -> Iterator[BatchTable]:
    """Yield as many batches at a time as stay within the bounds, or a single larger one."""
    by_bytes = np.cumsum(table.size_bytes) // _CHUNK_BYTES
    by_records = np.cumsum(table.record_count) // _CHUNK_RECORDS
    bounds = np.flatnonzero(np.diff(by_bytes + by_records)) + 1
    for start, stop in pairwise([0, *bounds.tolist(), table.height]):
        yield table.rows(start, stop)


def _from_headers(table: BatchTable) -> DecodedRecords:
    count = table.record_count
    batch_row = np.repeat(np.arange(table.height), count)
    first = np.cumsum(count) - count
    return DecodedRecords(
        offset=(table.base_offset - first)[batch_row] + np.arange(batch_row.size),
        timestamp_ms=table.max_timestamp[batch_row],
        timestamp_type=table.is_log_append_time[batch_row].astype(np.int64),
    )


def _record_spans(
    piece: bytes, table: BatchTable, bodies: Bodies
) -> Iterator[tuple[RecordSpans, Ints]]:
    """Yield the spans of the records, and the row of each one's batch; a large batch in parts."""
    count = table.record_count
    if table.height == 1:
        position, left = bodies.begin, int(count[0])
        while left > 0:
            part = min(left, _CHUNK_RECORDS)
            spans, position = find_records(bodies.data, position, np.array([part]))
            left -= part
            batch_row = np.zeros(part, np.int64)
            _check(np.array([left > 0]) | (position == bodies.end), piece, table, batch_row)
            yield spans, batch_row
        return
    spans, ended = find_records(bodies.data, bodies.begin, count)
    _check(ended == bodies.end, piece, table, np.arange(table.height))
    yield spans, np.repeat(np.arange(table.height), count)


def _check(valid: Bools, piece: bytes, table: BatchTable, batch_row: Ints) -> None:
    """Raise CorruptRecordError if an element is not valid; `batch_row` is the batch of each.

    The batch is read again by the reader that checks each record and reports what is wrong.
    """
    if valid.all():
        return
    row = int(batch_row[np.flatnonzero(~valid)[0]])
    position = int(table.position[row])
    batch = memoryview(piece)[position : position + int(table.size_bytes[row])]
    for _ in read_records(batch):
        pass
    raise CorruptRecordError(f"the batch at offset {table.base_offset[row]} cannot be decoded")
