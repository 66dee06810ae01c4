"""Ranges of offsets for tasks: large partitions are cut, small ones share a task."""

from collections.abc import Sequence
from dataclasses import dataclass

from odradek.pipeline.reading.bounds import OffsetBounds, offset_bounds
from odradek.pipeline.reading.partitions import LogDirectories, TopicPartition
from odradek.pipeline.reading.range_reader import OffsetRange
from odradek.pipeline.reading.segments import list_segments, open_segment
from odradek.pipeline.reading.splits import split_or_whole
from odradek.protocol.batch_header import CorruptRecordError
from odradek.storage.files import Files
from odradek.storage.topic_names import CONSUMER_OFFSETS_TOPIC

_LARGEST_BYTES = 256 << 20
_SMALLEST_BYTES = 16 << 20
_TASKS_PER_CORE = 4


@dataclass(frozen=True, slots=True)
class PartitionExtent:
    """A partition as it was found."""

    partition: TopicPartition
    bounds: OffsetBounds
    log_bytes: int
    topic_id: bytes | None
    problem: str = ""


def extents(
    directories: LogDirectories, partitions: Sequence[TopicPartition]
) -> list[PartitionExtent]:
    """Offsets and sizes; partitions that have gone are left out. Raises OSError."""
    found = []
    for partition in partitions:
        try:
            found.append(_extent(directories, partition))
        except FileNotFoundError:
            continue
        except CorruptRecordError as error:
            nothing = OffsetBounds(0, 0)
            found.append(PartitionExtent(partition, nothing, 0, None, str(error)))
    return found


def _extent(directories: LogDirectories, partition: TopicPartition) -> PartitionExtent:
    bounds = offset_bounds(directories, partition)
    directory = directories.required(partition)
    return PartitionExtent(
        partition,
        bounds,
        _log_bytes(directories.files, directories, partition),
        directories.topic_id(directory),
    )


def _log_bytes(files: Files, directories: LogDirectories, partition: TopicPartition) -> int:
    segments = list_segments(files, directories.required(partition))
    return sum(open_segment(files, segment).size_bytes for segment in segments)


def scan_tasks(
    directories: LogDirectories, found: Sequence[PartitionExtent], parallelism: int
) -> list[list[OffsetRange]]:
    """Ranges of about equal bytes per task. Raises OSError."""
    total = sum(each.log_bytes for each in found)
    wanted_bytes = total // max(parallelism * _TASKS_PER_CORE, 1)
    task_bytes = min(max(wanted_bytes, _SMALLEST_BYTES), _LARGEST_BYTES)
    tasks: list[list[OffsetRange]] = []
    filled = task_bytes
    for each in found:
        if each.bounds.start >= each.bounds.end:
            continue
        wanted = OffsetRange(each.partition, *each.bounds, topic_id=each.topic_id)
        parts = split_or_whole(directories, wanted, task_bytes)
        for part in parts:
            if filled >= task_bytes:
                tasks.append([])
                filled = 0
            tasks[-1].append(part)
            filled += each.log_bytes // len(parts)
    return tasks


def group_tasks(found: Sequence[PartitionExtent], parallelism: int) -> list[list[TopicPartition]]:
    """The partitions of the groups' log, whole: their order counts. The largest come first."""
    logs = [each for each in found if each.partition.topic == CONSUMER_OFFSETS_TOPIC]
    logs = [each for each in logs if each.bounds.start < each.bounds.end]
    logs.sort(key=lambda each: -each.log_bytes)
    count = min(len(logs), parallelism * 2)
    return [[each.partition for each in logs[number::count]] for number in range(count)]
