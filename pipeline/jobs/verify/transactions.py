"""Transactions: their markers, and what a segment's index of aborted ones says.

A read_committed consumer drops what the `.txnindex` names. So what was aborted must be named, from
its first record or earlier on; and an entry names an abort marker, where that still lies there.

A transaction that began in an earlier segment is joined by the driver: of the first marker of each
producer a task tells what it found, and at the segment's end which transactions are open.
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


class Ended(NamedTuple):
    """A producer's first marker in a segment. `first_offset`: of its transaction in this segment.

    `told_from` is the first offset that the index tells of it; None without an entry.
    """

    is_aborted: bool
    first_offset: int | None
    last_offset: int
    told_from: int | None


class Untold(NamedTuple):
    """An aborted transaction that the index does not name."""

    what: str
    first_offset: int
    last_offset: int


class TransactionEdges(NamedTuple):
    """What of a segment's transactions reaches beyond it, by producer id; what lies in it alone."""

    ended: dict[int, Ended]
    opened: dict[int, int]  # first offsets of those that are open at the end and began here
    untold: list[Untold]


class _Marker(NamedTuple):
    producer_id: int
    kind: ControlRecordType
    first_offset: int | None
    offset: int


class Transactions:
    """The transactions of one segment."""

    def __init__(self, log_path: Path, base_offset: int, findings: Findings) -> None:
        self._path = str(log_path)
        self._index_path = log_path.parent / segment_file(base_offset, FileKind.TXN_INDEX)
        self._base_offset = base_offset
        self._findings = findings
        self._open: dict[int, int] = {}
        self._markers: list[_Marker] = []

    def see(self, piece: WalkedPiece, read: ReadBatch) -> None:
        """The next piece; `read` gives the bytes of one of its batches."""
        table = piece.table
        # A batch that the cleaner has emptied says nothing of a transaction.
        of_data = table.is_transactional & (table.record_count > 0)
        rows = np.flatnonzero((table.producer_id >= 0) & (of_data | table.is_control))
        of_control = table.is_control
        for row in rows.tolist():
            producer_id = int(table.producer_id[row])
            if of_control[row]:
                self._see_marker(piece, row, producer_id, read)
            else:
                self._open.setdefault(producer_id, int(table.base_offset[row]))

    def _see_marker(self, piece: WalkedPiece, row: int, producer_id: int, read: ReadBatch) -> None:
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

    def end(self, files: Files, next_offset: int, *, in_use: bool) -> TransactionEdges:
        """All batches went by. Raises OSError."""
        entries = self._entries(files, next_offset, in_use=in_use)
        told = {(entry.producer_id, entry.last_offset): entry for entry in entries}
        ended: dict[int, Ended] = {}
        untold: list[Untold] = []
        for marker in self._markers:
            entry = told.get((marker.producer_id, marker.offset))
            each = Ended(
                marker.kind is ControlRecordType.ABORT,
                marker.first_offset,
                marker.offset,
                None if entry is None else entry.first_offset,
            )
            if marker.producer_id not in ended:
                ended[marker.producer_id] = each
            else:
                untold += _untold(marker.producer_id, each, marker.first_offset)
        self._check_entries(entries)
        return TransactionEdges(ended, dict(self._open), untold)

    def _entries(self, files: Files, next_offset: int, *, in_use: bool) -> list[AbortedTransaction]:
        try:
            data = files.read(self._index_path)
        except FileNotFoundError:
            return []
        if len(data) % ENTRY_BYTES and not in_use:
            self._findings.note(Kind.INDEX, str(self._index_path), "a torn entry at its end")
        entries = [entry for _, entry in entries_of(data)]
        # What was appended since the log was read is not judged.
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
                self._wrong(f"entries do not rise: {last} behind {previous}", last)
            elif last < self._base_offset:
                self._wrong(f"offset {last} lies before the segment", last)
            elif entry.first_offset > last:
                self._wrong(f"a transaction from {entry.first_offset} to {last}", last)
            elif (entry.producer_id, last) in committed:
                self._wrong(
                    f"the transaction of producer {entry.producer_id} that ends at {last} "
                    "was committed",
                    last,
                )
            previous = last

    def _wrong(self, what: str, offset: int) -> None:
        self._findings.problem(Kind.TRANSACTION, str(self._index_path), what, offset=offset)


def _untold(producer_id: int, ended: Ended, first_offset: int | None) -> list[Untold]:
    """What the index should say of a transaction that is known from its first offset on."""
    if not ended.is_aborted or first_offset is None:
        return []
    if ended.told_from is not None and ended.told_from <= first_offset:
        return []
    what = (
        f"the transaction of producer {producer_id} from {first_offset} to {ended.last_offset} "
        "was aborted and is not in it"
    )
    return [Untold(what, first_offset, ended.last_offset)]


class OpenTransactions:
    """Of a partition so far: producer id -> the first offset of its open transaction."""

    def __init__(self) -> None:
        self.first_offsets: dict[int, int] = {}

    def join(self, following: TransactionEdges) -> Iterator[Untold]:
        """The next segment; what its index does not tell."""
        for producer_id, ended in following.ended.items():
            first_offset = self.first_offsets.pop(producer_id, ended.first_offset)
            yield from _untold(producer_id, ended, first_offset)
        yield from following.untold
        for producer_id, first_offset in following.opened.items():
            self.first_offsets.setdefault(producer_id, first_offset)
