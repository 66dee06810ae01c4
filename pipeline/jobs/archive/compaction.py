"""Many small files of a partition and a date into few large ones.

Frequent runs leave a small file each. They are merged by rising offsets, as they would have been
written in one run, and one commit puts the merged file in their place: see commit.py. Files of
different schemas, and of different lives of a topic, stay apart.
"""

import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from msgspec.structs import replace

from odradek.pipeline.jobs.job_error import JobError
from odradek.pipeline.jobs.task_runner import TaskRunner
from odradek.pipeline.jobs.told import Told
from odradek.pipeline.jobs.topic_choice import TopicChoice
from odradek.storage.files import Files

from .commit import Committer
from .entries import ArchivedFile
from .layout import STAGED_SUFFIX, ArchiveLayout
from .manifest import ArchiveState, Manifest
from .merged_records import OffsetFile, read_by_offset
from .parquet_format import ROW_GROUP_BYTES, open_writer
from .summary import ArchiveSummary

SMALL_BYTES = 32 << 20
TARGET_BYTES = 128 << 20


class MergedFile(NamedTuple):
    """Files, and the staged one that has their records."""

    sources: tuple[ArchivedFile, ...]
    staged: ArchivedFile


def merges(
    state: ArchiveState, topics: Iterable[str], small_bytes: int = SMALL_BYTES
) -> list[list[ArchivedFile]]:
    """Which files are to be merged: neighbours, each small, together no more than a large one."""
    wanted = set(topics)
    places: dict[object, list[ArchivedFile]] = {}
    for file in state.files.values():
        if file.of.topic in wanted:
            place = (file.of, file.date, file.schema_id, file.is_dead_letters)
            places.setdefault(place, []).append(file)
    return [group for files in places.values() for group in _groups(files, small_bytes)]


def _groups(files: list[ArchivedFile], small_bytes: int) -> Iterator[list[ArchivedFile]]:
    group: list[ArchivedFile] = []
    total = 0
    for file in sorted(files, key=lambda each: each.first_offset):
        is_small = file.size_bytes < small_bytes
        if not is_small or total + file.size_bytes > max(TARGET_BYTES, small_bytes):
            if len(group) > 1:
                yield group
            group, total = [], 0
        if is_small:
            group.append(file)
            total += file.size_bytes
    if len(group) > 1:
        yield group


@dataclass(frozen=True, slots=True, kw_only=True)
class MergingWork:
    """Merges files into staged ones. It is sent to the tasks."""

    layout: ArchiveLayout
    run_id: str
    files: Files = field(default_factory=Files)

    def __call__(self, sources: Sequence[ArchivedFile]) -> Iterator[MergedFile]:
        """Raises JobError, OSError."""
        directory = self.layout.run(self.run_id)
        self.files.make_directory(directory)
        path = directory / f"merged-{uuid.uuid4().hex}{STAGED_SUFFIX}"
        records = self._write(path, sources)
        expected = sum(file.records for file in sources)
        if records != expected:
            raise JobError(f"{sources[0].path} and its neighbours: {records} of {expected} records")
        self.files.fsync(self.files.open(path, read_only=True))
        self.files.fsync_directory(directory)
        staged = replace(
            sources[0],
            path="",
            staged=path.name,
            records=records,
            size_bytes=self.files.size(path),
            last_offset=max(file.last_offset for file in sources),
            times_ms=(
                min(file.times_ms[0] for file in sources),
                max(file.times_ms[1] for file in sources),
            ),
        )
        yield MergedFile(tuple(sources), staged)

    def _write(self, path: Path, sources: Sequence[ArchivedFile]) -> int:
        records = 0
        first = self.layout.root / sources[0].path
        with open_writer(path, pq.read_schema(first)) as writer:
            for table in in_row_groups(read_by_offset(self._placed(sources)), ROW_GROUP_BYTES):
                writer.write_table(table, row_group_size=table.num_rows)
                records += table.num_rows
        return records

    def _placed(self, sources: Sequence[ArchivedFile]) -> list[OffsetFile]:
        return [OffsetFile(self.layout.root / each.path, each.first_offset) for each in sources]


def in_row_groups(tables: Iterable[pa.Table], group_bytes: int) -> Iterator[pa.Table]:
    """As many of the tables together as make a row group."""
    together: list[pa.Table] = []
    size_bytes = 0
    for table in tables:
        together.append(table)
        size_bytes += table.nbytes
        if size_bytes >= group_bytes:
            yield pa.concat_tables(together)
            together, size_bytes = [], 0
    if together:
        yield pa.concat_tables(together)


def compact(
    runner: TaskRunner,
    committer: Committer,
    topics: TopicChoice,
    summary: ArchiveSummary,
    told: Told,
) -> None:
    """Merge what is small. Raises JobError, OSError."""
    there = sorted({file.of.topic for file in committer.state.files.values()})
    groups = merges(committer.state, topics.chosen(there))
    manifest = committer.manifest
    # Somebody may have deleted files of old dates; what is left of them stays as it is.
    groups = [group for group in groups if all(_is_there(manifest, file) for file in group)]
    told.total("compacting", len(groups))
    work: Callable[[Sequence[ArchivedFile]], Iterable[MergedFile]] = MergingWork(
        layout=manifest.layout, run_id=committer.run_id, files=manifest.files
    )
    with closing(runner.run(work, groups, "compact")) as results:
        for _, merged in results:
            for each in merged:
                committer.compaction([each.staged], [file.path for file in each.sources])
                summary.merged(each.staged.of.topic, len(each.sources), 1)
            told.done(1)


def _is_there(manifest: Manifest, file: ArchivedFile) -> bool:
    return manifest.files.exists(manifest.layout.root / file.path)
