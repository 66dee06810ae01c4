"""Selects the records of an archive that are to be replayed."""

from dataclasses import dataclass

import msgspec
import numpy as np
import pyarrow as pa

from odradek.pipeline.decoding.varints import Bools, Ints
from odradek.pipeline.jobs import JobError
from odradek.pipeline.jobs.archive.entries import ArchivedFile, PartitionKey
from odradek.pipeline.jobs.archive.manifest import ArchiveState
from odradek.pipeline.reading.partitions import TopicPartition

_US_PER_MS = 1000


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """Records in [from_ms, to_ms) and [from_offset, to_offset), of these partitions or of all."""

    from_ms: int | None = None
    to_ms: int | None = None
    from_offset: int | None = None
    to_offset: int | None = None
    partitions: tuple[int, ...] = ()

    def may_select_from(self, file: ArchivedFile) -> bool:
        """Whether the file may have such records."""
        if self.partitions and file.of.partition not in self.partitions:
            return False
        oldest_ms, newest_ms = file.times_ms
        return (
            (self.from_ms is None or newest_ms >= self.from_ms)
            and (self.to_ms is None or oldest_ms < self.to_ms)
            and (self.from_offset is None or file.last_offset >= self.from_offset)
            and (self.to_offset is None or file.first_offset < self.to_offset)
        )

    def filter(self, table: pa.Table) -> pa.Table:
        """Return the selected records of a table."""
        offset: Ints = table["offset"].to_numpy()
        time_ms: Ints = table["timestamp"].cast(pa.int64()).to_numpy() // _US_PER_MS
        selected: Bools = np.ones(offset.size, np.bool_)
        for values, start, end in (
            (offset, self.from_offset, self.to_offset),
            (time_ms, self.from_ms, self.to_ms),
        ):
            if start is not None:
                selected &= values >= start
            if end is not None:
                selected &= values < end
        return table if selected.all() else table.filter(pa.array(selected))


@dataclass(frozen=True, slots=True)
class PartitionFiles:
    """The files of one partition that may have selected records."""

    of: PartitionKey
    files: tuple[ArchivedFile, ...]

    @property
    def partition(self) -> TopicPartition:
        return self.of.without_id

    @property
    def records(self) -> int:
        """An upper bound of the number of selected records."""
        return sum(file.records for file in self.files)


def select(state: ArchiveState, topic: str, wanted: Selection) -> list[PartitionFiles]:
    """Return the archived files of a topic's newest id, by partition. Raises JobError."""
    topic_ids = [key.topic_id for key in state.covered if key.topic == topic]
    if not topic_ids:
        raise JobError(f"the archive does not contain topic {topic}")
    files: dict[PartitionKey, list[ArchivedFile]] = {}
    for file in state.files.values():
        of_topic = file.of.topic == topic and file.of.topic_id == topic_ids[-1]
        if of_topic and wanted.may_select_from(file):
            files.setdefault(file.of, []).append(file)
    return [
        PartitionFiles(key, tuple(sorted(files[key], key=lambda each: each.first_offset)))
        for key in sorted(files, key=lambda key: key.partition)
    ]
