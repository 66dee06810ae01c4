"""Splits a segment whose offsets do not fit its index.

Kafka before 2.0 could merge segments whose offsets are more than 2**31-1 apart; an index entry has
32 bits for the difference. The batches are copied byte for byte; a new segment begins with each
batch that does not fit the one before.

Kafka: LocalLog.splitOverflowedSegment (KAFKA-6264).
"""

from pathlib import Path

from odradek.protocol.any_batch import read_any_header
from odradek.storage.batch_scan import CorruptBatchError, scan_headers
from odradek.storage.filenames import FileKind, segment_file
from odradek.storage.index_file import MAX_RELATIVE_OFFSET
from odradek.storage.segment import Segment
from odradek.storage.segment_settings import SegmentSettings
from odradek.storage.txn_index import AbortedTransaction, read_aborted

from .cleaned_segment import CleanedSegmentWriter
from .input import CleanerInput
from .task import CleanedGroup, SegmentToClean

_NO_END = 1 << 63


def overflows(segment: Segment) -> bool:
    """Whether an offset of the segment does not fit an index entry. Reads all batch headers."""
    last_offset = segment.base_offset
    try:
        for _, header in scan_headers(segment.files, segment.file, 0, segment.size_bytes):
            if header.base_offset < last_offset:
                return False  # corrupt: offsets must ascend
            last_offset = header.last_offset
    except CorruptBatchError:
        return False
    return last_offset - segment.base_offset > MAX_RELATIVE_OFFSET


def split_segment(
    source: CleanerInput, directory: Path, segment: SegmentToClean, settings: SegmentSettings
) -> CleanedGroup:
    """Write the parts as `.cleaned` files. Raises CorruptBatchError, OSError."""
    path = directory / segment_file(segment.base_offset, FileKind.LOG)
    parts: list[CleanedSegmentWriter] = []

    def begin(base_offset: int) -> None:
        parts.append(CleanedSegmentWriter(source, directory, base_offset, settings))

    try:
        begin(segment.base_offset)
        file = source.files.open(path, read_only=True)
        for stored in source.batches(file, 0, segment.size_bytes, _NO_END):
            if stored.last_offset - parts[-1].base_offset > MAX_RELATIVE_OFFSET:
                begin(stored.base_offset)
            parts[-1].add(
                stored.data, stored.last_offset, read_any_header(stored.data).max_timestamp
            )
        return _finished(source, path, segment, parts)
    except BaseException:
        for part in parts:
            part.discard()
        raise


def _finished(
    source: CleanerInput,
    path: Path,
    segment: SegmentToClean,
    parts: list[CleanedSegmentWriter],
) -> CleanedGroup:
    modified_ms = source.files.modified_ms(path)
    aborted = read_aborted(source.files, path.with_suffix(FileKind.TXN_INDEX))
    bounds = [part.base_offset for part in parts[1:]] + [_NO_END]
    finished = []
    for part, bound in zip(parts, bounds, strict=True):
        finished.append(part.finish(_within(aborted, part.base_offset, bound), modified_ms))
    return CleanedGroup((segment.base_offset,), tuple(finished))


def _within(
    aborted: list[AbortedTransaction], start_offset: int, end_offset: int
) -> list[AbortedTransaction]:
    """The transactions whose markers are in [start_offset, end_offset)."""
    return [each for each in aborted if start_offset <= each.last_offset < end_offset]
