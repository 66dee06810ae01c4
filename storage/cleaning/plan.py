"""How dirty a log is, and what the next round of cleaning may clean.

    | clean         | dirty, cleanable        | uncleanable                    |
    log start       first dirty offset        first uncleanable offset         log end

The first dirty offset is where the last round ended (cleaner-offset-checkpoint). Uncleanable are
the active segment, everything after the last stable offset, and segments whose newest record is
younger than `min.compaction.lag.ms`. The first uncleanable offset is the base offset of a segment.

A log is due when the dirty part is more than `min.cleanable.dirty.ratio` of what could be cleaned,
or when a dirty segment began longer ago than `max.compaction.lag.ms`. A round rewrites the clean
part as well: its records are what the dirty ones replace.

Kafka: LogCleanerManager.cleanableOffsets, calculateCleanableBytes, maxCompactionDelay; LogToClean.
"""

import logging
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple

from odradek.storage.log import PartitionLog
from odradek.storage.parts import in_parts
from odradek.storage.reading_ahead import read_each
from odradek.storage.segment import Segment
from odradek.storage.segment_settings import SegmentSettings

from .task import LAST_RECORD, CleaningTask, SegmentToClean

_logger = logging.getLogger(__name__)


class LogToClean(NamedTuple):
    """The state of one log. `checkpoint_is_invalid`: write `first_dirty_offset` into it.

    `truncations`: of the log. A later truncation makes the rest invalid.
    """

    first_dirty_offset: int
    first_uncleanable_offset: int
    clean_bytes: int
    cleanable_bytes: int
    compaction_delay_ms: int  # how long max.compaction.lag.ms is over; 0: it is not
    checkpoint_is_invalid: bool
    truncations: int

    @property
    def total_bytes(self) -> int:
        return self.clean_bytes + self.cleanable_bytes

    @property
    def cleanable_ratio(self) -> float:
        """The dirty share, 0 to 1."""
        return self.cleanable_bytes / self.total_bytes if self.total_bytes else 0.0

    def is_due(self, min_cleanable_ratio: float) -> bool:
        """Whether to clean the log now."""
        if self.compaction_delay_ms > 0 and self.cleanable_bytes > 0:
            return True
        return self.cleanable_ratio > min_cleanable_ratio


def assess(log: PartitionLog, checkpoint: int | None, now_ms: int) -> LogToClean:
    """Assess how dirty the log is. `checkpoint`: None if it was never cleaned. Raises OSError."""
    first_dirty, is_invalid = _first_dirty_offset(log, checkpoint)
    dirty = _closed_from(log, first_dirty)
    border = min(
        log.last_stable_offset, log.segments.active.base_offset, *_too_young(log, dirty, now_ms)
    )
    uncleanable = _closed_from(log, max(first_dirty, border))
    end = (uncleanable or [log.segments.active])[0].base_offset
    return LogToClean(
        first_dirty_offset=first_dirty,
        first_uncleanable_offset=end,
        clean_bytes=sum(each.size_bytes for each in log.segments if each.base_offset < first_dirty),
        cleanable_bytes=sum(each.size_bytes for each in dirty if each.base_offset < end),
        compaction_delay_ms=_compaction_delay_ms(log, dirty, now_ms),
        checkpoint_is_invalid=is_invalid,
        truncations=log.truncations,
    )


def last_records_in_parts(log: PartitionLog) -> Iterator[bytes]:
    """The `last_records` of a task. The log may be used between two parts: what a producer appends
    meanwhile is not cleaned in this round.
    """
    for part in in_parts(log.producers.producers.values()):
        yield b"".join(
            [LAST_RECORD.pack(each.producer_id, each.last_offset, each.epoch) for each in part]
        )


def task_for(
    log: PartitionLog, to_clean: LogToClean, now_ms: int, last_records: bytes | None = None
) -> CleaningTask:
    """Make the task of a round for the cleaning process. `last_records`: made before in parts."""
    config = log.config
    end = to_clean.first_uncleanable_offset
    segments = [each for each in log.segments if each.base_offset < end]
    return CleaningTask(
        name=log.name,
        directory=log.directory,
        segments=tuple(SegmentToClean(each.base_offset, each.size_bytes) for each in segments),
        settings=SegmentSettings.of(config, log.directory, 0),
        segment_bytes=config.segment_size_bytes,
        delete_retention_ms=config.delete_retention_ms,
        first_dirty_offset=to_clean.first_dirty_offset,
        first_uncleanable_offset=end,
        high_watermark=log.high_watermark,
        last_records=b"".join(last_records_in_parts(log)) if last_records is None else last_records,
        # From all segments: the marker of a transaction may be far after its records. Not from the
        # files: they may lack the last entries.
        aborted=tuple(
            aborted
            for segment in log.segments
            for aborted in segment.aborted()
            if log.log_start_offset <= aborted.last_offset and aborted.first_offset < end
        ),
        now_ms=now_ms,
    )


def _first_dirty_offset(log: PartitionLog, checkpoint: int | None) -> tuple[int, bool]:
    start = log.log_start_offset
    if checkpoint is None:
        return start, False
    if checkpoint < start:
        if not log.config.delete:
            _logger.warning(
                "%s: the cleaner's checkpoint %d is before the log start offset %d",
                log.name,
                checkpoint,
                start,
            )
        return start, True
    if checkpoint > log.log_end_offset:
        _logger.warning(
            "%s: the cleaner's checkpoint %d is after the log's end %d; the log counts as dirty",
            log.name,
            checkpoint,
            log.log_end_offset,
        )
        return start, True
    return checkpoint, False


def _closed_from(log: PartitionLog, offset: int) -> list[Segment]:
    """The closed segment that holds `offset`, and those after it."""
    active_base = log.segments.active.base_offset
    return log.segments.between(offset, active_base) if offset < active_base else []


def _too_young(log: PartitionLog, dirty: Sequence[Segment], now_ms: int) -> list[int]:
    """The base offset of the first segment with a record younger than min.compaction.lag.ms."""
    lag_ms = log.config.min_compaction_lag_ms
    if lag_ms > 0:
        for segment, newest_ms in read_each(dirty, Segment.largest_timestamp_ms):
            if newest_ms > now_ms - lag_ms:
                return [segment.base_offset]
    return []


def _compaction_delay_ms(log: PartitionLog, dirty: Sequence[Segment], now_ms: int) -> int:
    began = [first_ms for _, first_ms in read_each(dirty, attrgetter("first_timestamp_ms"))]
    oldest_ms = min((each for each in began if each > 0), default=None)
    due_ms = now_ms - log.config.max_compaction_lag_ms
    return 0 if oldest_ms is None else max(due_ms - oldest_ms, 0)
