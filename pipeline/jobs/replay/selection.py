"""Which records of an archive are to be replayed."""

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec
import numpy as np
import pyarrow as pa

from odradek.pipeline.decoding.varints import Bools, Ints
from odradek.pipeline.jobs.archive.entries import ArchivedFile, PartitionKey
from odradek.pipeline.jobs.archive.manifest import ArchiveState
from odradek.pipeline.jobs.job_error import JobError
from odradek.pipeline.reading.partitions import TopicPartition

_US_PER_MS = 1000


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """Records in [from_ms, to_ms) and [from_offset, to_offset), of these partitions or of all."""

    from_ms: int | None = None
    to_ms: int | None = None
    from_offset: int | None = None
    to_offset: int | None = None
    partitions: tuple[int, ...] = ()

    def takes_file(self, file: ArchivedFile) -> bool:
        """Whether there may be such records in it."""
        if self.partitions and file.of.partition not in self.partitions:
            return False
        oldest_ms, newest_ms = file.times_ms
        return (
            (self.from_ms is None or newest_ms >= self.from_ms)
            and (self.to_ms is None or oldest_ms < self.to_ms)
            and (self.from_offset is None or file.last_offset >= self.from_offset)
            and (self.to_offset is None or file.first_offset < self.to_offset)
        )

    def of(self, table: pa.Table) -> pa.Table:
        """Those of the records."""
        offset: Ints = table["offset"].to_numpy()
        time_ms: Ints = table["timestamp"].cast(pa.int64()).to_numpy() // _US_PER_MS
        taken: Bools = np.ones(offset.size, np.bool_)
        for values, start, end in (
            (offset, self.from_offset, self.to_offset),
            (time_ms, self.from_ms, self.to_ms),
        ):
            if start is not None:
                taken &= values >= start
            if end is not None:
                taken &= values < end
        return table if taken.all() else table.filter(pa.array(taken))


@dataclass(frozen=True, slots=True)
class PartitionFiles:
    """The files of one partition that may have such records."""

    of: PartitionKey
    files: tuple[ArchivedFile, ...]

    @property
    def partition(self) -> TopicPartition:
        return TopicPartition(self.of.topic, self.of.partition)

    @property
    def records(self) -> int:
        """How many there are at most."""
        return sum(file.records for file in self.files)


def select(state: ArchiveState, topic: str, wanted: Selection) -> list[PartitionFiles]:
    """What is archived of the newest life of a topic, by partition. Raises JobError."""
    lives = [key.topic_id for key in state.covered if key.topic == topic]
    if not lives:
        raise JobError(f"the archive has nothing of topic {topic}")
    found: dict[PartitionKey, list[ArchivedFile]] = {}
    for file in state.files.values():
        if file.of.topic == topic and file.of.topic_id == lives[-1] and wanted.takes_file(file):
            found.setdefault(file.of, []).append(file)
    return list(_sorted(found))


def _sorted(found: dict[PartitionKey, list[ArchivedFile]]) -> Iterator[PartitionFiles]:
    for key in sorted(found, key=lambda key: key.partition):
        yield PartitionFiles(key, tuple(sorted(found[key], key=lambda each: each.first_offset)))
