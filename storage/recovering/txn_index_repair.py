"""Finds damaged transaction indexes at start and rebuilds them from the markers.

These files have no checksum. So the length, version and order of the entries are checked, and
whether their offsets fit each other and the segment. A missing file cannot be detected: most
segments have none. The markers of aborted transactions are in the log. Where a transaction began
follows from the producer state at the segment's start and the batches since. Plausible entries are
kept too: after cleaning, the marker may be in another segment.

Kafka: TransactionIndex.sanityCheck, after which LogSegment.recover is called.
"""

import logging
from collections.abc import Iterable

from odradek.protocol.batch_header import CorruptRecordError
from odradek.storage.filenames import FileKind
from odradek.storage.producer_state import ProducerStates
from odradek.storage.segment import Segment
from odradek.storage.segment_list import SegmentList
from odradek.storage.txn_index import ENTRY_BYTES, AbortedTransaction, entries_of, rewrite_aborted

from .producer_recovery import rebuild_producer_state, replay_producer

_logger = logging.getLogger(__name__)


def is_plausible(segment: Segment) -> bool:
    """Whether the entries of the segment's index are plausible. Raises OSError."""
    data = segment.files.read(segment.path(FileKind.TXN_INDEX))
    if len(data) % ENTRY_BYTES:
        return False
    entries = list(entries_of(data))
    lasts = [entry.last_offset for _, entry in entries]
    return lasts == sorted(set(lasts)) and all(
        version == 0 and _fits(segment, entry) for version, entry in entries
    )


def _fits(segment: Segment, entry: AbortedTransaction) -> bool:
    return (
        entry.producer_id >= 0
        and 0 <= entry.first_offset < entry.last_offset
        and entry.last_offset >= segment.base_offset
        and 0 <= entry.last_stable_offset <= entry.last_offset + 1
    )


def rebuild_txn_index(
    segment: Segment,
    segments: SegmentList,
    producers: ProducerStates,
    log_start_offset: int,
    now_ms: int,
) -> None:
    """Rebuild the index. `producers` must be empty, and may not be used afterwards."""
    _logger.warning("rebuilding the transaction index of %s", segment)
    data = segment.files.read(segment.path(FileKind.TXN_INDEX))
    base_offset = segment.base_offset
    rebuild_producer_state(producers, segments, log_start_offset, base_offset, now_ms)
    by_end = {
        entry.last_offset: entry
        for version, entry in entries_of(data)
        if not version and _fits(segment, entry)
    }
    by_end |= {entry.last_offset: entry for entry in _aborted_in(segment, producers)}
    in_order = [entry for _, entry in sorted(by_end.items())]
    rewrite_aborted(segment.files, segment.path(FileKind.TXN_INDEX), in_order)


def _aborted_in(segment: Segment, producers: ProducerStates) -> Iterable[AbortedTransaction]:
    try:
        for position, header in segment.headers_from(segment.base_offset):
            if header.is_transactional:
                aborted = replay_producer(producers, header, segment, position, None)
                if aborted is not None:
                    yield aborted
    except CorruptRecordError as error:
        _logger.error("the transaction index of %s ends early: %s", segment, error)
