"""Merges small files of a partition and a date into few large ones.

Frequent runs leave a small file each. They are merged in order of offset, with the result that one
run would have written. One commit replaces them by the merged file (see commit.py). Files with
different schemas or topic ids are not merged.
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

from odradek.pipeline.jobs import JobError
from odradek.pipeline.jobs.progress import Progress
from odradek.pipeline.jobs.task_runner import TaskRunner
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
    """A staged file, and the files whose records it has."""

    sources: tuple[ArchivedFile, ...]
    staged: ArchivedFile


def mergeable_groups(
    state: ArchiveState, topics: Iterable[str], small_bytes: int = SMALL_BYTES
) -> list[list[ArchivedFile]]:
    """Return groups of files to merge: adjacent, each small, together at most TARGET_BYTES."""
    wanted = set(topics)
    by_place: dict[object, list[ArchivedFile]] = {}
    for file in state.files.values():
        if file.of.topic in wanted:
            place = (file.of, file.date, file.schema_id, file.is_dead_letters)
            by_place.setdefault(place, []).append(file)
    return [group for files in by_place.values() for group in _groups(files, small_bytes)]


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
    """Merges files into staged files. It is pickled and sent to the tasks."""

    layout: ArchiveLayout
    run_id: str
    files: Files = field(default_factory=Files)

    def __call__(self, sources: Sequence[ArchivedFile]) -> Iterator[MergedFile]:
        """Merge one group of files. Raises JobError, OSError."""
        directory = self.layout.run(self.run_id)
        self.files.make_directory(directory)
        path = directory / f"merged-{uuid.uuid4().hex}{STAGED_SUFFIX}"
        records = self._write(path, sources)
        expected = sum(file.records for file in sources)
        if records != expected:
            raise JobError(f"merging {sources[0].path} and others: {records} of {expected} records")
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
            for table in in_row_groups(
                read_by_offset(self._offset_files(sources)), ROW_GROUP_BYTES
            ):
                writer.write_table(table, row_group_size=table.num_rows)
                records += table.num_rows
        return records

    def _offset_files(self, sources: Sequence[ArchivedFile]) -> list[OffsetFile]:
        return [OffsetFile(self.layout.root / each.path, each.first_offset) for each in sources]


def in_row_groups(tables: Iterable[pa.Table], row_group_bytes: int) -> Iterator[pa.Table]:
    """Concatenate tables until they have the size of a row group."""
    group: list[pa.Table] = []
    size_bytes = 0
    for table in tables:
        group.append(table)
        size_bytes += table.nbytes
        if size_bytes >= row_group_bytes:
            yield pa.concat_tables(group)
            group, size_bytes = [], 0
    if group:
        yield pa.concat_tables(group)


def compact(
    runner: TaskRunner,
    committer: Committer,
    topics: TopicChoice,
    summary: ArchiveSummary,
    progress: Progress,
) -> None:
    """Merge small files. Raises JobError, OSError."""
    archived = sorted({file.of.topic for file in committer.state.files.values()})
    groups = mergeable_groups(committer.state, topics.select(archived))
    manifest = committer.manifest
    # Files of old dates may have been deleted on purpose. A group that lacks a file is left alone.
    groups = [group for group in groups if all(_exists(manifest, file) for file in group)]
    progress.total("compacting", len(groups))
    work: Callable[[Sequence[ArchivedFile]], Iterable[MergedFile]] = MergingWork(
        layout=manifest.layout, run_id=committer.run_id, files=manifest.files
    )
    with closing(runner.run(work, groups, "compact")) as results:
        for _, merged in results:
            for each in merged:
                committer.compaction([each.staged], [file.path for file in each.sources])
                summary.add_merged(each.staged.of.topic, len(each.sources))
            progress.done(1)


def _exists(manifest: Manifest, file: ArchivedFile) -> bool:
    return manifest.files.exists(manifest.layout.root / file.path)
