"""Checks transactions: their markers, and the segment's index of aborted transactions.

A read_committed consumer skips what the `.txnindex` lists. So each aborted transaction must be
listed, from its first record or earlier on. An entry must refer to an abort marker, unless the
marker has been removed.

The driver joins a transaction that began in an earlier segment: a task returns the first marker of
each producer in its segment, and the transactions that are open at the segment's end.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from odradek.protocol.batch_header import CorruptRecordError
from odradek.protocol.record import read_records
from odradek.protocol.records.control import ControlRecordType, control_type
from odradek.protocol.schema import DecodeError
from odradek.storage.filenames import FileKind, segment_file
from odradek.storage.files import Files
from odradek.storage.txn_index import ENTRY_BYTES, AbortedTransaction, entries_of

from .findings import Findings, Kind
from .segment_walk import WalkedPiece

ReadBatch = Callable[[WalkedPiece, int], bytes]


class EndedTransaction(NamedTuple):
    """The transaction of a producer's first marker in a segment.

    `first_offset` is its first in this segment; None if it has no records here. `indexed_from` is
    its first offset according to the index; None without an entry.
    """

    is_aborted: bool
    first_offset: int | None
    last_offset: int
    indexed_from: int | None


class MissingEntry(NamedTuple):
    """An aborted transaction that is not in the index."""

    what: str
    first_offset: int
    last_offset: int


class TransactionEdges(NamedTuple):
    """The transactions of a segment that may reach beyond it, by producer id.

    Missing entries are those of transactions within the segment.
    """

    ended: dict[int, EndedTransaction]
    opened: dict[int, int]  # first offset of those that began here and are open at the end
    missing_entries: list[MissingEntry]


class _Marker(NamedTuple):
    producer_id: int
    kind: ControlRecordType
    first_offset: int | None
    offset: int


class SegmentTransactions:
    """The transactions of one segment."""

    def __init__(self, log_path: Path, base_offset: int, findings: Findings) -> None:
        self._path = str(log_path)
        self._index_path = log_path.parent / segment_file(base_offset, FileKind.TXN_INDEX)
        self._base_offset = base_offset
        self._findings = findings
        self._open: dict[int, int] = {}
        self._markers: list[_Marker] = []

    def add(self, piece: WalkedPiece, read: ReadBatch) -> None:
        """Add the next piece; `read` returns the bytes of one of its batches."""
        table = piece.table
        # A batch without records was emptied by the cleaner and says nothing about a transaction.
        has_data = table.is_transactional & (table.record_count > 0)
        rows = np.flatnonzero((table.producer_id >= 0) & (has_data | table.is_control))
        is_control = table.is_control
        for row in rows.tolist():
            producer_id = int(table.producer_id[row])
            if is_control[row]:
                self._add_marker(piece, row, producer_id, read)
            else:
                self._open.setdefault(producer_id, int(table.base_offset[row]))

    def _add_marker(self, piece: WalkedPiece, row: int, producer_id: int, read: ReadBatch) -> None:
        offset = int(piece.table.base_offset[row])
        first_offset = self._open.pop(producer_id, None)
        try:
            marker = next(read_records(read(piece, row)), None)
            kind = None if marker is None else control_type(marker.key)
        except (CorruptRecordError, DecodeError) as error:
            what = f"the marker cannot be read: {error}"
            position = int(piece.table.position[row])
            self._findings.problem(
                Kind.TRANSACTION, self._path, what, position=position, offset=offset
            )
            return
        if kind in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
            assert kind is not None
            self._markers.append(_Marker(producer_id, kind, first_offset, offset))
        elif marker is not None:
            self._findings.note(
                Kind.TRANSACTION, self._path, "a marker of unknown kind", offset=offset
            )

    # --- the index

    def finish(self, files: Files, next_offset: int, *, in_use: bool) -> TransactionEdges:
        """Check the index after all pieces were added. Raises OSError."""
        entries = self._entries(files, next_offset, in_use=in_use)
        indexed = {(entry.producer_id, entry.last_offset): entry for entry in entries}
        ended: dict[int, EndedTransaction] = {}
        missing: list[MissingEntry] = []
        for marker in self._markers:
            entry = indexed.get((marker.producer_id, marker.offset))
            each = EndedTransaction(
                marker.kind is ControlRecordType.ABORT,
                marker.first_offset,
                marker.offset,
                None if entry is None else entry.first_offset,
            )
            if marker.producer_id not in ended:
                ended[marker.producer_id] = each
            else:
                missing += _missing_entry(marker.producer_id, each, marker.first_offset)
        self._check_entries(entries)
        return TransactionEdges(ended, dict(self._open), missing)

    def _entries(self, files: Files, next_offset: int, *, in_use: bool) -> list[AbortedTransaction]:
        try:
            data = files.read(self._index_path)
        except FileNotFoundError:
            return []
        if len(data) % ENTRY_BYTES and not in_use:
            self._findings.note(Kind.INDEX, str(self._index_path), "the last entry is incomplete")
        entries = [entry for _, entry in entries_of(data)]
        # Entries that were appended after the log was read are not checked.
        return [each for each in entries if not in_use or each.last_offset < next_offset]

    def _check_entries(self, entries: list[AbortedTransaction]) -> None:
        committed = {
            (each.producer_id, each.offset)
            for each in self._markers
            if each.kind is ControlRecordType.COMMIT
        }
        previous = -1
        for entry in entries:
            last = entry.last_offset
            if last <= previous:
                self._wrong(f"entries are not ascending: {last} follows {previous}", last)
            elif last < self._base_offset:
                self._wrong(f"offset {last} is before the segment", last)
            elif entry.first_offset > last:
                first = entry.first_offset
                self._wrong(f"a transaction begins at offset {first}, after its last one", last)
            elif (entry.producer_id, last) in committed:
                self._wrong(
                    f"the transaction of producer {entry.producer_id} that ends at offset {last} "
                    "was committed",
                    last,
                )
            previous = last

    def _wrong(self, what: str, offset: int) -> None:
        self._findings.problem(Kind.TRANSACTION, str(self._index_path), what, offset=offset)


def _missing_entry(
    producer_id: int, ended: EndedTransaction, first_offset: int | None
) -> list[MissingEntry]:
    """Return the entry that the index lacks; `first_offset` is None if it is unknown."""
    if not ended.is_aborted or first_offset is None:
        return []
    if ended.indexed_from is not None and ended.indexed_from <= first_offset:
        return []
    what = (
        f"the transaction of producer {producer_id} from offset {first_offset} to "
        f"{ended.last_offset} was aborted and is not in the index"
    )
    return [MissingEntry(what, first_offset, ended.last_offset)]


class OpenTransactions:
    """The first offset of each producer's open transaction, in a partition so far."""

    def __init__(self) -> None:
        self.first_offsets: dict[int, int] = {}

    def join(self, following: TransactionEdges) -> Iterator[MissingEntry]:
        """Append the next segment, and yield the entries that its index lacks."""
        for producer_id, ended in following.ended.items():
            first_offset = self.first_offsets.pop(producer_id, ended.first_offset)
            yield from _missing_entry(producer_id, ended, first_offset)
        yield from following.missing_entries
        for producer_id, first_offset in following.opened.items():
            self.first_offsets.setdefault(producer_id, first_offset)
