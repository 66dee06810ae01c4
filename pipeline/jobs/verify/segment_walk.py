"""The batches of a segment as tables, however damaged it is.

As long as batches are sound, the headers of a whole piece are read at once. Where that does not go
on (a message of magic 0 or 1, an impossible header, a batch larger than a piece), storage's walker
goes from batch to batch: it knows what is wrong, and where the next one begins.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from crc32c import crc32c

from odradek.pipeline.decoding.batch_table import BatchTable, find_batches, read_table
from odradek.pipeline.decoding.varints import Bools, Ints
from odradek.protocol.any_batch import read_message_header
from odradek.protocol.batch_header import (
    CHECKED_POSITION,
    HEADER_BYTES,
    MAGIC_POSITION,
    MAGIC_V2,
    BatchHeader,
    CorruptRecordError,
)
from odradek.storage.files import Files, OpenFile
from odradek.storage.inspect.raw_batch import RawBatch, scan_raw
from odradek.storage.inspect.raw_message import UnreadableError

from .findings import Findings, Kind

_PIECE_BYTES = 8 << 20
_SINGLES = 4096  # messages of magic 0 and 1 at a time
_NOT_CHECKSUMMED = "the batch is not what was checksummed"


class WalkedPiece(NamedTuple):
    """Sound batches that follow each other, but for broken ones between them.

    Table positions are bytes of the file; `data`, if it is there, begins at byte `data_at` of it.
    Of messages of magic 0 and 1 a row is what any_batch.py makes of them.
    """

    table: BatchTable
    is_messages: bool
    data: bytes
    data_at: int

    @property
    def relative_table(self) -> BatchTable:
        """The same rows with positions in `data`."""
        return replace(self.table, position=self.table.position - self.data_at)


class SegmentWalk:
    """One walk over the first `size_bytes` of a segment's file. Tells of the broken batches."""

    def __init__(self, files: Files, file: OpenFile, size_bytes: int, findings: Findings) -> None:
        self._files = files
        self._file = file
        self._size_bytes = size_bytes
        self._findings = findings
        self._path = str(file.path)
        self.broken: list[int] = []  # where broken batches begin, ascending
        self.end = 0  # where the walk has come to
        self.lost: str | None = None  # why nothing tells where the next batch begins
        self._careful_until = 0

    def pieces(self) -> Iterator[WalkedPiece]:
        """All pieces. Raises OSError."""
        while self.lost is None and self._size_bytes - self.end > MAGIC_POSITION:
            before = self.end
            piece = self._batches() or self._singles()
            if piece is not None and piece.table.height:
                yield piece
            if self.end == before:
                return

    # --- many batches at once

    def _batches(self) -> WalkedPiece | None:
        at = self.end
        if at < self._careful_until:
            return None
        data = self._files.pread(self._file, min(_PIECE_BYTES, self._size_bytes - at), at)
        try:
            positions, behind = find_batches(data)
            table = read_table(np.frombuffer(data, np.uint8), positions) if positions.size else None
        except CorruptRecordError:
            self._careful_until = at + len(data)
            return None
        if table is None:
            return None
        sound = _checksums(data, table)
        for row in np.flatnonzero(~sound).tolist():
            self._tell(at + int(table.position[row]), int(table.base_offset[row]), _NOT_CHECKSUMMED)
        self.end = at + behind
        table = table.where(sound)
        moved = replace(table, position=table.position + at)
        return WalkedPiece(moved, is_messages=False, data=data, data_at=at)

    # --- one after the other

    def _singles(self) -> WalkedPiece | None:
        headers: list[tuple[int, BatchHeader]] = []
        taken = 0
        of_messages = False
        try:
            for raw in scan_raw(self._files, self._file, self.end, self._size_bytes):
                if taken and (taken == _SINGLES or self._ends_run(raw, of_messages=of_messages)):
                    break
                of_messages = raw.is_message
                taken += 1
                if self._is_sound(raw):
                    headers.append((raw.position, _header_of(raw)))
                self.end = raw.position + raw.size_bytes
        except UnreadableError as error:
            self.lost = str(error)
        if not headers:
            return None
        return WalkedPiece(_table_of(headers), of_messages, data=b"", data_at=0)

    def _ends_run(self, raw: RawBatch, *, of_messages: bool) -> bool:
        if raw.is_message is not of_messages:
            return True
        is_small = raw.magic == MAGIC_V2 and raw.size_bytes <= _PIECE_BYTES
        return is_small and raw.position >= self._careful_until

    def _is_sound(self, raw: RawBatch) -> bool:
        why = raw.fault()
        if why is None and not raw.is_message and raw.header.record_count < 0:
            why = f"it has {raw.header.record_count} records"
        if why is not None:
            self._tell(raw.position, raw.offset, why)
        return why is None

    def _tell(self, position: int, offset: int, why: str) -> None:
        self.broken.append(position)
        kind = Kind.CHECKSUM if "checksummed" in why else Kind.STRUCTURE
        self._findings.problem(kind, self._path, why, position=position, offset=offset)


def _checksums(data: bytes, table: BatchTable) -> Bools:
    view = memoryview(data)
    rows = zip(table.position.tolist(), table.size_bytes.tolist(), table.crc.tolist(), strict=True)
    return np.fromiter(
        (crc32c(view[at + CHECKED_POSITION : at + size]) == crc for at, size, crc in rows),
        np.bool_,
        table.height,
    )


def _header_of(raw: RawBatch) -> BatchHeader:
    return read_message_header(raw.data()) if raw.is_message else raw.header


def _table_of(headers: list[tuple[int, BatchHeader]]) -> BatchTable:
    def column(name: str) -> Ints:
        return np.array([getattr(header, name) for _, header in headers], np.int64)

    return BatchTable(
        position=np.array([position for position, _ in headers], np.int64),
        size_bytes=column("size_bytes"),
        base_offset=column("base_offset"),
        last_offset=column("last_offset"),
        base_timestamp=column("base_timestamp"),
        max_timestamp=column("max_timestamp"),
        partition_leader_epoch=column("partition_leader_epoch"),
        producer_id=column("producer_id"),
        producer_epoch=column("producer_epoch"),
        base_sequence=column("base_sequence"),
        record_count=column("record_count"),
        attributes=column("attributes"),
        crc=column("crc"),
    )


def batch_bytes(piece: WalkedPiece, row: int, files: Files, file: OpenFile) -> bytes:
    """All bytes of one batch of a piece."""
    position, size = int(piece.table.position[row]), int(piece.table.size_bytes[row])
    at = position - piece.data_at
    if piece.data and at + size <= len(piece.data):
        return piece.data[at : at + size]
    return files.pread_exact(file, max(size, HEADER_BYTES), position)
