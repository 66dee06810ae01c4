"""Rebuilds the producer state of a log at start, from the newest snapshot and the batches since.

A snapshot holds the last batch of each producer, a running log the last five. A client that got no
response sends all its batches again, and all but the last would be out of order. In a cluster
another replica would know them; a single node has none. So the batches at the end of the log are
read once more for what the snapshot leaves out.
"""

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TypeAlias

from odradek.protocol.batch_header import BatchHeader, CorruptRecordError
from odradek.protocol.compression import Buffer
from odradek.protocol.schema import DecodeError
from odradek.storage.batch_scan import CorruptBatchError
from odradek.storage.producer_entry import BATCHES_KEPT, BatchSpan, ProducerEntry
from odradek.storage.producer_state import CompletedTransaction, ProducerStates
from odradek.storage.segment import Segment
from odradek.storage.segment_list import SegmentList
from odradek.storage.txn_index import AbortedTransaction

_logger = logging.getLogger(__name__)

# By producer id: its epoch and its last batches.
RecentBatches: TypeAlias = dict[int, tuple[int, tuple[BatchSpan, ...]]]

# How many bytes at the log's end are searched for batches that may be sent again. After a clean
# stop there are few: what was appended was also answered.
_RECALLED_BYTES = 4 << 20
_RECALLED_BYTES_AFTER_CLEAN_STOP = 256 << 10


def rebuild_producer_state(
    producers: ProducerStates,
    segments: SegmentList,
    log_start_offset: int,
    end_offset: int,
    now_ms: int,
) -> None:
    """Bring `producers` to `end_offset`: the newest snapshot before it, and the batches since.

    Kafka skips the batches if there is no snapshot after a clean stop, to start quickly after an
    upgrade from versions without snapshots. Here they are read. Kafka: rebuildProducerState.
    """
    # A recovery has just read all batches, and there is no producer.
    was_empty = not producers.producers and producers.map_end_offset >= end_offset
    producers.truncate_and_reload(log_start_offset, end_offset, now_ms)
    replays = end_offset > producers.map_end_offset and not was_empty
    if replays:
        last_two = segments.base_offsets[-2:]
        for segment in segments.between(producers.map_end_offset, end_offset):
            start = max(segment.base_offset, producers.map_end_offset, log_start_offset)
            producers.map_end_offset = start
            if segment.base_offset in last_two:
                producers.take_snapshot()
            _replay_segment(producers, segment, start, end_offset)
    producers.map_end_offset = end_offset
    _correct_open_transactions(producers, segments, log_start_offset, end_offset)
    if replays:
        producers.take_snapshot()


def _correct_open_transactions(
    producers: ProducerStates, segments: SegmentList, log_start_offset: int, end_offset: int
) -> None:
    """End the transactions that are open by a snapshot, but whose markers were cleaned away.

    The cleaner removes a marker when no batch of its transaction is left. A snapshot from between
    the batches and the marker still says that the transaction is open, and nothing that is replayed
    after it says that it has ended. So the first batch of an open transaction must be there: it is
    not before the last stable offset, and never cleaned. Kafka has no such check.

    A transaction that began before the log start is left as it is: its batches may be deleted.
    """
    with suppress(CorruptRecordError):  # then the snapshot is right, as far as is known
        doubtful = {
            producer_id: first_offset
            for first_offset, producer_id in producers.open_transactions
            if first_offset >= log_start_offset
            and not _begins_at(producer_id, segments, first_offset, end_offset)
        }
        if doubtful:
            producers.move_open_transactions(_open_since(doubtful, segments, end_offset))


def _begins_at(producer_id: int, segments: SegmentList, offset: int, end_offset: int) -> bool:
    """Whether a batch of the producer's transaction begins here. Raises CorruptRecordError."""
    for segment in segments.between(offset, end_offset):
        for _, header in segment.headers_from(max(offset, segment.base_offset)):
            if header.last_offset >= offset:
                is_at = header.base_offset == offset and header.producer_id == producer_id
                return is_at and header.is_transactional and not header.is_control
    return False


def _open_since(
    since: Mapping[int, int], segments: SegmentList, end_offset: int
) -> dict[int, int | None]:
    """The first batch of the transaction that each producer has open; None if it has none open.

    `since`: offsets at which they are known to have been open, by producer id. Raises
    CorruptRecordError.
    """
    found: dict[int, int | None] = dict.fromkeys(since)
    start_offset = min(since.values())
    for segment in segments.between(start_offset, end_offset):
        for _, header in segment.headers_from(max(start_offset, segment.base_offset)):
            if header.base_offset >= end_offset:
                return found
            producer_id = header.producer_id
            if producer_id not in since or header.last_offset < since[producer_id]:
                continue
            if header.is_control:
                found[producer_id] = None
            elif header.is_transactional and found[producer_id] is None:
                found[producer_id] = header.base_offset
    return found


def _replay_segment(
    producers: ProducerStates, segment: Segment, start_offset: int, end_offset: int
) -> None:
    try:
        for position, header in segment.headers_from(start_offset):
            if header.base_offset >= end_offset:
                break
            if header.last_offset >= start_offset:
                replay_producer(producers, header, segment, position, None)
    except CorruptRecordError as error:
        # A synced batch is not cut off; a consumer that reads it gets the error.
        _logger.error(
            "the producers of %s are known only up to a corrupt batch: %s", segment, error
        )


def replay_producer(
    producers: ProducerStates,
    header: BatchHeader,
    segment: Segment,
    position: int,
    data: Buffer | None,
) -> AbortedTransaction | None:
    """Apply a stored batch to `producers`. `data`: its bytes, if they are in memory.

    Returns the transaction that its marker aborted, if any. Raises CorruptRecordError if a control
    batch has no marker.
    """
    aborted = None
    if header.producer_id >= 0:
        if header.is_control:
            if data is None:
                data = segment.files.pread_exact(segment.file, header.size_bytes, position)
            try:
                completed = producers.replay_marker(header, data)
            except DecodeError as error:
                raise CorruptBatchError(segment.file, position, str(error)) from error
            if completed is not None and completed.is_aborted:
                aborted = aborted_transaction(producers, completed)
        else:
            producers.update(header, header.base_offset)
    producers.map_end_offset = header.next_offset
    return aborted


def aborted_transaction(
    producers: ProducerStates, completed: CompletedTransaction
) -> AbortedTransaction:
    """The index entry of a transaction that the last marker aborted."""
    unstable = producers.first_unstable_offset
    last_stable_offset = completed.last_offset + 1 if unstable is None else unstable
    return AbortedTransaction(
        completed.producer_id, completed.first_offset, completed.last_offset, last_stable_offset
    )


def recent_batches(producers: ProducerStates) -> RecentBatches:
    """The last batches, up to five, of each producer that has one."""
    return {
        producer_id: (entry.epoch, tuple(entry.batches))
        for producer_id, entry in producers.producers.items()
        if entry.batches
    }


def adopt_recent_batches(producers: ProducerStates, recent: RecentBatches) -> None:
    """Add the recent batches that another process found to the known producers."""
    for producer_id, (epoch, batches) in recent.items():
        known = producers.producers.get(producer_id)
        if known and known.epoch == epoch and known.last_offset == batches[-1].last_offset:
            known.batches[:] = batches


def recall_recent_batches(
    producers: ProducerStates, segments: SegmentList, end_offset: int
) -> None:
    """Read the recent batches of the known producers, up to five, from the end of the log."""
    if producers.producers:
        _recall(producers, _last_bytes(segments, _RECALLED_BYTES), end_offset)


def recall_on_demand(producers: ProducerStates, segments: SegmentList, end_offset: int) -> None:
    """Do the same when a client first sends a batch that does not follow its last one. So a start
    after a clean stop need not read the logs.
    """
    if producers.producers:
        pieces = _last_bytes(segments, _RECALLED_BYTES_AFTER_CLEAN_STOP)
        producers.recall = partial(_recall, producers, pieces, end_offset)


def _recall(
    producers: ProducerStates, pieces: Sequence[tuple[Segment, int]], end_offset: int
) -> None:
    seen: dict[int, ProducerEntry] = {}
    for segment, position in pieces:
        # A segment that was deleted meanwhile or is corrupt is skipped.
        with suppress(CorruptRecordError, OSError):
            for _, header in segment.headers_near(position):
                if header.base_offset >= end_offset:
                    break
                if header.producer_id in producers.producers and not header.is_control:
                    _see(seen, header)
    for producer_id, entry in seen.items():
        known = producers.producers.get(producer_id)
        if known is not None and known.epoch == entry.epoch and known.batches:
            first = known.batches[0].last_offset
            older = [batch for batch in entry.batches if batch.last_offset < first]
            room = BATCHES_KEPT - len(known.batches)
            known.batches[:0] = older[max(len(older) - room, 0) :]


def _see(seen: dict[int, ProducerEntry], header: BatchHeader) -> None:
    producer_id = header.producer_id
    if producer_id not in seen:
        timestamp_ms = header.max_timestamp
        seen[producer_id] = ProducerEntry(producer_id, header.producer_epoch, timestamp_ms)
    seen[producer_id].add(header, header.base_offset)


def _last_bytes(segments: SegmentList, size: int) -> list[tuple[Segment, int]]:
    """The segments that hold the last `size` bytes, and the first position in each."""
    starts = []
    for segment in reversed(list(segments)):
        starts.append((segment, max(segment.size_bytes - size, 0)))
        size -= segment.size_bytes
        if size <= 0:
            break
    return starts[::-1]
