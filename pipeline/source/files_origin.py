"""Offsets and ranges from log directories."""

from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import TypeVar

from odradek.pipeline.reading.bounds import OffsetBounds, log_end, offset_at, offset_bounds
from odradek.pipeline.reading.isolation import last_stable_offset
from odradek.pipeline.reading.partitions import LogDirectories
from odradek.pipeline.reading.range_reader import OffsetRange
from odradek.pipeline.reading.splits import split_if_readable
from odradek.storage.topic_partition import TopicPartition

Result = TypeVar("Result")


class FilesOrigin:
    """See Origin."""

    def __init__(
        self, paths: Iterable[Path], *, committed_only: bool, max_split_bytes: int | None
    ) -> None:
        """Ranges are not split if `max_split_bytes` is None."""
        self.directories = LogDirectories(paths)
        self._committed_only = committed_only
        self._max_split_bytes = max_split_bytes

    def partitions(self) -> list[TopicPartition]:
        return self.directories.partitions()

    def bounds(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, OffsetBounds]:
        return self._of_existing(partitions, self._bounds)

    def log_ends(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        return self._of_existing(partitions, lambda each: log_end(self.directories, each))

    def offsets_at(
        self,
        timestamps_ms: Mapping[TopicPartition, int],
        bounds: Mapping[TopicPartition, OffsetBounds],
    ) -> dict[TopicPartition, int | None]:
        def find(partition: TopicPartition) -> int | None:
            wanted_ms = timestamps_ms[partition]
            return offset_at(self.directories, partition, wanted_ms, bounds[partition])

        return self._of_existing([each for each in timestamps_ms if each in bounds], find)

    def topic_ids(self, partitions: Collection[TopicPartition]) -> dict[str, bytes]:
        found = ((partition.topic, self._topic_id(partition)) for partition in partitions)
        return {topic: topic_id for topic, topic_id in found if topic_id}

    def parts(self, partition: TopicPartition, start: int, end: int) -> list[OffsetRange]:
        wanted = OffsetRange(partition, start, end, topic_id=self._topic_id(partition))
        if self._max_split_bytes is None:
            return [wanted]
        return split_if_readable(self.directories, wanted, self._max_split_bytes)

    def _of_existing(
        self, partitions: Iterable[TopicPartition], find: Callable[[TopicPartition], Result]
    ) -> dict[TopicPartition, Result]:
        """Return what is found of each partition, without those that were deleted."""
        found: dict[TopicPartition, Result] = {}
        for partition in partitions:
            try:
                found[partition] = find(partition)
            except FileNotFoundError:
                if self.directories.find(partition) is not None:
                    raise
        return found

    def _bounds(self, partition: TopicPartition) -> OffsetBounds:
        bounds = offset_bounds(self.directories, partition)
        if not self._committed_only:
            return bounds
        stable = last_stable_offset(self.directories, partition, bounds.end)
        # The first records of the oldest open transaction may be deleted.
        return OffsetBounds(bounds.start, max(bounds.start, stable))

    def _topic_id(self, partition: TopicPartition) -> bytes | None:
        directory = self.directories.find(partition)
        return None if directory is None else self.directories.topic_id(directory)
