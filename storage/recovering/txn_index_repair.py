"""Finds damaged transaction indexes at start and rebuilds them from the markers.

These files have no checksum. So the length, version and order of the entries are checked, and
whether their offsets fit each other and the segment. A missing file cannot be detected: most
segments have none.

The markers of aborted transactions are in the log. Where a transaction began follows from the
producer state at the segment's start and the batches since. After a batch that cannot be read this
is not known. There a plausible entry is kept if it may be right: if the marker that it names is an
abort marker, or cannot be read. Other entries are dropped: one that is wrong would hide committed
records from consumers, and the cleaner would delete them.

Kafka: TransactionIndex.sanityCheck, after which LogSegment.recover is called. The first accepts an
empty file, and does not check that the entries are not after the segment. The second keeps no
entry.
"""

import logging
from collections.abc import Iterable, Mapping

from odradek.protocol.batch_header import BatchHeader, CorruptRecordError
from odradek.protocol.record import read_records
from odradek.protocol.records.control import ControlRecordType, control_type
from odradek.storage.filenames import FileKind
from odradek.storage.producer_state import ProducerStates
from odradek.storage.segment import Segment
from odradek.storage.segment_list import SegmentList
from odradek.storage.txn_index import ENTRY_BYTES, AbortedTransaction, entries_of, rewrite_aborted

from .producer_recovery import rebuild_producer_state, replay_producer

_logger = logging.getLogger(__name__)


def is_plausible(segment: Segment, end_offset: int) -> bool:
    """Whether the entries of the segment's index are plausible. Raises OSError.

    `end_offset` is the offset after the segment: the next one begins there, or the log ends.
    """
    data = segment.files.read(segment.path(FileKind.TXN_INDEX))
    if not data or len(data) % ENTRY_BYTES:  # without entries there is no file
        return False
    entries = list(entries_of(data))
    lasts = [entry.last_offset for _, entry in entries]
    return lasts == sorted(set(lasts)) and all(
        version == 0 and _fits(segment, end_offset, entry) for version, entry in entries
    )


def _fits(segment: Segment, end_offset: int, entry: AbortedTransaction) -> bool:
    return (
        entry.producer_id >= 0
        and 0 <= entry.first_offset < entry.last_offset
        and segment.base_offset <= entry.last_offset < end_offset
        and 0 <= entry.last_stable_offset <= entry.last_offset + 1
    )


def rebuild_txn_index(
    segment: Segment,
    segments: SegmentList,
    end_offset: int,
    producers: ProducerStates,
    log_start_offset: int,
    now_ms: int,
) -> None:
    """Rebuild the index. `producers` must be empty, and may not be used afterwards."""
    _logger.warning("rebuilding the transaction index of %s", segment)
    data = segment.files.read(segment.path(FileKind.TXN_INDEX))
    plausible = {
        entry.last_offset: entry
        for version, entry in entries_of(data)
        if not version and _fits(segment, end_offset, entry)
    }
    base_offset = segment.base_offset
    rebuild_producer_state(producers, segments, log_start_offset, base_offset, now_ms)
    entries = sorted(_entries(segment, producers, plausible), key=lambda each: each.last_offset)
    rewrite_aborted(segment.files, segment.path(FileKind.TXN_INDEX), entries)


def _entries(
    segment: Segment, producers: ProducerStates, plausible: Mapping[int, AbortedTransaction]
) -> Iterable[AbortedTransaction]:
    """Yield the entries of the segment's markers. `plausible` are those of the damaged index."""
    end_offset, end_position = segment.base_offset, 0
    try:
        for position, header in segment.headers_from(segment.base_offset):
            if header.is_transactional:
                aborted = replay_producer(producers, header, segment, position, data=None)
                if aborted is None:
                    entry = plausible.get(header.base_offset)
                    aborted = _confirmed(entry, segment, position, header)
                if aborted is not None:
                    yield aborted
            end_offset, end_position = header.next_offset, position + header.size_bytes
    except CorruptRecordError as error:
        _logger.error("the transaction index of %s is not checked further: %s", segment, error)
    if end_position < segment.size_bytes:
        yield from (entry for entry in plausible.values() if entry.last_offset >= end_offset)


def _confirmed(
    entry: AbortedTransaction | None, segment: Segment, position: int, header: BatchHeader
) -> AbortedTransaction | None:
    """Return the entry if the batch is the abort marker of its producer."""
    if entry is None or entry.producer_id != header.producer_id or not header.is_control:
        return None
    data = segment.files.pread_exact(segment.file, header.size_bytes, position)
    marker = next(read_records(data, header=header), None)
    is_abort = marker is not None and control_type(marker.key) is ControlRecordType.ABORT
    return entry if is_abort else None
