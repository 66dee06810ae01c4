"""The extents of partitions, and their division into tasks of about equal bytes."""

from collections.abc import Sequence
from dataclasses import dataclass

from odradek.pipeline.reading.bounds import OffsetBounds, offset_bounds
from odradek.pipeline.reading.partitions import LogDirectories
from odradek.pipeline.reading.range_reader import OffsetRange
from odradek.pipeline.reading.splits import split_if_readable
from odradek.protocol.batch_header import CorruptRecordError
from odradek.storage.topic_partition import TopicPartition

_MAX_TASK_BYTES = 256 << 20
_MIN_TASK_BYTES = 16 << 20
_TASKS_PER_CORE = 4


@dataclass(frozen=True, slots=True)
class PartitionExtent:
    """The offsets and size of a partition at the time of planning."""

    partition: TopicPartition
    bounds: OffsetBounds
    log_bytes: int
    topic_id: bytes | None
    problem: str = ""


def find_extents(
    directories: LogDirectories, partitions: Sequence[TopicPartition]
) -> list[PartitionExtent]:
    """Return offsets and sizes; deleted partitions are left out. Raises OSError."""
    extents = []
    for partition in partitions:
        try:
            extents.append(_extent(directories, partition))
        except FileNotFoundError:
            continue
        except CorruptRecordError as error:
            extents.append(PartitionExtent(partition, OffsetBounds(0, 0), 0, None, str(error)))
    return extents


def _extent(directories: LogDirectories, partition: TopicPartition) -> PartitionExtent:
    bounds = offset_bounds(directories, partition)
    reader = directories.reader(partition)
    log_bytes = sum(segment.size_bytes for segment in reader.segments())
    return PartitionExtent(partition, bounds, log_bytes, directories.topic_id(reader.directory))


def scan_tasks(
    directories: LogDirectories, extents: Sequence[PartitionExtent], parallelism: int
) -> list[list[OffsetRange]]:
    """Return tasks of about equal bytes. Raises OSError."""
    total = sum(each.log_bytes for each in extents)
    wanted_bytes = total // max(parallelism * _TASKS_PER_CORE, 1)
    task_bytes = min(max(wanted_bytes, _MIN_TASK_BYTES), _MAX_TASK_BYTES)
    tasks: list[list[OffsetRange]] = []
    filled = task_bytes
    for each in extents:
        if each.bounds.start >= each.bounds.end:
            continue
        wanted = OffsetRange(each.partition, *each.bounds, topic_id=each.topic_id)
        parts = split_if_readable(directories, wanted, task_bytes)
        for part in parts:
            if filled >= task_bytes:
                tasks.append([])
                filled = 0
            tasks[-1].append(part)
            filled += each.log_bytes // len(parts)
    return tasks


def group_log_tasks(
    extents: Sequence[PartitionExtent], parallelism: int
) -> list[list[TopicPartition]]:
    """Return tasks of whole partitions, because the order of records matters; largest first."""
    logs = sorted(extents, key=lambda each: -each.log_bytes)
    count = min(len(logs), parallelism * 2)
    return [[each.partition for each in logs[number::count]] for number in range(count)]
