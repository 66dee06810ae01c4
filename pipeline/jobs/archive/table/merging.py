"""Merges small files of a topic and date into larger ones with the same records. Tasks run this.

The table's library can merge files too, but does not notice that another process merges the same
files at the same time: both commits are made, and each record is there twice (delta-rs 3982). So
the merged files are committed like new records, by a commit that depends on what was read (table).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

import pyarrow as pa

from odradek.pipeline.jobs.archive.parquet.dated_files import FileWriter, WrittenFile
from odradek.pipeline.jobs.archive.parquet.parquet_format import ROW_GROUP_BYTES
from odradek.pipeline.jobs.archive.parquet.plain_types import PlainFile
from odradek.pipeline.jobs.archive.parquet.storage import (
    ArchiveFiles,
    ArchiveLocation,
    new_run_id,
    unique_name,
)
from odradek.storage.files import Files

from .data_files import DataFile

_TARGET_BYTES = 128 << 20


class MergedFile(NamedTuple):
    """A new file, and those whose records it has."""

    written: WrittenFile
    replaced: Sequence[DataFile]


def files_to_merge(
    files: Iterable[DataFile], target_bytes: int = _TARGET_BYTES
) -> Iterator[list[DataFile]]:
    """Yield files of one topic and date that make one file of at most about the target.

    Files of half the target are left alone, so that they are not written again and again.
    """
    small = [file for file in files if file.size_bytes < target_bytes // 2]
    small.sort(key=lambda file: (file.topic, file.date or "", file.offsets[0] or 0, file.path))
    for _, of_date in groupby(small, key=lambda file: (file.topic, file.date)):
        group: list[DataFile] = []
        group_bytes = 0
        for file in of_date:
            if group_bytes + file.size_bytes > target_bytes:
                if len(group) > 1:
                    yield group
                group, group_bytes = [], 0
            group.append(file)
            group_bytes += file.size_bytes
        if len(group) > 1:
            yield group


@dataclass(frozen=True, slots=True, kw_only=True)
class MergingWork:
    """What the tasks of a merge do. It is pickled and sent to them."""

    location: ArchiveLocation
    files: Files = field(default_factory=Files)
    row_group_bytes: int = ROW_GROUP_BYTES
    run_id: str = field(default_factory=new_run_id)

    def __call__(self, group: Sequence[DataFile]) -> Iterator[MergedFile]:
        """Write one file with the records of several. Raises OSError."""
        archive = ArchiveFiles(self.location, self.files)
        schemas = [_schema(archive, each) for each in group]
        schema = pa.unify_schemas(schemas, promote_options="permissive")
        name = f"merged-{unique_name(self.run_id)}.parquet"
        writer = FileWriter(archive, group[0].topic, group[0].date, name, schema)
        waiting, waiting_bytes = [schema.empty_table()], 0
        for rows in _row_groups(archive, group):
            waiting.append(rows)
            waiting_bytes += rows.nbytes
            if waiting_bytes >= self.row_group_bytes:
                writer.write(pa.concat_tables(waiting, promote_options="permissive"))
                waiting, waiting_bytes = [schema.empty_table()], 0
        if waiting_bytes:
            writer.write(pa.concat_tables(waiting, promote_options="permissive"))
        written = writer.close()
        archive.sync([written.path])
        yield MergedFile(written, group)


def _schema(archive: ArchiveFiles, file: DataFile) -> pa.Schema:
    with PlainFile(archive.filesystem, file.path) as source:
        return source.schema


def _row_groups(archive: ArchiveFiles, group: Sequence[DataFile]) -> Iterator[pa.Table]:
    for each in group:
        with PlainFile(archive.filesystem, each.path) as source:
            yield from source.row_groups()
