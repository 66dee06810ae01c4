"""From the files in a log's directory to a log that can be served. Kafka: LogLoader.

What a crash may leave, and what becomes of it:

- `.deleted` files: removed. `.cleaned` files: a cleaning that was not finished, removed. `.swap`
  files: a finished one; the segments that they replace are removed, then they get their names.
- index files without a log: removed. A log without its indexes: they are rebuilt.
- after an unclean stop, every segment from the one that holds the recovery point on is read whole,
  structure and CRC of each batch; its indexes are made anew. Where the first unsound batch begins,
  the log ends: the rest of that segment and all later segments go.
- a leader-epoch-checkpoint that is missing or garbled is made anew from the batch headers; a
  producer snapshot that is, from the one before it and the batches since.

After a clean stop nothing is read but the end of the last segment. Its end must be a whole batch;
if not, that segment is recovered after all.

What is made anew is not synced here. A snapshot carries its checksum, and what a power cut leaves
of the leader epochs is put right from the batches that are read again: the recovery point stays
where it was until the log is flushed, and the next start begins there once more.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..config.topic_config import TopicConfig
from ..protocol.batch_header import BatchHeader, CorruptRecordError
from .batch_scan import CorruptBatchError, scan_checked
from .checkpoints import CheckpointError
from .cleaning_input import CleanerInput
from .cleaning_task import SegmentToClean
from .deletions import Deletions
from .filenames import (
    LEADER_EPOCH_CHECKPOINT,
    FileKind,
    FileState,
    SegmentFileName,
    parse_segment_file,
    segment_file,
)
from .files import Files
from .index_file import MAX_RELATIVE_OFFSET
from .leader_epochs import LeaderEpochs
from .producer_recovery import (
    RecentBatches,
    adopt_recent_batches,
    rebuild_producer_state,
    recall_recent_batches,
    recall_when_asked,
    replay_producer,
)
from .producer_state import ProducerStates
from .segment import Segment, SegmentShape
from .segment_list import SegmentList
from .segment_shape import shape_of
from .segment_split import overflows, split_segment
from .segment_swap import SegmentSwap
from .txn_index import rewrite_aborted
from .txn_index_repair import is_plausible, rebuild_txn_index

_logger = logging.getLogger(__name__)

PROGRESS_LINES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSource:
    """Where a log lies and what is known about its last life."""

    files: Files
    directory: Path
    config: TopicConfig
    now_ms: int
    had_clean_shutdown: bool
    recovered: RecentBatches | None = None  # since an unclean one: what was found out by that
    recovery_point: int
    log_start_offset: int  # of the checkpoint; 0 without one
    producer_id_expiration_ms: int
    deletions: Deletions
    report: Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedLog:
    """What a PartitionLog begins with."""

    segments: SegmentList
    log_start_offset: int
    recovery_point: int
    log_end_offset: int
    epochs: LeaderEpochs
    producers: ProducerStates
    is_named_on_disk: bool  # its directory would be found after a power cut


def load_log(source: LogSource) -> LoadedLog:
    """Load the log, recover it where it was not closed, or make an empty one.

    Raises OSError.
    """
    is_found = source.files.exists(source.directory)
    source.files.make_directory(source.directory)
    names = _finish_interrupted_swaps(source)
    segments = _load_segments(source, names)
    _split_overflowing(source, segments)
    epochs = _load_epochs(source, segments)
    if not source.had_clean_shutdown and source.recovered is None:
        _recover_unflushed(source, segments, epochs)
    end_offset = _check_end(source, segments, epochs)
    _check_txn_indexes(source, segments, names)
    epochs.truncate_from_end(end_offset)
    epochs.truncate_from_start(source.log_start_offset)
    if not source.had_clean_shutdown:
        epochs.flush(sync=False)
    log_start_offset = max(source.log_start_offset, segments[0].base_offset)
    producers = _new_producers(source)
    producers.remove_stray_snapshots(segments.base_offsets)
    rebuild_producer_state(producers, segments, log_start_offset, end_offset, source.now_ms)
    if source.recovered is not None:
        adopt_recent_batches(producers, source.recovered)
    elif source.had_clean_shutdown:
        recall_when_asked(producers, segments, end_offset)
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
        is_named_on_disk=is_found and source.had_clean_shutdown,
    )


# --- files that a crash left


def _finish_interrupted_swaps(source: LogSource) -> set[SegmentFileName]:
    """Returns the segments' files that are there afterwards. See segment_swap.py."""
    names = _segment_files(source)
    cleaned = [name.offset for name in names if name.state is FileState.CLEANED]
    first_cleaned = min(cleaned, default=None)
    swaps, orphans, others = [], [], []
    for name in names:
        if name.state is not FileState.SWAP:
            others.append(name)
        elif first_cleaned is not None and name.offset >= first_cleaned:
            orphans.append(name)  # not all of the new segments got as far as this one
        else:
            swaps.append(name)
    # Orphans first: without a .cleaned file they would look like what is to be swapped in.
    for name in (*orphans, *(name for name in others if name.state is not FileState.LIVE)):
        source.files.remove(source.directory / segment_file(*name))
    live = [name for name in others if name.state is FileState.LIVE]
    if not swaps:
        return set(live)
    _swap_in(source, live, swaps)
    return set(_segment_files(source))


def _swap_in(
    source: LogSource, live: Sequence[SegmentFileName], swaps: Sequence[SegmentFileName]
) -> None:
    new = [_open_segment(source, n.offset, n.state) for n in swaps if n.kind is FileKind.LOG]
    if new:
        start = min(segment.base_offset for segment in new)
        end = max(segment.tail().next_offset for segment in new)
        bases = {segment.base_offset for segment in new}
        for name in live:
            is_same = name.offset in bases and name.kind is not FileKind.PRODUCER_SNAPSHOT
            if is_same or start <= name.offset < end:
                source.files.remove(source.directory / segment_file(*name))
    # Listed anew: an index that was missing has been made meanwhile.
    for name in _segment_files(source):
        if name.state is FileState.SWAP:
            path = source.directory / segment_file(name.offset, name.kind)
            _logger.info("%s: finishing an interrupted swap", path)
            source.files.rename(source.directory / segment_file(*name), path)


def _segment_files(source: LogSource) -> list[SegmentFileName]:
    parsed = map(parse_segment_file, source.files.list_directory(source.directory))
    return [name for name in parsed if name is not None]


def _load_segments(source: LogSource, names: set[SegmentFileName]) -> SegmentList:
    logs = {name.offset for name in names if name.kind is FileKind.LOG}
    segments = []
    for name in sorted(names):
        if name.kind is FileKind.LOG:
            segments.append(_open_segment(source, name.offset))
        elif name.kind is not FileKind.PRODUCER_SNAPSHOT and name.offset not in logs:
            path = source.directory / segment_file(*name)
            _logger.warning("removing %s, which belongs to no log", path)
            source.files.remove(path)
    for segment in segments:
        needed = (FileKind.OFFSET_INDEX, FileKind.TIME_INDEX)
        if any(
            SegmentFileName(segment.base_offset, k, FileState.LIVE) not in names for k in needed
        ):
            _logger.warning("rebuilding the indexes of %s: one is missing", segment)
            segment.rebuild_indexes()
    return SegmentList(segments)


def _split_overflowing(source: LogSource, segments: SegmentList) -> None:
    """Divide segments whose offsets are too far apart for an index: see segment_split.py."""
    closed = list(segments)[:-1]
    for segment, following in zip(closed, list(segments)[1:], strict=True):
        # The next one's beginning tells at once of nearly all that they are no such segments.
        if following.base_offset - segment.base_offset > MAX_RELATIVE_OFFSET and overflows(segment):
            source.report(f"{segment}: splitting it, its offsets are too far apart")
            shape = shape_of(source.config, source.directory, segment.base_offset)
            group = split_segment(
                CleanerInput.plain(source.files),
                source.directory,
                SegmentToClean(segment.base_offset, segment.size_bytes),
                shape,
            )
            new = [_open_segment(source, n.base_offset, FileState.CLEANED) for n in group.segments]
            swap = SegmentSwap(source.files, new)
            swap.stage()
            swap.sync()
            swap.complete([segment])
            _retire(source, segments, segment)
            for part in new:
                segments.add(part)


def _open_segment(
    source: LogSource, base_offset: int, state: FileState = FileState.LIVE
) -> Segment:
    path = source.directory / segment_file(base_offset, FileKind.LOG, state)
    return Segment(
        source.files,
        source.directory,
        base_offset,
        shape_of(source.config, source.directory, base_offset),
        size_bytes=source.files.size(path),
        created_ms=source.now_ms,
        state=state,
    )


# --- leader epochs


def _load_epochs(source: LogSource, segments: SegmentList) -> LeaderEpochs:
    path = source.directory / LEADER_EPOCH_CHECKPOINT
    try:
        epochs = LeaderEpochs(source.files, path)
    except (CheckpointError, ValueError) as error:
        _logger.warning("making the leader epochs anew: %s", error)
        source.files.remove(path)
        epochs = LeaderEpochs(source.files, path)
    if epochs.latest is None and source.had_clean_shutdown:
        _epochs_from_batches(segments, epochs)
    return epochs


def _epochs_from_batches(segments: SegmentList, epochs: LeaderEpochs) -> None:
    for segment in segments:
        try:
            for _, header in segment.headers_from(segment.base_offset):
                _note_epoch(epochs, header)
        except CorruptBatchError as error:
            _logger.warning("leader epochs end early: %s", error)


def _note_epoch(epochs: LeaderEpochs, header: BatchHeader) -> None:
    latest = epochs.latest
    if header.partition_leader_epoch > (latest.epoch if latest else -1):
        epochs.assign(header.partition_leader_epoch, header.base_offset, sync=False)


# --- batches that were not flushed


def _first_unflushed(source: LogSource) -> int:
    """From where on files may not be what they were before a power cut.

    Where they are preallocated, a segment whose records were all flushed before it was closed may
    have its zeros again: its new length is synced by the flush after.
    """
    return max(source.recovery_point - source.config.preallocate, 0)


def _recover_unflushed(source: LogSource, segments: SegmentList, epochs: LeaderEpochs) -> None:
    if not len(segments):
        return
    unflushed = segments.between(_first_unflushed(source))
    if epochs.latest is None:
        _epochs_from_batches(SegmentList(s for s in segments if s not in unflushed), epochs)
    producers = _new_producers(source)
    first = unflushed[0].base_offset
    rebuild_producer_state(producers, segments, source.log_start_offset, first, source.now_ms)
    for done, segment in enumerate(unflushed):
        if is_worth_a_line(done, len(unflushed)):
            source.report(
                f"{source.directory}: recovering segment {segment.base_offset}, "
                f"{done} of {len(unflushed)} done"
            )
        cut_bytes = recover_segment(segment, epochs, producers)
        producers.take_snapshot(sync=False)
        if cut_bytes:
            source.report(f"{segment}: {cut_bytes} unsound bytes at the end were cut")
            _drop_segments(source, segments, unflushed[done + 1 :])
            return


def is_worth_a_line(done: int, count: int) -> bool:
    """Whether to tell of this step: of each while they are few, else of every 20th part."""
    return done == 0 or done * PROGRESS_LINES // count != (done - 1) * PROGRESS_LINES // count


def recover_segment(segment: Segment, epochs: LeaderEpochs, producers: ProducerStates) -> int:
    """Read every batch, end the segment before the first unsound one, and make its indexes anew.

    Returns how many bytes were cut. Kafka: LogSegment.recover.
    """
    size = segment.size_bytes
    segment.start_over()
    next_offset = segment.base_offset
    aborted = []
    try:
        for position, header, data in scan_checked(segment.files, segment.file, 0, size):
            _check_offsets(segment, position, header, next_offset)
            if transaction := replay_producer(producers, header, segment, position, data):
                aborted.append(transaction)
            _note_epoch(epochs, header)
            segment.note_append(header.size_bytes, header.last_offset, header.max_timestamp)
            next_offset = header.next_offset
    except CorruptRecordError as error:
        _logger.warning("unsound batch: %s", error)
    cut_bytes = size - segment.size_bytes
    if cut_bytes:
        segment.files.truncate(segment.file, segment.size_bytes)
        segment.files.fsync(segment.file)
    segment.close_indexes()
    rewrite_aborted(segment.files, segment.path(FileKind.TXN_INDEX), aborted)
    return cut_bytes


def _check_offsets(segment: Segment, position: int, header: BatchHeader, next_offset: int) -> None:
    # Base offsets lie outside the CRC.
    too_far = header.last_offset - segment.base_offset > MAX_RELATIVE_OFFSET
    if header.base_offset < next_offset or too_far:
        reason = f"offset {header.base_offset} where {next_offset} was next"
        raise CorruptBatchError(segment.file, position, reason)


def _drop_segments(source: LogSource, segments: SegmentList, dropped: Sequence[Segment]) -> None:
    for segment in dropped:
        source.report(f"{segment}: dropped, it lies behind an unsound batch")
        segment.rename(FileState.DELETED)
        _retire(source, segments, segment)
    if dropped:
        # At once: a power cut must not bring them back, behind what will be written in their place.
        source.files.fsync_directory(source.directory)


def _retire(source: LogSource, segments: SegmentList, segment: Segment) -> None:
    """Its files have been renamed."""
    segments.remove(segment)
    due_ms = source.now_ms + source.config.file_delete_delay_ms
    source.deletions.add(segment.paths(), due_ms)


def _check_end(source: LogSource, segments: SegmentList, epochs: LeaderEpochs) -> int:
    """The log end offset, once there is a segment that really ends there."""
    if len(segments):
        end_offset = _sound_end(source, segments, epochs)
        if end_offset >= source.log_start_offset:
            return end_offset
        source.report(
            f"{source.directory}: ends at {end_offset}, before its log start offset "
            f"{source.log_start_offset}; starting over there"
        )
        _drop_segments(source, segments, list(segments))
        epochs.clear()
        _new_producers(source).truncate_fully_and_start_at(source.log_start_offset)
    base_offset = source.log_start_offset
    shape = shape_of(source.config, source.directory, base_offset)
    segments.add(_new_segment(source, base_offset, shape))
    return base_offset


def _new_segment(source: LogSource, base_offset: int, shape: SegmentShape) -> Segment:
    preallocate = source.config.segment_size_bytes if source.config.preallocate else 0
    return Segment.create(
        source.files,
        source.directory,
        base_offset,
        shape,
        now_ms=source.now_ms,
        preallocate_bytes=preallocate,
    )


def _sound_end(source: LogSource, segments: SegmentList, epochs: LeaderEpochs) -> int:
    active = segments.active
    try:
        size, next_offset = active.tail()
        if size == active.size_bytes:
            return next_offset
        reason = f"{active.size_bytes - size} bytes behind the last batch"
    except CorruptBatchError as error:
        reason = str(error)
    source.report(f"{active}: recovering it, though it was closed cleanly: {reason}")
    producers = _new_producers(source)
    rebuild_producer_state(
        producers, segments, source.log_start_offset, active.base_offset, source.now_ms
    )
    recover_segment(active, epochs, producers)
    return active.tail().next_offset


def _check_txn_indexes(
    source: LogSource, segments: SegmentList, names: set[SegmentFileName]
) -> None:
    present = {name.offset for name in names if name.kind is FileKind.TXN_INDEX}
    for segment in segments:
        if segment.base_offset in present:
            path = segment.path(FileKind.TXN_INDEX)
            if source.files.exists(path) and not is_plausible(segment):
                producers = _new_producers(source)
                rebuild_txn_index(
                    segment, segments, producers, source.log_start_offset, source.now_ms
                )


def _new_producers(source: LogSource) -> ProducerStates:
    expiration_ms = source.producer_id_expiration_ms
    return ProducerStates(source.files, source.directory, expiration_ms=expiration_ms)
