"""Finds the records that a consumer with `isolation.level=read_committed` sees.

These are the records before the oldest open transaction (before the last stable offset), without
data of aborted transactions. The `.txnindex` of each closed segment lists the aborted transactions.
The newest producer snapshot lists the open ones. The log after the snapshot is scanned.
"""

import logging
from collections.abc import Iterable
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

import numpy as np

from odradek.pipeline.decoding.batch_table import BatchTable
from odradek.pipeline.decoding.varints import Bools
from odradek.protocol.batch_header import BatchHeader, CorruptRecordError
from odradek.protocol.record import read_records
from odradek.protocol.records.control import ControlRecordType, control_type
from odradek.protocol.schema import DecodeError
from odradek.storage.filenames import FileKind, FileState, parse_segment_file, segment_file
from odradek.storage.files import Files
from odradek.storage.producer_snapshot import CorruptSnapshotError, decode_snapshot
from odradek.storage.txn_index import read_aborted

from .partitions import LogDirectories, TopicPartition
from .segments import OpenSegment, headers_from, list_segments, open_segment, position_before

_logger = logging.getLogger(__name__)


class AbortedRange(NamedTuple):
    """Transactional records of this producer between these offsets, inclusive, are aborted."""

    producer_id: int
    first_offset: int
    last_offset: int


class CommittedPart(NamedTuple):
    """The records before `end`, the last stable offset, without the aborted ones, are committed."""

    end: int
    aborted: tuple[AbortedRange, ...] = ()


def without_aborted(table: BatchTable, aborted: Iterable[AbortedRange]) -> BatchTable:
    """Return the batches that are in no aborted transaction."""
    dropped: Bools = np.zeros(table.height, np.bool_)
    for producer_id, first_offset, last_offset in aborted:
        within = (table.base_offset >= first_offset) & (table.base_offset <= last_offset)
        dropped |= (table.producer_id == producer_id) & within
    return table.where(~(dropped & table.is_transactional))


def committed_part(
    directories: LogDirectories, partition: TopicPartition, end: int
) -> CommittedPart:
    """Return the committed part of the records before `end`.

    Raises FileNotFoundError, CorruptRecordError.
    """
    return directories.retry(partition, lambda path: _committed_part(directories.files, path, end))


def _committed_part(files: Files, directory: Path, end: int) -> CommittedPart:
    snapshot_offset, transactions = _newest_snapshot(files, directory, end)
    segments = list_segments(files, directory)
    for segment, following in zip_longest(segments, segments[1:]):
        path = directory / segment_file(segment.base_offset, FileKind.TXN_INDEX)
        for each in read_aborted(files, path):
            aborted = AbortedRange(each.producer_id, each.first_offset, each.last_offset)
            transactions.aborted.add(aborted)
        ends_before_snapshot = following is not None and following.base_offset <= snapshot_offset
        if not ends_before_snapshot and segment.base_offset < end:
            transactions.walk(files, open_segment(files, segment), snapshot_offset, end)
    last_stable = min([end, *transactions.open.values()])
    return CommittedPart(last_stable, tuple(sorted(transactions.aborted)))


def _newest_snapshot(files: Files, directory: Path, end: int) -> tuple[int, "_Transactions"]:
    """Return the newest producer snapshot up to `end`: its offset and its open transactions."""
    offsets = [
        parsed.offset
        for parsed in map(parse_segment_file, files.list_directory(directory))
        if parsed is not None
        and parsed.kind is FileKind.PRODUCER_SNAPSHOT
        and parsed.state is FileState.LIVE
        and parsed.offset <= end
    ]
    for offset in sorted(offsets, reverse=True):
        path = directory / segment_file(offset, FileKind.PRODUCER_SNAPSHOT)
        try:
            producers = decode_snapshot(files.read(path))
        except (CorruptSnapshotError, FileNotFoundError) as error:
            _logger.warning("%s is ignored: %s", path, error)
            continue
        open_transactions = {
            each.producer_id: each.txn_first_offset
            for each in producers
            if each.has_open_transaction
        }
        return offset, _Transactions(open_transactions)
    return 0, _Transactions({})


class _Transactions:
    """The open transactions (first offset by producer id) and the aborted ones, during a walk."""

    def __init__(self, open_transactions: dict[int, int]) -> None:
        self.open = open_transactions
        self.aborted: set[AbortedRange] = set()

    def walk(self, files: Files, segment: OpenSegment, start: int, end: int) -> None:
        """Add the batches of a segment in [start, end)."""
        begin = position_before(files, segment, start)
        for position, header in headers_from(files, segment, begin):
            if header.base_offset >= end:
                return
            if header.last_offset < start or not header.is_transactional:
                continue
            if not header.is_control:
                self.open.setdefault(header.producer_id, header.base_offset)
            elif header.producer_id in self.open:
                data = files.pread_exact(segment.file, header.size_bytes, position)
                self._end(header, data)

    def _end(self, header: BatchHeader, data: bytes) -> None:
        marker = next(read_records(data, header=header), None)
        try:
            kind = None if marker is None else control_type(marker.key)
        except DecodeError as error:
            raise CorruptRecordError(f"marker at offset {header.base_offset}: {error}") from error
        if kind not in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
            return
        first_offset = self.open.pop(header.producer_id)
        if kind is ControlRecordType.ABORT:
            self.aborted.add(AbortedRange(header.producer_id, first_offset, header.last_offset))
