"""Checks the batches that were not flushed before an unclean stop: structure and CRC of each.

The log ends before the first corrupt batch: the rest of that segment and all later segments are
dropped. The metadata log also ends where an offset is missing between two segments. Indexes, leader
epochs and producer state are rebuilt from the batches on the way.

Kafka: LogLoader.recoverLog, LogSegment.recover.
"""

import logging

from odradek.protocol.batch_header import (
    LOG_OVERHEAD,
    NO_PARTITION_LEADER_EPOCH,
    CorruptRecordError,
)
from odradek.storage.batch_scan import CorruptBatchError, scan_checked
from odradek.storage.filenames import FileKind
from odradek.storage.index_file import MAX_RELATIVE_OFFSET
from odradek.storage.leader_epochs import LeaderEpochs
from odradek.storage.producer_state import ProducerStates
from odradek.storage.segment import Segment
from odradek.storage.segment_list import SegmentList
from odradek.storage.txn_index import rewrite_aborted

from .epoch_loading import epochs_from_batches, note_epoch
from .log_source import LogSource
from .producer_recovery import rebuild_producer_state, replay_producer
from .segment_loading import drop_segments

_logger = logging.getLogger(__name__)

PROGRESS_LINES = 20  # of the reports on a recovery, however long it is
PROGRESS_FROM_BYTES = 16 << 20  # a single segment with fewer is recovered in a moment


def recover_unflushed(
    source: LogSource, segments: SegmentList, epochs: LeaderEpochs
) -> ProducerStates:
    """Read all unflushed batches and cut the log before the first corrupt one. Raises OSError.

    Returns the producer state at the end of the last batch.
    """
    producers = source.new_producers()
    if not len(segments):
        return producers
    unflushed = segments.between(_first_unflushed(source))
    if epochs.latest is None:
        epochs_from_batches(SegmentList(s for s in segments if s not in unflushed), epochs)
    first = unflushed[0].base_offset
    rebuild_producer_state(producers, segments, source.log_start_offset, first, source.now_ms)
    is_long = len(unflushed) > 1 or unflushed[0].size_bytes >= PROGRESS_FROM_BYTES
    for done, segment in enumerate(unflushed):
        if is_long and should_report(done, len(unflushed)):
            source.report(
                f"{source.directory}: recovering segment {segment.base_offset}, "
                f"{done} of {len(unflushed)} done"
            )
        if done:
            if source.is_whole and segment.base_offset > producers.map_end_offset:
                source.report(f"{source.directory}: no records at {producers.map_end_offset}")
                drop_segments(source, segments, unflushed[done:])
                break
            producers.take_snapshot()
        cut_bytes = recover_segment(segment, epochs, producers)
        if cut_bytes:
            source.report(f"{segment}: {cut_bytes} corrupt bytes at the end were cut")
            drop_segments(source, segments, unflushed[done + 1 :])
            break
    return producers


def should_report(done: int, count: int) -> bool:
    """Whether to report this step: each step if there are few, otherwise every 20th part."""
    return done == 0 or done * PROGRESS_LINES // count != (done - 1) * PROGRESS_LINES // count


def _first_unflushed(source: LogSource) -> int:
    """The first offset whose file a power cut may have changed.

    A preallocated segment whose records were all flushed may have its trailing zeros again: only
    the flush after its close syncs its new length.
    """
    before = 1 if source.config.preallocate else 0
    return max(source.recovery_point - before, 0)


def recover_segment(segment: Segment, epochs: LeaderEpochs, producers: ProducerStates) -> int:
    """Read every batch, cut the segment before the first corrupt one, and rebuild its indexes.

    Returns the number of bytes cut. Kafka: LogSegment.recover.
    """
    size = segment.size_bytes
    segment.reset()
    next_offset, epoch = segment.base_offset, NO_PARTITION_LEADER_EPOCH
    largest_offset = segment.base_offset + MAX_RELATIVE_OFFSET
    aborted = []
    try:
        for position, header, data in scan_checked(segment.files, segment.file, 0, size):
            last_offset = header.base_offset + header.last_offset_delta
            if header.base_offset < next_offset or last_offset > largest_offset:
                reason = f"offset {header.base_offset} where {next_offset} was next"
                raise CorruptBatchError(segment.file, position, reason)  # no CRC covers offsets
            if header.producer_id >= 0:
                transaction = replay_producer(producers, header, segment, position, data)
                if transaction is not None:
                    aborted.append(transaction)
            if header.partition_leader_epoch != epoch:
                note_epoch(epochs, header)
                epoch = header.partition_leader_epoch
            size_bytes = header.batch_length + LOG_OVERHEAD
            segment.note_append(size_bytes, last_offset, header.max_timestamp)
            next_offset = producers.map_end_offset = last_offset + 1
    except CorruptRecordError as error:
        _logger.warning("corrupt batch: %s", error)
    cut_bytes = size - segment.size_bytes
    if cut_bytes:
        segment.files.truncate(segment.file, segment.size_bytes)
        segment.files.fsync(segment.file)
    segment.close_indexes()
    rewrite_aborted(segment.files, segment.path(FileKind.TXN_INDEX), aborted)
    return cut_bytes
