"""Writes what replaces rows of the table: files without them, and files of other records.

The table's library can replace rows, too, but it writes the files and commits them in one call. A
power cut between that and their fsync would take the other rows of these files as well. So the
files are written and synced here, and then committed like new records.
"""

import uuid
from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.parquet as pq

from odradek.pipeline.jobs.archive.parquet.dated_files import DatedFiles, FileWriter, WrittenFile
from odradek.pipeline.jobs.archive.parquet.plain_types import plain_schema, with_plain_types
from odradek.pipeline.jobs.archive.parquet.storage import ArchiveFiles

from .data_files import DataFile, PartitionRows


def write_records(archive: ArchiveFiles, topic: str, records: pa.Table) -> list[WrittenFile]:
    """Write records of a topic, in order of offset, to new files. Raises OSError."""
    files = DatedFiles(archive, topic, f"repaired-{uuid.uuid4().hex}")
    for batch in records.to_batches():
        files.add(batch)
    written = files.finish()
    archive.sync(each.path for each in written)
    return written


def write_without(
    archive: ArchiveFiles, files: Iterable[DataFile], rows: PartitionRows
) -> Iterator[tuple[DataFile, WrittenFile | None]]:
    """Yield the files that have such rows, each with a new one of its other rows, if it has any.

    Raises OSError.
    """
    for file in files:
        if not any(rows.select(group).num_rows for group in _row_groups(archive, file)):
            continue
        schema = plain_schema(pq.read_schema(file.path, filesystem=archive.filesystem))
        writer: FileWriter | None = None
        for group in _row_groups(archive, file):
            others = rows.others(group)
            if others.num_rows:
                if writer is None:
                    name = f"repaired-{uuid.uuid4().hex}.parquet"
                    writer = FileWriter(archive, file.topic, file.date, name, schema)
                writer.write(others)
        written = None if writer is None else writer.close()
        if written is not None:
            archive.sync([written.path])
        yield file, written


def _row_groups(archive: ArchiveFiles, file: DataFile) -> Iterator[pa.Table]:
    with pq.ParquetFile(file.path, filesystem=archive.filesystem, pre_buffer=False) as source:
        for number in range(source.num_row_groups):
            yield with_plain_types(source.read_row_group(number))
