"""Plans what to archive: the offsets in the logs that the archive table does not cover.

The closed segments of each partition are archived, up to the last stable offset unless uncommitted
records are wanted: records of an open transaction then wait for a later run. Offsets before the
current log start that are not archived were deleted before: they are lost, unless they were before
the log start when the archive of the partition began.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise, zip_longest
from typing import NamedTuple

from odradek.pipeline.jobs.archive.table.state import (
    ArchivedRange,
    ArchiveState,
    PartitionKey,
    PartitionState,
)
from odradek.pipeline.jobs.offset_spans import Span
from odradek.pipeline.reading.bounds import offset_bounds
from odradek.pipeline.reading.partitions import LogDirectories
from odradek.pipeline.reading.range_reader import OffsetRange
from odradek.pipeline.reading.splits import split_range
from odradek.protocol.batch_header import CorruptRecordError
from odradek.storage.log_reader import SegmentFile
from odradek.storage.topic_partition import TopicPartition

from .batch_marks import has_diverged
from .stable_offsets import StableOffsets

MAX_PART_BYTES = 128 << 20
_MIN_PART_BYTES = 16 << 20
_MAX_RANGES_PER_TASK = 64


class PartitionPlan(NamedTuple):
    """What to archive of a partition.

    `waiting` counts the offsets after the planned ones: in the active segment, or in open
    transactions. A partition with a `problem` is skipped. One whose log has `diverged` from its
    archive (batch_marks.py) is repaired before it is planned (repair.py). `log_start` is where the
    log begins, if there are ranges.
    """

    partition: TopicPartition
    ranges: tuple[OffsetRange, ...] = ()
    size_bytes: int = 0
    waiting: int = 0
    lost: tuple[ArchivedRange, ...] = ()
    problem: str = ""
    diverged: bool = False
    log_start: int = 0


@dataclass(frozen=True, kw_only=True)
class Planner:
    """Plans from the current logs.

    `until_end`: the active segment is archived too. `committed_only`: nothing after the last stable
    offset is archived, and no records of aborted transactions.
    """

    directories: LogDirectories
    state: ArchiveState
    stable_offsets: StableOffsets = field(default_factory=StableOffsets)
    until_end: bool = False
    committed_only: bool = True

    @cached_property
    def _partitions_with_known_topic_id(self) -> frozenset[TopicPartition]:
        return frozenset(key.without_id for key in self.state.partitions if key.topic_id)

    @cached_property
    def _topics_with_id(self) -> frozenset[str]:
        return frozenset(key.topic for key in self.state.partitions if key.topic_id)

    @cached_property
    def _without_topic_id(self) -> dict[str, list[PartitionState]]:
        """The partitions that are archived without a topic id, by topic."""
        found: dict[str, list[PartitionState]] = {}
        for key, archived in self.state.partitions.items():
            if not key.topic_id and archived.covered:
                found.setdefault(key.topic, []).append(archived)
        return found

    def topic_id(self, partition: TopicPartition) -> bytes | None:
        """Return the id under which a partition is archived. Raises OSError, CorruptRecordError.

        A topic that was archived before its id was known stays without one until it is created
        again, which shows in its logs.
        """
        found = self.directories.topic_id(self.directories.required(partition))
        archived_without_id = self._without_topic_id.get(partition.topic, [])
        if found is None or partition.topic in self._topics_with_id:
            return found
        return None if any(map(self._has_same_log, archived_without_id)) else found

    def _has_same_log(self, archived: PartitionState) -> bool:
        """Whether a partition that was archived has the log of that time, and was not recreated."""
        partition = archived.of.without_id
        try:
            log_start = offset_bounds(self.directories, partition).start
            return not has_diverged(self.directories, partition, archived, log_start)
        except FileNotFoundError:
            return False

    def plan(self, partition: TopicPartition) -> PartitionPlan:
        """Return what is missing of a partition, or the problem with its log."""
        try:
            return self._plan(partition)
        except FileNotFoundError:
            return PartitionPlan(partition, problem="it was deleted while the run was planned")
        except (CorruptRecordError, OSError) as error:
            return PartitionPlan(partition, problem=str(error))

    def _plan(self, partition: TopicPartition) -> PartitionPlan:
        reader = self.directories.reader(partition)
        # The bounds first: a broker writes the topic's id before it appends the first record.
        bounds = offset_bounds(self.directories, partition)
        topic_id = self.topic_id(partition)
        key = partition_key(partition, topic_id)
        if topic_id is None and partition in self._partitions_with_known_topic_id:
            why = "partition.metadata is missing or damaged, and the archive knows the topic's id"
            skipped = "the partition is skipped until the file is there"
            return PartitionPlan(partition, problem=f"{why}: {skipped}")
        archived = self.state.of(key)
        if has_diverged(self.directories, partition, archived, bounds.start):
            return PartitionPlan(partition, diverged=True)
        segments = reader.segments()
        limit = bounds.end
        if not self.until_end:  # the active segment may begin after the high watermark
            limit = min(limit, segments[-1].base_offset if segments else 0)
        begin = bounds.start
        if archived.covered:  # include offsets that were deleted since the first run: they are lost
            begin = min(begin, archived.wanted_start)
        if not archived.missing(Span(begin, limit)):  # spares the search for open transactions
            return PartitionPlan(partition, waiting=bounds.end - max(limit, bounds.start))
        if self.committed_only:  # markers in the active segment count, even if it is not archived
            stable = self.stable_offsets.of(self.directories, partition, key, bounds.end)
            limit = min(limit, stable)
        missing = archived.missing(Span(begin, limit))
        ranges = [
            OffsetRange(
                partition, max(span.start, bounds.start), span.end, self.committed_only, topic_id
            )
            for span in missing
            if span.end > bounds.start
        ]
        return PartitionPlan(
            partition,
            tuple(ranges),
            _size_bytes(segments, ranges),
            bounds.end - max(limit, bounds.start),
            tuple(_lost(key, span, bounds.start) for span in missing if span.start < bounds.start),
            log_start=bounds.start,
        )


def partition_key(partition: TopicPartition, topic_id: bytes | None) -> PartitionKey:
    """Return the partition's key in the archive's state."""
    return PartitionKey(
        topic=partition.topic,
        topic_id=topic_id.hex() if topic_id else "",
        partition=partition.partition,
    )


def _size_bytes(segments: list[SegmentFile], ranges: list[OffsetRange]) -> int:
    """Return the size of the segments that overlap the ranges."""
    total = 0
    for segment, following in zip_longest(segments, segments[1:]):
        end = following.base_offset if following else None
        if any(
            each.end > segment.base_offset and (end is None or each.start < end) for each in ranges
        ):
            total += segment.size_bytes
    return total


def _lost(key: PartitionKey, span: Span, log_start: int) -> ArchivedRange:
    """Return the offsets of `span` that are lost.

    Once this is committed to the table, they count as covered: later runs do not report them again.
    """
    gone = Span(span.start, min(span.end, log_start))
    return ArchivedRange(key, gone.start, gone.end, lost=(gone,))


def part_size_bytes(total_bytes: int, parallelism: int, largest: int = MAX_PART_BYTES) -> int:
    """Return the size of parts with which all workers finish at about the same time.

    The number of parts is rounded up to a multiple of the workers.
    """
    part_count = -(-total_bytes // largest)
    part_count = -(-part_count // parallelism) * parallelism
    return max(-(-total_bytes // max(part_count, 1)), min(_MIN_PART_BYTES, largest))


def divide_into_tasks(
    directories: LogDirectories, plans: Iterable[PartitionPlan], max_bytes: int
) -> Iterator[list[OffsetRange]]:
    """Yield tasks: ranges are split into parts of at most `max_bytes`, small parts are combined."""
    task: list[OffsetRange] = []
    task_bytes = 0
    for plan in plans:
        parts = [part for wanted in plan.ranges for part in _parts(directories, wanted, max_bytes)]
        for part in parts:
            task.append(part)
            task_bytes += plan.size_bytes // len(parts)
            # The next part may have `max_bytes`: no task has more than one and a half times that.
            if task_bytes >= max_bytes // 2 or len(task) == _MAX_RANGES_PER_TASK:
                yield task
                task, task_bytes = [], 0
    if task:
        yield task


def _parts(
    directories: LogDirectories, wanted: OffsetRange, max_bytes: int
) -> Sequence[OffsetRange]:
    """Split a range. If a part of it cannot be read, its reader reports that."""
    try:
        return split_range(directories, wanted, max_bytes)
    except (CorruptRecordError, OSError):
        return _segments_of(directories, wanted)


def _segments_of(directories: LogDirectories, wanted: OffsetRange) -> list[OffsetRange]:
    """Split a range by segments, so that one that cannot be read does not stop the others."""
    try:
        segments = directories.reader(wanted.partition).segments()
    except OSError:
        return [wanted]
    starts = [each.base_offset for each in segments]
    bounds = [wanted.start, *(at for at in starts if wanted.start < at < wanted.end), wanted.end]
    return [replace(wanted, start=start, end=end) for start, end in pairwise(bounds)]
