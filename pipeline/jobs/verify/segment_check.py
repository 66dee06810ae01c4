"""One segment, in a task: what is wrong in it, and what those beside it must fit.

The indexes are read first, then the log: what is added to an index is in the log before. Files that
are gone when they are opened were deleted or replaced since they were listed.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from odradek.pipeline.decoding.decoder import RecordDecoder
from odradek.protocol.batch_header import CorruptRecordError
from odradek.storage.filenames import FileKind, segment_file
from odradek.storage.files import Files, OpenFile
from odradek.storage.inspect.raw_batch import scan_raw
from odradek.storage.inspect.raw_message import UnreadableError
from odradek.storage.producer_snapshot import CorruptSnapshotError, decode_snapshot

from .findings import Finding, Findings, Kind
from .index_check import IndexCheck
from .order import Gap, Order
from .producers import Misstep, ProducerEdges, Producers
from .segment_walk import SegmentWalk, WalkedPiece, batch_bytes
from .transactions import TransactionEdges, Transactions

_MISSTEPS_KEPT = 20
_CHUNK_BYTES = 1 << 20
_EVERY_OFFSET = (0, 2**63 - 1)
# Two columns that no header tells: all fields of the records are then read, and held to be sound.
_READ_ALL = ("offset", "timestamp", "key", "headers")

Stamp = tuple[tuple[int, int, int] | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentWork:
    """A segment as it was listed. `snapshots` are offsets of producer snapshots to be read."""

    directory: Path
    base_offset: int
    size_bytes: int
    stamp: Stamp  # inode, size and time of change of its files: the same is there again
    in_use: bool
    snapshots: tuple[int, ...] = ()
    deep: bool = False

    @property
    def path(self) -> Path:
        return self.directory / segment_file(self.base_offset, FileKind.LOG)


@dataclass(slots=True, kw_only=True)
class SegmentResult:
    """What was found. `is_gone`: the segment was not there any more."""

    work: SegmentWork
    findings: list[Finding]
    is_gone: bool = False
    log_bytes: int = 0
    batches: int = 0
    records: int = 0
    next_offset: int = 0
    knows_end: bool = True
    has_broken: bool = False
    was_cleaned: bool = False
    gaps: list[Gap] = field(default_factory=list)
    gap_count: int = 0
    missing_offsets: int = 0
    leader_epochs: tuple[int, int] = (-1, -1)
    producers: dict[int, ProducerEdges] = field(default_factory=dict)
    skips: list[Misstep] = field(default_factory=list)
    transactions: TransactionEdges = field(default_factory=lambda: TransactionEdges({}, {}, []))


def check_segments(works: list[SegmentWork]) -> Iterator[SegmentResult]:
    """The work of one task."""
    for work in works:
        yield check_segment(Files(), work)


def check_segment(files: Files, work: SegmentWork) -> SegmentResult:
    """Look at one segment. Nothing is raised for what lies there: it is a finding."""
    findings = Findings()
    try:
        result = _SegmentCheck(files, work, findings).run()
    except FileNotFoundError:
        return SegmentResult(work=work, findings=[], is_gone=True)
    except OSError as error:
        findings.problem(Kind.FILE, str(work.path), f"it cannot be read: {error}")
        result = SegmentResult(work=work, findings=[], knows_end=False)
    for offset in work.snapshots:
        _check_snapshot(files, work.directory, offset, findings)
    result.findings = findings.all()
    return result


class _SegmentCheck:
    def __init__(self, files: Files, work: SegmentWork, findings: Findings) -> None:
        self._files = files
        self._work = work
        self._findings = findings
        self._path = str(work.path)
        base = work.base_offset
        self._indexes = IndexCheck(files, work.path, base, findings, in_use=work.in_use)
        self._file: OpenFile = files.open(work.path, read_only=True)
        self._size_bytes = self._file.append_position
        self._order = Order(base, self._path, findings)
        self._producers = Producers()
        self._skips: list[Misstep] = []
        self._transactions = Transactions(work.path, base, findings)

    def run(self) -> SegmentResult:
        """Raises OSError."""
        work, order = self._work, self._order
        walk = SegmentWalk(self._files, self._file, self._size_bytes, self._findings)
        for piece in walk.pieces():
            self._see(piece, walk)
        self._check_end(walk)
        self._indexes.end(walk.end, is_lost=walk.lost is not None, has_broken=bool(walk.broken))
        transactions = self._transactions.end(self._files, order.next_offset, in_use=work.in_use)
        return SegmentResult(
            work=work,
            findings=[],
            log_bytes=self._size_bytes,
            batches=order.batches,
            records=order.records,
            next_offset=order.next_offset,
            knows_end=walk.lost is None and order.knows_end(walk.broken),
            has_broken=bool(walk.broken) or walk.lost is not None,
            was_cleaned=order.was_cleaned,
            gaps=order.gaps,
            gap_count=order.gap_count,
            missing_offsets=order.missing_offsets,
            leader_epochs=(order.first_epoch, order.last_epoch),
            producers=self._producers.edges,
            skips=self._skips,
            transactions=transactions,
        )

    def _see(self, piece: WalkedPiece, walk: SegmentWalk) -> None:
        self._order.see(piece, walk.broken)
        self._indexes.see(piece, walk.end, walk.broken)
        if not piece.is_messages:
            self._see_producers(piece)
            self._transactions.see(piece, self._read)
        if self._work.deep:
            self._read_records(piece)

    def _see_producers(self, piece: WalkedPiece) -> None:
        for misstep in self._producers.see(piece.table):
            if not misstep.skips:
                tell_misstep(misstep, self._path, self._findings)
            elif len(self._skips) < _MISSTEPS_KEPT:
                self._skips.append(misstep)

    def _read(self, piece: WalkedPiece, row: int) -> bytes:
        return batch_bytes(piece, row, self._files, self._file)

    # --- what is behind the last whole batch

    def _check_end(self, walk: SegmentWalk) -> None:
        left = self._size_bytes - walk.end
        if not left or (self._work.in_use and self._is_zero_from(walk.end)):
            return
        if walk.lost is not None:
            what = f"nothing behind it can be read: {walk.lost}"
            self._findings.problem(Kind.STRUCTURE, self._path, what, position=walk.end)
        elif not self._work.in_use:
            what = f"{left} bytes behind the last whole batch"
            self._findings.problem(Kind.STRUCTURE, self._path, what, position=walk.end)

    def _is_zero_from(self, position: int) -> bool:
        """What is preallocated, or was before a power cut, and not used yet."""
        while data := self._files.pread(self._file, _CHUNK_BYTES, position):
            if data.strip(b"\0"):
                return False
            position += len(data)
        return True

    # --- what is inside of batches

    def _read_records(self, piece: WalkedPiece) -> None:
        if piece.is_messages:
            rows = range(piece.table.height)
        else:
            rows = range(0) if self._is_readable(piece) else range(piece.table.height)
        for row in rows:
            position, offset = int(piece.table.position[row]), int(piece.table.base_offset[row])
            why = self._fault_inside(position, position + int(piece.table.size_bytes[row]))
            if why is not None:
                what = f"its checksum is right, and it cannot be read: {why}"
                self._findings.problem(
                    Kind.RECORDS, self._path, what, position=position, offset=offset
                )

    def _is_readable(self, piece: WalkedPiece) -> bool:
        """Of many batches at once: whether all records can be read, and their offsets rise."""
        decoder = RecordDecoder("", 0, _READ_ALL)
        if not piece.data:
            return False
        table = piece.relative_table
        last_offset = -1
        try:
            for records in decoder.decode(piece.data, table, *_EVERY_OFFSET):
                offsets = records.column(0).to_numpy()
                rises = (offsets[1:] > offsets[:-1]).all() and offsets[0] > last_offset
                last_offset = int(offsets[-1])
                if not rises:
                    return False
        except CorruptRecordError:
            return False
        return last_offset <= int(table.last_offset[-1])

    def _fault_inside(self, position: int, behind: int) -> str | None:
        try:
            for raw in scan_raw(self._files, self._file, position, behind):
                previous = -1
                for record in raw.records():
                    if not previous < record.offset <= raw.last_offset:
                        return f"offset {record.offset} behind {previous}"
                    previous = record.offset
        except UnreadableError as error:
            return str(error)
        return None


def tell_misstep(misstep: Misstep, path: str, findings: Findings) -> None:
    """As a problem."""
    findings.problem(
        Kind.SEQUENCE, path, misstep.what, position=misstep.position, offset=misstep.offset
    )


def _check_snapshot(files: Files, directory: Path, offset: int, findings: Findings) -> None:
    path = directory / segment_file(offset, FileKind.PRODUCER_SNAPSHOT)
    try:
        decode_snapshot(files.read(path))
    except FileNotFoundError:
        return
    except (CorruptSnapshotError, OSError) as error:
        what = f"the producer snapshot cannot be read: {error}"
        findings.problem(Kind.SNAPSHOT, str(path), what)
