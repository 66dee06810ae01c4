"""Checks one segment in a task, and returns what the segments before and after it must match.

The indexes are read before the log, because an entry is written after its batch. A file that does
not exist when it is opened was deleted or replaced since it was listed.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from odradek.pipeline.decoding.decoder import RecordDecoder
from odradek.protocol.batch_header import CorruptRecordError
from odradek.storage.filenames import FileKind, segment_file
from odradek.storage.files import Files, OpenFile
from odradek.storage.inspect.raw_batch import scan_raw
from odradek.storage.inspect.raw_message import UnreadableError
from odradek.storage.producer_snapshot import CorruptSnapshotError, decode_snapshot

from .findings import Finding, Findings, Kind
from .index_check import IndexCheck
from .offset_order import OffsetOrder, SegmentOffsets
from .producers import ProducerBatches, Producers, SequenceViolation
from .segment_walk import BatchChunk, SegmentWalk, batch_bytes
from .transactions import BoundaryTransactions, SegmentTransactions

_MAX_SEQUENCE_GAPS = 20
_CHUNK_BYTES = 1 << 20
_EVERY_OFFSET = (0, 2**63 - 1)
# No header holds keys and headers. So all fields of all records are read and checked.
_READ_ALL = ("offset", "timestamp", "key", "headers")


class FileVersion(NamedTuple):
    """A file that has the same version has not been changed."""

    inode: int
    size_bytes: int
    mtime_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentWork:
    """A segment as it was listed. `snapshots` are the offsets of producer snapshots to read.

    `is_active`: it is the last segment, and its broker is running or was killed. So its end may be
    incomplete.
    """

    directory: Path
    base_offset: int
    size_bytes: int
    versions: tuple[FileVersion | None, ...]  # of its files
    is_active: bool
    snapshots: tuple[int, ...] = ()
    deep: bool = False

    @property
    def path(self) -> Path:
        return self.directory / segment_file(self.base_offset, FileKind.LOG)


@dataclass(slots=True, kw_only=True)
class SegmentResult:
    """The result for one segment. `is_gone`: it no longer existed."""

    work: SegmentWork
    findings: list[Finding]
    is_gone: bool = False
    log_bytes: int = 0
    offsets: SegmentOffsets = field(default_factory=lambda: SegmentOffsets(next_offset=0))
    knows_end: bool = True
    has_broken: bool = False
    producers: dict[int, ProducerBatches] = field(default_factory=dict)
    sequence_gaps: list[SequenceViolation] = field(default_factory=list)
    transactions: BoundaryTransactions = field(
        default_factory=lambda: BoundaryTransactions({}, {}, [])
    )


def check_segments(works: list[SegmentWork]) -> Iterator[SegmentResult]:
    """Check the segments of one task."""
    for work in works:
        yield check_segment(Files(), work)


def check_segment(files: Files, work: SegmentWork) -> SegmentResult:
    """Check one segment. Errors in its files become findings and are not raised."""
    findings = Findings()
    try:
        result = _SegmentCheck(files, work, findings).run()
    except FileNotFoundError:
        return SegmentResult(work=work, findings=[], is_gone=True)
    except OSError as error:
        findings.problem(Kind.FILE, str(work.path), f"cannot be read: {error}")
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
        self._indexes = IndexCheck(files, work.path, base, findings, is_active=work.is_active)
        self._file: OpenFile = files.open(work.path, read_only=True)
        self._size_bytes = self._file.append_position
        self._order = OffsetOrder(base, self._path, findings)
        self._producers = Producers()
        self._sequence_gaps: list[SequenceViolation] = []
        self._transactions = SegmentTransactions(work.path, base, findings)

    def run(self) -> SegmentResult:
        """Check the segment. Raises OSError."""
        work, order = self._work, self._order
        walk = SegmentWalk(self._files, self._file, self._size_bytes, self._findings)
        for chunk in walk.chunks():
            self._check(chunk, walk)
        self._check_end(walk)
        is_lost = walk.stopped_by is not None
        self._indexes.finish(walk.end, is_lost=is_lost, has_broken=bool(walk.broken))
        transactions = self._transactions.finish(
            self._files, order.offsets.next_offset, is_active=work.is_active
        )
        return SegmentResult(
            work=work,
            findings=[],
            log_bytes=self._size_bytes,
            offsets=order.offsets,
            knows_end=not is_lost and order.knows_end(walk.broken),
            has_broken=bool(walk.broken) or is_lost,
            producers=self._producers.batches,
            sequence_gaps=self._sequence_gaps,
            transactions=transactions,
        )

    def _check(self, chunk: BatchChunk, walk: SegmentWalk) -> None:
        self._order.check(chunk, walk.broken)
        self._indexes.check(chunk, walk.end, walk.broken)
        if not chunk.is_messages:
            self._check_producers(chunk)
            self._transactions.add(chunk, self._read)
        if self._work.deep:
            self._read_records(chunk)

    def _check_producers(self, chunk: BatchChunk) -> None:
        for violation in self._producers.check(chunk.table):
            if not violation.is_gap:
                add_violation(violation, self._path, self._findings)
            elif len(self._sequence_gaps) < _MAX_SEQUENCE_GAPS:
                self._sequence_gaps.append(violation)

    def _read(self, chunk: BatchChunk, row: int) -> bytes:
        return batch_bytes(chunk, row, self._files, self._file)

    # --- after the last whole batch

    def _check_end(self, walk: SegmentWalk) -> None:
        left = self._size_bytes - walk.end
        if not left or (self._work.is_active and self._is_zero_from(walk.end)):
            return
        if walk.stopped_by is not None:
            what = f"cannot be read from here on: {walk.stopped_by}"
            self._findings.problem(Kind.STRUCTURE, self._path, what, position=walk.end)
        elif not self._work.is_active:
            what = f"{left} bytes after the last whole batch"
            self._findings.problem(Kind.STRUCTURE, self._path, what, position=walk.end)

    def _is_zero_from(self, position: int) -> bool:
        """Whether the rest is zeros: preallocated, or left by a power failure."""
        while data := self._files.pread(self._file, _CHUNK_BYTES, position):
            if data.strip(b"\0"):
                return False
            position += len(data)
        return True

    # --- within batches

    def _read_records(self, chunk: BatchChunk) -> None:
        if not chunk.is_messages and self._is_readable(chunk):
            return
        for row in range(chunk.table.height):
            position, offset = int(chunk.table.position[row]), int(chunk.table.base_offset[row])
            why = self._fault_inside(position, position + int(chunk.table.size_bytes[row]))
            if why is not None:
                what = f"the batch cannot be read, although its checksum is correct: {why}"
                self._findings.problem(
                    Kind.RECORDS, self._path, what, position=position, offset=offset
                )

    def _is_readable(self, chunk: BatchChunk) -> bool:
        """Whether all records of many batches can be read and their offsets ascend."""
        decoder = RecordDecoder("", 0, _READ_ALL)
        if not chunk.data:
            return False
        table = chunk.relative_table
        last_offset = -1
        try:
            for records in decoder.decode(chunk.data, table, *_EVERY_OFFSET):
                offsets = records.column(0).to_numpy()
                ascends = (offsets[1:] > offsets[:-1]).all() and offsets[0] > last_offset
                last_offset = int(offsets[-1])
                if not ascends:
                    return False
        except CorruptRecordError:
            return False
        return last_offset <= int(table.last_offset[-1])

    def _fault_inside(self, position: int, end: int) -> str | None:
        try:
            for raw in scan_raw(self._files, self._file, position, end):
                previous = -1
                for record in raw.records():
                    if not previous < record.offset <= raw.last_offset:
                        return f"offset {record.offset} follows {previous}"
                    previous = record.offset
        except UnreadableError as error:
            return str(error)
        return None


def add_violation(violation: SequenceViolation, path: str, findings: Findings) -> None:
    """Add it as a problem."""
    findings.problem(
        Kind.SEQUENCE, path, violation.what, position=violation.position, offset=violation.offset
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
