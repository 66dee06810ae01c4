"""What an archive contains, and its records in order of offset."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa

from odradek.pipeline.decoding.columns import TIMESTAMP_MS
from odradek.pipeline.jobs import JobError
from odradek.pipeline.jobs.archive.parquet.storage import ArchiveLocation
from odradek.pipeline.jobs.archive.table.archive_table import ArchiveTable
from odradek.pipeline.jobs.archive.table.data_files import DataFile, PartitionRows, read_by_offset
from odradek.pipeline.jobs.archive.table.state import PartitionState
from odradek.pipeline.jobs.offset_spans import Span
from odradek.pipeline.jobs.topic_choice import TopicChoice
from odradek.storage.files import Files
from odradek.storage.topic_partition import TopicPartition

from .selection import Selection

COLUMNS = ("key", "value", "offset", "timestamp", "headers", TIMESTAMP_MS)


@dataclass(frozen=True, slots=True)
class ArchivedPartition:
    """The files that may have selected records of one partition. Tasks get it pickled."""

    archive: ArchiveLocation
    state: PartitionState
    files: tuple[DataFile, ...]

    @property
    def of(self) -> TopicPartition:
        return self.state.of.without_id

    @property
    def topic_id(self) -> str:
        return self.state.of.topic_id

    @property
    def records(self) -> int:
        """An upper bound of the number of selected records. Raises OSError."""
        filesystem = self.archive.filesystem()
        return sum(file.count_records(filesystem) for file in self.files)

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)

    @property
    def oldest_ms(self) -> int:
        times = [file.times_ms[0] for file in self.files]
        return min((each for each in times if each is not None), default=0)

    def tables(self, start_offset: int) -> Iterator[pa.Table]:
        """Yield the records from `start_offset` on, with COLUMNS. Raises OSError."""
        paths = [file.path for file in self.files]
        rows = PartitionRows(self.state.of, start_offset)
        return read_by_offset(self.archive.filesystem(), paths, rows, COLUMNS)

    def check_continued(self, next_offset: int, repairs: int) -> None:
        """Raise JobError if records before `next_offset` were replaced since so many repairs."""
        since = [offset for offset in self.state.repairs[repairs:] if offset < next_offset]
        if since:
            raise JobError(
                f"the replay of {self.of} cannot be continued: it has sent records up to offset "
                f"{next_offset - 1}, and the archive has others from offset {min(since)} on, "
                f"because the log had lost those. Begin a new job without --job-id, for another "
                f"topic or from that offset on (--from-offset)"
            )

    def check(self, selection: Selection) -> None:
        """Raise JobError if the archive does not have all of the records, and may get them."""
        for start, end in self.state.missing(Span(self.state.wanted_start, self.state.end)):
            if selection.may_select_offsets(start, end - 1):
                raise JobError(
                    f"{self.of} cannot be replayed: offsets {start} to {end - 1} are not archived "
                    f"yet. Run archive again; if it cannot read them, use --skip-unreadable, or "
                    f"replay without them (--from-offset, --to-offset)"
                )
        if self.state.dropped_values:
            raise JobError(f"{self.of} cannot be replayed: values were not archived")


class Archived(NamedTuple):
    """The selected partitions by topic, and how many partitions each topic has.

    `notes` say in what the table may differ from the topics.
    """

    topics: Mapping[str, tuple[ArchivedPartition, ...]]
    partition_counts: Mapping[str, int]
    notes: Sequence[str] = ()


def read_archive(
    archive: ArchiveLocation, topics: TopicChoice, selection: Selection, files: Files
) -> Archived:
    """Return what is selected, of the newest id of each topic. Raises JobError, OSError."""
    table = ArchiveTable(archive, files)
    chosen = topics.select(sorted({key.topic for key in table.state.partitions}))
    return Archived(
        {topic: tuple(_selected(table, topic, selection)) for topic in chosen},
        {topic: table.state.counts.get(topic, 1) for topic in chosen},
        list(_differences(table, chosen)),
    )


def _differences(table: ArchiveTable, topics: Iterable[str]) -> Iterator[str]:
    for each in table.state.accepted_changes:
        yield f"another writer has changed records of the archive: {each}"
    for partition in (partition for topic in topics for partition in table.state.newest(topic)):
        for spans, why in (
            (partition.skipped, "archive could not read them"),
            (partition.lost, "they were deleted before they could be archived"),
        ):
            for start, end in spans:
                place = f"{partition.of.without_id}: offsets {start} to {end - 1}"
                yield f"{place} are left out: {why}"


def _selected(table: ArchiveTable, topic: str, selection: Selection) -> Iterator[ArchivedPartition]:
    files = table.data_files(topic)
    for partition in table.state.newest(topic):
        number = partition.of.partition
        rows = PartitionRows(partition.of, selection.from_offset or 0)
        found = tuple(
            file
            for file in files
            if file.may_have(rows)
            and selection.may_select_from(number, file.times_ms, file.offsets)
        )
        if found:
            yield ArchivedPartition(table.location, partition, found)
