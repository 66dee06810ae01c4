"""Reads the batches of a segment as tables, even if it is damaged.

As long as batches are valid, the headers of a whole chunk are read at once. If that fails (a
message of magic 0 or 1, an impossible header, a batch larger than a chunk), storage's scanner reads
one batch at a time. It reports what is wrong, and finds where the next batch begins.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from odradek.pipeline.decoding.batch_table import BatchTable, find_batches, read_table, table_of
from odradek.pipeline.reading.pieces import checksums_match
from odradek.protocol.any_batch import read_message_header
from odradek.protocol.batch_header import (
    HEADER_BYTES,
    MAGIC_POSITION,
    MAGIC_V2,
    BatchHeader,
    CorruptRecordError,
)
from odradek.storage.files import Files, OpenFile
from odradek.storage.inspect.raw_batch import Fault, RawBatch, scan_raw
from odradek.storage.inspect.raw_message import UnreadableError

from .findings import Findings, Kind

_CHUNK_BYTES = 8 << 20
_MAX_SINGLES = 4096  # per chunk
_WRONG_CHECKSUM = Fault("the batch is not what was checksummed", is_checksum=True)


class BatchChunk(NamedTuple):
    """Consecutive valid batches that are checked together. Broken batches are left out.

    Positions in the table are bytes of the file. `data` may be empty; else it begins at byte
    `data_at`. A message of magic 0 or 1 has the row that any_batch.py makes of its header.
    """

    table: BatchTable
    is_messages: bool
    data: bytes
    data_at: int

    @property
    def relative_table(self) -> BatchTable:
        """The table with positions in `data`."""
        return replace(self.table, position=self.table.position - self.data_at)


class SegmentWalk:
    """Walks a segment's first `size_bytes` once, and adds findings for broken batches."""

    def __init__(self, files: Files, file: OpenFile, size_bytes: int, findings: Findings) -> None:
        self._files = files
        self._file = file
        self._size_bytes = size_bytes
        self._findings = findings
        self._path = str(file.path)
        self.broken: list[int] = []  # positions of broken batches, ascending
        self.end = 0  # the position up to which the file was walked
        self.stopped_by: str | None = None  # the reason why the next batch cannot be found
        self._one_by_one_until = 0

    def chunks(self) -> Iterator[BatchChunk]:
        """Yield all chunks. Raises OSError."""
        while self.stopped_by is None and self._size_bytes - self.end > MAGIC_POSITION:
            before = self.end
            chunk = self._many_batches() or self._single_batches()
            if chunk is not None and chunk.table.height:
                yield chunk
            if self.end == before:
                return

    # --- many batches at once

    def _many_batches(self) -> BatchChunk | None:
        start = self.end
        if start < self._one_by_one_until:
            return None
        data = self._files.pread(self._file, min(_CHUNK_BYTES, self._size_bytes - start), start)
        try:
            positions, end = find_batches(data)
            table = read_table(np.frombuffer(data, np.uint8), positions) if positions.size else None
        except CorruptRecordError:
            self._one_by_one_until = start + len(data)
            return None
        if table is None:
            return None
        valid = checksums_match(data, table)
        for row in np.flatnonzero(~valid).tolist():
            position, offset = start + int(table.position[row]), int(table.base_offset[row])
            self._add_broken(position, offset, _WRONG_CHECKSUM)
        self.end = start + end
        table = table.where(valid)
        moved = replace(table, position=table.position + start)
        return BatchChunk(moved, is_messages=False, data=data, data_at=start)

    # --- one batch at a time

    def _single_batches(self) -> BatchChunk | None:
        headers: list[tuple[int, BatchHeader]] = []
        taken = 0
        is_messages = False
        try:
            for raw in scan_raw(self._files, self._file, self.end, self._size_bytes):
                ends = self._ends_chunk(raw, is_messages=is_messages)
                if taken and (taken == _MAX_SINGLES or ends):
                    break
                is_messages = raw.is_message
                taken += 1
                if self._is_valid(raw):
                    headers.append((raw.position, _header_of(raw)))
                self.end = raw.position + raw.size_bytes
        except UnreadableError as error:
            self.stopped_by = str(error)
        if not headers:
            return None
        return BatchChunk(table_of(headers), is_messages, data=b"", data_at=0)

    def _ends_chunk(self, raw: RawBatch, *, is_messages: bool) -> bool:
        if raw.is_message is not is_messages:
            return True
        is_small = raw.magic == MAGIC_V2 and raw.size_bytes <= _CHUNK_BYTES
        return is_small and raw.position >= self._one_by_one_until

    def _is_valid(self, raw: RawBatch) -> bool:
        fault = raw.fault()
        if fault is None and not raw.is_message and raw.header.record_count < 0:
            fault = Fault(f"it has {raw.header.record_count} records")
        if fault is not None:
            self._add_broken(raw.position, raw.offset, fault)
        return fault is None

    def _add_broken(self, position: int, offset: int, fault: Fault) -> None:
        self.broken.append(position)
        kind = Kind.CHECKSUM if fault.is_checksum else Kind.STRUCTURE
        self._findings.problem(kind, self._path, fault.what, position=position, offset=offset)


def _header_of(raw: RawBatch) -> BatchHeader:
    return read_message_header(raw.data()) if raw.is_message else raw.header


def batch_bytes(chunk: BatchChunk, row: int, files: Files, file: OpenFile) -> bytes:
    """Return all bytes of one batch of a chunk."""
    position, size = int(chunk.table.position[row]), int(chunk.table.size_bytes[row])
    begin = position - chunk.data_at
    if chunk.data and begin + size <= len(chunk.data):
        return chunk.data[begin : begin + size]
    return files.pread_exact(file, max(size, HEADER_BYTES), position)
