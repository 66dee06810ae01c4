"""Which records a consumer with `isolation.level=read_committed` sees.

It sees what comes before the oldest transaction that is not decided (the last stable offset), but
for the data of those that were aborted. Closed segments tell the aborted ones in their `.txnindex`;
since the newest producer snapshot, which tells the open ones, the log itself is looked through.
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
from .segments import OpenSegment, headers_from, list_segments, open_segment, place_before

_logger = logging.getLogger(__name__)


class Aborted(NamedTuple):
    """What this producer wrote in transactions between these offsets does not count."""

    producer_id: int
    first_offset: int
    last_offset: int


class Isolation(NamedTuple):
    """What of a partition's records before `end` is committed."""

    end: int
    aborted: tuple[Aborted, ...] = ()


def without_aborted(table: BatchTable, aborted: Iterable[Aborted]) -> BatchTable:
    """The batches that no aborted transaction wrote."""
    dropped: Bools = np.zeros(table.height, np.bool_)
    for producer_id, first_offset, last_offset in aborted:
        within = (table.base_offset >= first_offset) & (table.base_offset <= last_offset)
        dropped |= (table.producer_id == producer_id) & within
    return table.where(~(dropped & table.is_transactional))


def read_committed(directories: LogDirectories, partition: TopicPartition, end: int) -> Isolation:
    """What is committed of the records before `end`.

    Raises FileNotFoundError, CorruptRecordError.
    """
    while True:
        try:
            return _read(directories.files, directories.required(partition), end)
        except FileNotFoundError:
            # A file was replaced or deleted since it was listed; or all of them are gone.
            if directories.find(partition) is None:
                raise


def _read(files: Files, directory: Path, end: int) -> Isolation:
    known_to, transactions = _newest_snapshot(files, directory, end)
    segments = list_segments(files, directory)
    for segment, following in zip_longest(segments, segments[1:]):
        path = directory / segment_file(segment.base_offset, FileKind.TXN_INDEX)
        for each in read_aborted(files, path):
            transactions.aborted.add(Aborted(each.producer_id, each.first_offset, each.last_offset))
        is_told = following is not None and following.base_offset <= known_to
        if not is_told and segment.base_offset < end:
            transactions.walk(files, open_segment(files, segment), known_to, end)
    last_stable = min([end, *transactions.open.values()])
    return Isolation(last_stable, tuple(sorted(transactions.aborted)))


def _newest_snapshot(files: Files, directory: Path, end: int) -> tuple[int, "_Transactions"]:
    """The newest producer snapshot at or before `end`: its offset, and what was open then."""
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
            _logger.warning("%s does not serve: %s", path, error)
            continue
        is_open = {
            each.producer_id: each.txn_first_offset
            for each in producers
            if each.has_open_transaction
        }
        return offset, _Transactions(is_open)
    return 0, _Transactions({})


class _Transactions:
    """Which transactions are open, by producer id, and which were aborted, on a walk."""

    def __init__(self, is_open: dict[int, int]) -> None:
        self.open = is_open
        self.aborted: set[Aborted] = set()

    def walk(self, files: Files, segment: OpenSegment, start: int, end: int) -> None:
        """See the batches of a segment that lie in [start, end)."""
        for position, header in headers_from(files, segment, place_before(files, segment, start)):
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
            raise CorruptRecordError(f"the marker at {header.base_offset}: {error}") from error
        if kind not in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
            return
        first_offset = self.open.pop(header.producer_id)
        if kind is ControlRecordType.ABORT:
            self.aborted.add(Aborted(header.producer_id, first_offset, header.last_offset))
