"""Loads a log from the files in its directory. Kafka: LogLoader.

What a crash may leave, and how it is handled:

- `.deleted` files are removed. So are `.cleaned` files of an unfinished cleaning. For `.swap` files
  of a finished cleaning, the segments that they replace are removed, then the suffix is.
- Index files without a .log file are removed. Missing indexes of a .log file are rebuilt.
- After an unclean stop, all segments from the one with the recovery point on are read: structure
  and CRC of each batch. Their indexes are rebuilt. The log ends before the first corrupt batch: the
  rest of that segment and all later segments are dropped.
- A missing or damaged leader-epoch-checkpoint is rebuilt from the batch headers, a producer
  snapshot from the previous snapshot and the batches since.

After a clean stop only the end of the last segment is read. If it is not a whole batch, that
segment is recovered as after an unclean stop.

Rebuilt files are not synced here. A snapshot has a checksum. Leader epochs that a power cut damages
are rebuilt from the batches that are read again: the recovery point does not change until the log
is flushed, so the next start reads from there again.
"""

from odradek.storage.batch_scan import CorruptBatchError
from odradek.storage.filenames import FileKind, SegmentFileName
from odradek.storage.leader_epochs import LeaderEpochs
from odradek.storage.producer_state import ProducerStates
from odradek.storage.segment import Segment
from odradek.storage.segment_list import SegmentList
from odradek.storage.segment_settings import SegmentSettings

from .epoch_loading import load_epochs
from .interrupted_swaps import finish_interrupted_swaps
from .log_source import LoadedLog, LogSource
from .producer_recovery import (
    adopt_recent_batches,
    rebuild_producer_state,
    recall_on_demand,
    recall_recent_batches,
)
from .segment_loading import drop_segments, load_segments, split_overflowing
from .txn_index_repair import is_plausible, rebuild_txn_index
from .unflushed import recover_segment, recover_unflushed


def load_log(source: LogSource) -> LoadedLog:
    """Load the log; recover it if it was not closed; create an empty one if there is none.

    Raises OSError.
    """
    is_found = source.files.exists(source.directory)
    if not is_found:
        source.files.make_directory(source.directory)
    names = finish_interrupted_swaps(source)
    segments = load_segments(source, names)
    split_overflowing(source, segments)
    epochs = load_epochs(source, segments)
    producers = None
    if not source.had_clean_shutdown and source.recovered is None:
        producers = recover_unflushed(source, segments, epochs)
    end_offset = _check_end(source, segments, epochs, producers)
    has_rebuilt = _check_txn_indexes(source, segments, names, end_offset)
    log_start_offset = max(source.log_start_offset, segments[0].base_offset)
    epochs.truncate_from_end(end_offset)
    epochs.truncate_from_start(log_start_offset)
    if not source.had_clean_shutdown:
        epochs.flush(sync=False)
    if producers is None or producers.map_end_offset != end_offset:
        producers = source.new_producers()
    elif has_rebuilt:
        producers.list_snapshots()
    producers.remove_stray_snapshots(segments.base_offsets)
    producers.remove_expired(source.now_ms)
    rebuild_producer_state(producers, segments, log_start_offset, end_offset, source.now_ms)
    if source.recovered is not None:
        adopt_recent_batches(producers, source.recovered)
    elif source.had_clean_shutdown:
        recall_on_demand(producers, segments, end_offset)
    else:
        recall_recent_batches(producers, segments, end_offset)
    for segment in segments:
        if not segment.is_appendable:
            segment.release_files()
    return LoadedLog(
        segments=segments,
        log_start_offset=log_start_offset,
        recovery_point=(
            end_offset if source.had_clean_shutdown else min(source.recovery_point, end_offset)
        ),
        log_end_offset=end_offset,
        epochs=epochs,
        producers=producers,
        is_directory_synced=is_found and source.had_clean_shutdown,
    )


def _check_end(
    source: LogSource,
    segments: SegmentList,
    epochs: LeaderEpochs,
    producers: ProducerStates | None,
) -> int:
    """Return the log end offset. Creates a segment there if the log is empty or too short.

    `producers`: the state at the end of the last batch, if the batches have been read.
    """
    if len(segments):
        if producers is None:
            end_offset = _end_of_last_segment(source, segments, epochs)
        else:
            end_offset = max(producers.map_end_offset, segments.active.base_offset)
        if end_offset >= source.log_start_offset:
            return end_offset
        source.report(
            f"{source.directory}: ends at {end_offset}, before its log start offset "
            f"{source.log_start_offset}; starting over there"
        )
        drop_segments(source, segments, list(segments))
        epochs.clear()
        source.new_producers().truncate_fully_and_start_at(source.log_start_offset)
    base_offset = source.log_start_offset
    segment = Segment.create(
        source.files,
        source.directory,
        base_offset,
        SegmentSettings.of(source.config, source.directory, base_offset),
        now_ms=source.now_ms,
        preallocate_bytes=source.config.segment_size_bytes if source.config.preallocate else 0,
    )
    segments.add(segment)
    return base_offset


def _end_of_last_segment(source: LogSource, segments: SegmentList, epochs: LeaderEpochs) -> int:
    active = segments.active
    try:
        size, next_offset = active.tail()
        if size == active.size_bytes:
            return next_offset
        reason = f"{active.size_bytes - size} bytes after the last batch"
    except CorruptBatchError as error:
        reason = str(error)
    source.report(f"{active}: recovering it, though it was closed cleanly: {reason}")
    producers = source.new_producers()
    rebuild_producer_state(
        producers, segments, source.log_start_offset, active.base_offset, source.now_ms
    )
    recover_segment(active, epochs, producers)
    return active.tail().next_offset


def _check_txn_indexes(
    source: LogSource, segments: SegmentList, names: set[SegmentFileName], end_offset: int
) -> bool:
    """Rebuild the damaged ones; return whether there are any. Snapshots may be deleted then."""
    has_rebuilt = False
    present = {name.offset for name in names if name.kind is FileKind.TXN_INDEX}
    ends = [*segments.base_offsets[1:], end_offset]
    for segment, end in zip(segments, ends, strict=True):
        if segment.base_offset in present:
            path = segment.path(FileKind.TXN_INDEX)
            if source.files.exists(path) and not is_plausible(segment, end):
                producers = source.new_producers()
                rebuild_txn_index(
                    segment, segments, end, producers, source.log_start_offset, source.now_ms
                )
                has_rebuilt = True
    return has_rebuilt
