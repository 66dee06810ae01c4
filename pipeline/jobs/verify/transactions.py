"""Checks transactions: their markers, and the segment's index of aborted transactions.

A read_committed consumer skips what the `.txnindex` lists. So each aborted transaction must have an
entry that begins at its first record or before it. An entry must not name a transaction that was
committed. An entry whose marker is not in the segment is accepted, because the marker may have been
removed.

A producer's first marker in a segment may end a transaction that began in an earlier segment. So a
task checks only the markers after it. It returns the first ones, and the transactions that are open
at the segment's end, and the driver joins them (OpenTransactions).
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
from .segment_walk import BatchChunk

ReadBatch = Callable[[BatchChunk, int], bytes]


class EndedTransaction(NamedTuple):
    """A transaction whose marker, at `last_offset`, is in the segment.

    `first_offset` is the first of its records in the segment; None if there is none. `indexed_from`
    is the first offset in its index entry; None if there is no entry.
    """

    producer_id: int
    is_aborted: bool
    first_offset: int | None
    last_offset: int
    indexed_from: int | None = None


class MissingEntry(NamedTuple):
    """An aborted transaction without an index entry, or whose entry begins too late."""

    what: str
    first_offset: int
    last_offset: int


class BoundaryTransactions(NamedTuple):
    """The transactions of a segment that may have records in other segments, by producer id.

    `ended` holds those of the first markers; `opened`, the first offsets of those that begin in the
    segment and are open at its end. `missing_entries` are of the other markers.
    """

    ended: dict[int, EndedTransaction]
    opened: dict[int, int]
    missing_entries: list[MissingEntry]


class SegmentTransactions:
    """The transactions of one segment."""

    def __init__(self, log_path: Path, base_offset: int, findings: Findings) -> None:
        self._path = str(log_path)
        self._index_path = log_path.parent / segment_file(base_offset, FileKind.TXN_INDEX)
        self._base_offset = base_offset
        self._findings = findings
        self._open: dict[int, int] = {}
        self._ended: list[EndedTransaction] = []

    def add(self, chunk: BatchChunk, read: ReadBatch) -> None:
        """Add the next chunk; `read` returns the bytes of one of its batches."""
        table = chunk.table
        # A batch without records was emptied by the cleaner and says nothing about a transaction.
        has_data = table.is_transactional & (table.record_count > 0)
        rows = np.flatnonzero((table.producer_id >= 0) & (has_data | table.is_control))
        is_control = table.is_control
        for row in rows.tolist():
            producer_id = int(table.producer_id[row])
            if is_control[row]:
                self._add_marker(chunk, row, producer_id, read)
            else:
                self._open.setdefault(producer_id, int(table.base_offset[row]))

    def _add_marker(self, chunk: BatchChunk, row: int, producer_id: int, read: ReadBatch) -> None:
        offset = int(chunk.table.base_offset[row])
        first_offset = self._open.pop(producer_id, None)
        try:
            marker = next(read_records(read(chunk, row)), None)
            kind = None if marker is None else control_type(marker.key)
        except (CorruptRecordError, DecodeError) as error:
            what = f"the marker cannot be read: {error}"
            position = int(chunk.table.position[row])
            self._findings.problem(
                Kind.TRANSACTION, self._path, what, position=position, offset=offset
            )
            return
        if kind in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
            is_aborted = kind is ControlRecordType.ABORT
            self._ended.append(EndedTransaction(producer_id, is_aborted, first_offset, offset))
        elif marker is not None:
            self._findings.note(
                Kind.TRANSACTION, self._path, "a marker of unknown kind", offset=offset
            )

    # --- the index

    def finish(self, files: Files, next_offset: int, *, is_active: bool) -> BoundaryTransactions:
        """Check the index after all chunks were added. Raises OSError."""
        entries = self._entries(files, next_offset, is_active=is_active)
        indexed = {(entry.producer_id, entry.last_offset): entry for entry in entries}
        ended: dict[int, EndedTransaction] = {}
        missing: list[MissingEntry] = []
        for each in self._ended:
            if entry := indexed.get((each.producer_id, each.last_offset)):
                each = each._replace(indexed_from=entry.first_offset)
            if each.producer_id not in ended:
                ended[each.producer_id] = each
            else:
                missing += _missing_entry(each, each.first_offset)
        self._check_entries(entries)
        return BoundaryTransactions(ended, dict(self._open), missing)

    def _entries(
        self, files: Files, next_offset: int, *, is_active: bool
    ) -> list[AbortedTransaction]:
        try:
            data = files.read(self._index_path)
        except FileNotFoundError:
            return []
        if len(data) % ENTRY_BYTES and not is_active:
            self._findings.note(Kind.INDEX, str(self._index_path), "the last entry is incomplete")
        entries = [entry for _, entry in entries_of(data)]
        # Entries that were appended after the log was read are not checked.
        return [each for each in entries if not is_active or each.last_offset < next_offset]

    def _check_entries(self, entries: list[AbortedTransaction]) -> None:
        committed = {
            (each.producer_id, each.last_offset) for each in self._ended if not each.is_aborted
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


def _missing_entry(ended: EndedTransaction, first_offset: int | None) -> list[MissingEntry]:
    """Return the transaction if it is aborted and has no entry that begins early enough.

    `first_offset` is that of the whole transaction; None if it is unknown, and nothing is checked.
    """
    if not ended.is_aborted or first_offset is None:
        return []
    if ended.indexed_from is not None and ended.indexed_from <= first_offset:
        return []
    what = (
        f"the transaction of producer {ended.producer_id} from offset {first_offset} to "
        f"{ended.last_offset} was aborted and is not in the index"
    )
    return [MissingEntry(what, first_offset, ended.last_offset)]


class OpenTransactions:
    """The first offset of each open transaction, after some of a partition's segments."""

    def __init__(self) -> None:
        self.first_offsets: dict[int, int] = {}

    def join(self, following: BoundaryTransactions) -> Iterator[MissingEntry]:
        """Append the next segment, and yield the entries that its index lacks."""
        for producer_id, ended in following.ended.items():
            first_offset = self.first_offsets.pop(producer_id, ended.first_offset)
            yield from _missing_entry(ended, first_offset)
        yield from following.missing_entries
        for producer_id, first_offset in following.opened.items():
            self.first_offsets.setdefault(producer_id, first_offset)
