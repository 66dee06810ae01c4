"""What is missing in an archive: what lies in the logs, without what the manifest covers.

Of each partition the closed segments are taken, up to the last stable offset: records of a
transaction that is not decided wait for the next run. What the log's start has passed since the
last run is lost; what lay before it when a partition was first archived was never the archive's.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import NamedTuple

from odradek.pipeline.jobs.offset_spans import Span, without
from odradek.pipeline.reading.bounds import OffsetBounds, offset_bounds
from odradek.pipeline.reading.isolation import Isolation, read_committed
from odradek.pipeline.reading.partitions import LogDirectories, TopicPartition
from odradek.pipeline.reading.range_reader import OffsetRange
from odradek.pipeline.reading.segments import SegmentPath, list_segments
from odradek.pipeline.reading.splits import split_or_whole
from odradek.protocol.batch_header import CorruptRecordError

from .entries import ArchivedRange, PartitionKey
from .manifest import ArchiveState

LARGEST_SPLIT_BYTES = 128 << 20
_SMALLEST_SPLIT_BYTES = 16 << 20
_MOST_RANGES_PER_TASK = 64


class PartitionPlan(NamedTuple):
    """What is to be done about a partition.

    `waiting` counts the offsets behind what is taken: the active segment, transactions that are
    open. With a `problem` nothing is done.
    """

    partition: TopicPartition
    ranges: tuple[OffsetRange, ...] = ()
    size_bytes: int = 0
    waiting: int = 0
    lost: tuple[ArchivedRange, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planner:
    """Plans by what lies there now. `until_end`: the active segment is taken, too."""

    directories: LogDirectories
    state: ArchiveState
    until_end: bool = False
    committed_only: bool = True

    def plan(self, partition: TopicPartition) -> PartitionPlan:
        """What is missing of a partition. Raises OSError."""
        try:
            return self._plan(partition)
        except FileNotFoundError:
            return PartitionPlan(partition, problem="it has gone while the run was planned")
        except CorruptRecordError as error:
            return PartitionPlan(partition, problem=str(error))

    def _plan(self, partition: TopicPartition) -> PartitionPlan:
        directory = self.directories.required(partition)
        topic_id = self.directories.topic_id(directory)
        key = key_of(partition, topic_id)
        covered = self.state.covered.get(key, [])
        bounds = offset_bounds(self.directories, partition)
        if covered and covered[-1].end > bounds.end:
            problem = (
                f"the archive has offsets up to {covered[-1].end - 1}, the log ends at "
                f"{bounds.end}: it has lost records since, or is another one"
            )
            return PartitionPlan(partition, problem=problem)
        segments = list_segments(self.directories.files, directory)
        closed = bounds.end if self.until_end else segments[-1].base_offset if segments else 0
        begin = min(covered[0].start, bounds.start) if covered else bounds.start
        if not without(Span(begin, closed), covered):
            return PartitionPlan(partition, waiting=bounds.end - max(closed, bounds.start))
        isolation = self._isolation(partition, bounds)
        end = min(closed, isolation.end)
        missing = without(Span(begin, end), covered)
        ranges = [
            OffsetRange(partition, start, stop, isolation.aborted, topic_id)
            for start, stop in without_before(missing, bounds.start)
        ]
        return PartitionPlan(
            partition,
            tuple(ranges),
            self._size_bytes(segments, ranges),
            bounds.end - max(end, bounds.start),
            tuple(_lost(key, span, bounds.start) for span in missing if span.start < bounds.start),
        )

    def _isolation(self, partition: TopicPartition, bounds: OffsetBounds) -> Isolation:
        """Also what is decided in the active segment counts."""
        if not self.committed_only:
            return Isolation(bounds.end)
        return read_committed(self.directories, partition, bounds.end)

    def _size_bytes(self, segments: list[SegmentPath], ranges: list[OffsetRange]) -> int:
        """Of the segments that lie in the ranges, about."""
        files, total = self.directories.files, 0
        for segment, following in zip_longest(segments, segments[1:]):
            end = following.base_offset if following else None
            if any(
                each.end > segment.base_offset and (end is None or each.start < end)
                for each in ranges
            ):
                total += files.size(segment.path)
        return total


def key_of(partition: TopicPartition, topic_id: bytes | None) -> PartitionKey:
    """What the manifest knows a partition by."""
    return PartitionKey(
        topic=partition.topic,
        topic_id=topic_id.hex() if topic_id else "",
        partition=partition.partition,
    )


def without_before(spans: Iterable[Span], start: int) -> list[Span]:
    """What of the spans lies at or behind `start`."""
    return [Span(max(span.start, start), span.end) for span in spans if span.end > start]


def _lost(key: PartitionKey, span: Span, log_start: int) -> ArchivedRange:
    gone = Span(span.start, min(span.end, log_start))
    return ArchivedRange(of=key, start=gone.start, end=gone.end, lost=(gone,))


def split_bytes(total_bytes: int, parallelism: int, largest: int = LARGEST_SPLIT_BYTES) -> int:
    """How large parts should be, so that all who work end at about the same time."""
    parts = -(-total_bytes // largest)
    evenly = -(-parts // parallelism) * parallelism
    return max(-(-total_bytes // max(evenly, 1)), min(_SMALLEST_SPLIT_BYTES, largest))


def tasks_of(
    directories: LogDirectories, plans: Iterable[PartitionPlan], max_bytes: int
) -> Iterator[list[OffsetRange]]:
    """Ranges cut into parts of about so many bytes, and small ones of them put together.

    Raises OSError.
    """
    together: list[OffsetRange] = []
    together_bytes = 0
    for plan in plans:
        parts = [
            part
            for wanted in plan.ranges
            for part in split_or_whole(directories, wanted, max_bytes)
        ]
        for part in parts:
            together.append(part)
            together_bytes += plan.size_bytes // len(parts)
            if together_bytes >= max_bytes // 2 or len(together) == _MOST_RANGES_PER_TASK:
                yield together
                together, together_bytes = [], 0
    if together:
        yield together
