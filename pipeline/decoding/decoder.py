"""Record batches of one partition into Arrow record batches, with the columns that are asked for.

    BatchTable    headers of batches              batch_table.py
    Bodies        their records, decompressed     bodies.py
    RecordSpans   where each record lies          record_walk.py
    RecordFields  where each field lies           record_fields.py
    RecordBatch   keys, values, offsets, ...      decoded_records.py

What no column needs is not looked at: to count records, or to know the offsets of batches without
gaps, nothing is decompressed. Memory is bounded: as many batches are taken at once as stay within
`_GROUP_BYTES` and `_GROUP_RECORDS`, and of a larger batch so many records at a time.
"""

from collections.abc import Iterator
from concurrent.futures import Executor
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np
import pyarrow as pa

from odradek.protocol.batch_header import CorruptRecordError
from odradek.protocol.record import read_records

from .batch_table import BatchTable
from .bodies import Bodies, read_bodies
from .decoded_records import DecodedRecords
from .old_messages import read_messages
from .record_fields import read_fields, read_headers
from .record_walk import RecordSpans, find_records
from .varints import Bools, Ints

_GROUP_BYTES = 8 << 20
_GROUP_RECORDS = 1 << 17
_IN_BODIES = frozenset({"key", "value", "headers"})


@dataclass(frozen=True, slots=True)
class RecordDecoder:
    """What is made of the batches of one partition.

    `columns` are names of columns.py. With `threads`, batches are decompressed side by side.
    Records with timestamps outside `times_ms`, first to before second, are left out.
    """

    of_data: ClassVar[bool] = True
    topic: str
    partition: int
    columns: tuple[str, ...]
    threads: Executor | None = None
    times_ms: tuple[int, int] | None = None

    def decode(
        self, piece: bytes, table: BatchTable, start_offset: int, end_offset: int
    ) -> Iterator[pa.RecordBatch]:
        """The records at offsets in [start, end) of data batches of magic 2 in `piece`.

        Raises CorruptRecordError, which says what is wrong with which batch.
        """
        if self.times_ms is not None:
            table = table.where(table.max_timestamp >= self.times_ms[0])
        for records in self.records(piece, table):
            yield from self._as_arrow(records, start_offset, end_offset)

    def records(self, piece: bytes, table: BatchTable) -> Iterator[DecodedRecords]:
        """All records of data batches of magic 2, before they are Arrow's. As `decode`."""
        for group in _groups(table):
            yield from self._records(piece, group)

    def decode_messages(
        self, data: bytes, start_offset: int, end_offset: int
    ) -> Iterator[pa.RecordBatch]:
        """The same of whole messages of magic 0 or 1."""
        for records in read_messages(data):
            yield from self._as_arrow(records, start_offset, end_offset)

    def _as_arrow(
        self, records: DecodedRecords, start_offset: int, end_offset: int
    ) -> Iterator[pa.RecordBatch]:
        wanted = (records.offset >= start_offset) & (records.offset < end_offset)
        if self.times_ms is not None:
            first_ms, behind_ms = self.times_ms
            wanted &= (records.timestamp_ms >= first_ms) & (records.timestamp_ms < behind_ms)
        if not wanted.all():
            records = records.where(np.flatnonzero(wanted))
        if records.offset.size:
            yield records.as_arrow(self.topic, self.partition, self.columns)

    def _records(self, piece: bytes, table: BatchTable) -> Iterator[DecodedRecords]:
        if not self._needs_bodies(table):
            yield _from_headers(table)
            return
        for some, bodies in read_bodies(piece, table, self.threads):
            for spans, of_batch in _slices(piece, some, bodies):
                yield self._from_bodies(piece, some, bodies, spans, of_batch)

    def _needs_bodies(self, table: BatchTable) -> bool:
        if not _IN_BODIES.isdisjoint(self.columns):
            return True
        needs_times = "timestamp" in self.columns or self.times_ms is not None
        if needs_times and not table.is_log_append_time.all():
            return True
        return not table.has_no_gaps.all()

    def _from_bodies(
        self, piece: bytes, table: BatchTable, bodies: Bodies, spans: RecordSpans, of_batch: Ints
    ) -> DecodedRecords:
        data = np.frombuffer(bodies.data, np.uint8)
        fields, sound = read_fields(data, spans)
        _check(sound, piece, table, of_batch)
        headers = None
        if "headers" in self.columns:
            headers, sound = read_headers(data, fields)
            _check(sound, piece, table, of_batch)
        is_append_time = table.is_log_append_time[of_batch]
        timestamp_ms = table.base_timestamp[of_batch] + fields.timestamp_delta
        if is_append_time.any():
            timestamp_ms = np.where(is_append_time, table.max_timestamp[of_batch], timestamp_ms)
        return DecodedRecords(
            offset=table.base_offset[of_batch] + fields.offset_delta,
            timestamp_ms=timestamp_ms,
            timestamp_type=is_append_time.astype(np.int64),
            data=bodies.data,
            fields=fields,
            headers=headers,
        )


def _groups(table: BatchTable) -> Iterator[BatchTable]:
    """As many batches at a time as stay within the bounds, or a single one."""
    by_bytes = np.cumsum(table.size_bytes) // _GROUP_BYTES
    by_records = np.cumsum(table.record_count) // _GROUP_RECORDS
    bounds = np.flatnonzero(np.diff(by_bytes + by_records)) + 1
    edges = [0, *bounds.tolist(), table.height]
    for first, behind in pairwise(edges):
        yield table.rows(first, behind)


def _from_headers(table: BatchTable) -> DecodedRecords:
    count = table.record_count
    of_batch = np.repeat(np.arange(table.height), count)
    first = np.cumsum(count) - count
    return DecodedRecords(
        offset=(table.base_offset - first)[of_batch] + np.arange(of_batch.size),
        timestamp_ms=table.max_timestamp[of_batch],
        timestamp_type=table.is_log_append_time[of_batch].astype(np.int64),
    )


def _slices(piece: bytes, table: BatchTable, bodies: Bodies) -> Iterator[tuple[RecordSpans, Ints]]:
    """Where the records lie, and of which batch each is; of one large batch a part at a time."""
    count = table.record_count
    if table.height == 1:
        position, left = bodies.begin, int(count[0])
        while left > 0:
            part = min(left, _GROUP_RECORDS)
            spans, position = find_records(bodies.data, position, np.array([part]))
            left -= part
            of_batch = np.zeros(part, np.int64)
            _check(np.array([left > 0]) | (position == bodies.end), piece, table, of_batch)
            yield spans, of_batch
        return
    spans, ended = find_records(bodies.data, bodies.begin, count)
    _check(ended == bodies.end, piece, table, np.arange(table.height))
    yield spans, np.repeat(np.arange(table.height), count)


def _check(sound: Bools, piece: bytes, table: BatchTable, of_batch: Ints) -> None:
    """Raises CorruptRecordError where something is not sound, `of_batch` saying whose it is.

    The batch is read again by the reader that looks at each record and says what it finds.
    """
    if sound.all():
        return
    row = int(of_batch[np.flatnonzero(~sound)[0]])
    position = int(table.position[row])
    batch = memoryview(piece)[position : position + int(table.size_bytes[row])]
    for _ in read_records(batch):
        pass
    raise CorruptRecordError(f"the batch at offset {table.base_offset[row]} cannot be decoded")
