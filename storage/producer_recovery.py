"""The producers of a log after a start: from the newest snapshot, and from the batches since.

A snapshot holds the last batch of each producer, a living log the last five: a client that never
heard of its batches sends them all again, and all but the last would look out of order. Another
replica would know; on a single node there is none. So the batches at the end of the log are looked
through once more for what the snapshot leaves out.
"""

from ..protocol.batch_header import BatchHeader
from ..protocol.compression import Buffer
from .producer_entry import ProducerEntry
from .producer_state import ProducerStates
from .segment import Segment
from .segment_list import SegmentList
from .txn_index import AbortedTransaction

# How far back from the log's end a batch may lie and be recognized when it is sent again. After a
# clean stop few are: what was appended was also answered.
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

    Kafka skips the batches where no snapshot is left after a clean stop, to start quickly after an
    upgrade from versions that had none; here they are read. Kafka: rebuildProducerState.
    """
    was_empty = not producers.producers and producers.map_end_offset >= end_offset
    producers.truncate_and_reload(log_start_offset, end_offset, now_ms)
    if end_offset > producers.map_end_offset and not was_empty:
        last_two = segments.base_offsets[-2:]
        for segment in segments.between(producers.map_end_offset, end_offset):
            start = max(segment.base_offset, producers.map_end_offset, log_start_offset)
            producers.update_map_end_offset(start)
            if segment.base_offset in last_two:
                producers.take_snapshot()
            _replay_segment(producers, segment, start, end_offset)
    producers.update_map_end_offset(end_offset)
    producers.take_snapshot()


def _replay_segment(
    producers: ProducerStates, segment: Segment, start_offset: int, end_offset: int
) -> None:
    for position, header in segment.headers_from(start_offset):
        if header.base_offset >= end_offset:
            break
        if header.last_offset >= start_offset:
            replay_producer(producers, header, segment, position, None)


def replay_producer(
    producers: ProducerStates,
    header: BatchHeader,
    segment: Segment,
    position: int,
    data: Buffer | None,
) -> AbortedTransaction | None:
    """Tell `producers` of a batch that lies in a segment; `data` where it is at hand already.

    Returns the transaction that a marker in it aborted.
    """
    aborted = None
    if header.producer_id >= 0:
        if header.is_control:
            if data is None:
                data = segment.files.pread_exact(segment.file, header.size_bytes, position)
            aborted = end_transaction(producers, header, data)
        else:
            producers.update(header, header.base_offset)
    producers.update_map_end_offset(header.next_offset)
    return aborted


def end_transaction(
    producers: ProducerStates, header: BatchHeader, data: Buffer
) -> AbortedTransaction | None:
    """Tell `producers` of a marker; returns the transaction that it aborted."""
    completed = producers.end_transaction(header, data)
    if completed is None or not completed.is_aborted:
        return None
    unstable = producers.first_unstable_offset
    last_stable_offset = completed.last_offset + 1 if unstable is None else unstable
    return AbortedTransaction(
        completed.producer_id, completed.first_offset, completed.last_offset, last_stable_offset
    )


def recall_recent_batches(producers: ProducerStates, segments: SegmentList, *, clean: bool) -> None:
    """Give the producers that are known the batches before their last, up to five, as in life."""
    if not producers.producers:
        return
    seen: dict[int, ProducerEntry] = {}
    for segment, position in _last_bytes(
        segments, _RECALLED_BYTES_AFTER_CLEAN_STOP if clean else _RECALLED_BYTES
    ):
        for _, header in segment.headers_near(position):
            if header.producer_id in producers.producers and not header.is_control:
                _see(seen, header)
    for producer_id, entry in seen.items():
        known = producers.producers[producer_id]
        if entry.epoch == known.epoch and entry.last_offset == known.last_offset:
            known.batches = entry.batches


def _see(seen: dict[int, ProducerEntry], header: BatchHeader) -> None:
    producer_id = header.producer_id
    if producer_id not in seen:
        timestamp_ms = header.max_timestamp
        seen[producer_id] = ProducerEntry(producer_id, header.producer_epoch, timestamp_ms)
    seen[producer_id].add(header, header.base_offset)


def _last_bytes(segments: SegmentList, size: int) -> list[tuple[Segment, int]]:
    """Segments, and positions in them, from which on the last `size` bytes lie."""
    starts = []
    for segment in reversed(list(segments)):
        starts.append((segment, max(segment.size_bytes - size, 0)))
        size -= segment.size_bytes
        if size <= 0:
            break
    return starts[::-1]
