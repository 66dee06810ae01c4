"""What an archive contains, and its records in order of offset."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from odradek.pipeline.jobs import JobError
from odradek.pipeline.jobs.archive.entries import ArchivedFile, PartitionKey
from odradek.pipeline.jobs.archive.layout import ArchiveLayout
from odradek.pipeline.jobs.archive.manifest import ArchiveState, Manifest
from odradek.pipeline.jobs.archive.merged_records import OffsetFile, read_by_offset
from odradek.pipeline.jobs.topic_choice import TopicChoice
from odradek.storage.files import Files
from odradek.storage.topic_partition import TopicPartition

from .selection import Selection

COLUMNS = ("key", "value", "offset", "timestamp", "headers")


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivedPartition:
    """The files of one partition that may have selected records. Tasks get it pickled.

    `records` is an upper bound of the number of selected records.
    """

    of: TopicPartition
    topic_id: str
    files: tuple[OffsetFile, ...]
    records: int
    size_bytes: int
    oldest_ms: int

    def tables(self, start_offset: int) -> Iterator[pa.Table]:
        """Yield the records from `start_offset` on, with COLUMNS. Raises OSError."""
        return read_by_offset(self.files, start_offset, columns=COLUMNS)

    def check(self) -> None:
        """Raise JobError unless all files exist and have the columns."""
        for file in self.files:
            try:
                schema = pq.read_schema(file.path)
            except FileNotFoundError:
                raise JobError(
                    f"{file.path} was deleted, or is not published yet: run archive again"
                ) from None
            missing = [name for name in COLUMNS if name not in schema.names]
            if missing:
                raise JobError(
                    f"{file.path} cannot be replayed: it has no column {', '.join(missing)}"
                )


class Archived(NamedTuple):
    """The selected partitions by topic, and how many partitions each topic has."""

    topics: Mapping[str, tuple[ArchivedPartition, ...]]
    partition_counts: Mapping[str, int]


def read_archive(
    archive: Path, topics: TopicChoice, selection: Selection, files: Files
) -> Archived:
    """Return what is selected, of the newest id of each topic. Raises JobError, OSError."""
    state = ArchiveState.of(Manifest(ArchiveLayout(archive), files).entries())
    if not state.last_number:
        raise JobError(f"{archive} is not an archive: it has no manifest")
    newest_ids = {key.topic: key.topic_id for key in state.covered}
    chosen = topics.select(sorted(newest_ids))
    selected: dict[str, dict[PartitionKey, list[ArchivedFile]]] = {name: {} for name in chosen}
    for file in state.files.values():
        offsets = (file.first_offset, file.last_offset)
        if (
            file.of.topic in selected
            and file.of.topic_id == newest_ids[file.of.topic]
            and selection.may_select_from(file.of.partition, file.times_ms, offsets)
        ):
            selected[file.of.topic].setdefault(file.of, []).append(file)
    return Archived(
        {
            topic: tuple(
                _partition(archive, key, by_key[key])
                for key in sorted(by_key, key=lambda key: key.partition)
            )
            for topic, by_key in selected.items()
        },
        {topic: state.partitions.get(topic, 1) for topic in chosen},
    )


def _partition(archive: Path, key: PartitionKey, files: list[ArchivedFile]) -> ArchivedPartition:
    files = sorted(files, key=lambda file: file.first_offset)
    return ArchivedPartition(
        of=key.without_id,
        topic_id=key.topic_id,
        files=tuple(OffsetFile(archive / file.path, file.first_offset) for file in files),
        records=sum(file.records for file in files),
        size_bytes=sum(file.size_bytes for file in files),
        oldest_ms=min(file.times_ms[0] for file in files),
    )
