"""Writes what replaces files: files without some of their rows, and files of other records.

The table's library can replace rows, too, but it writes the files and commits them in one call. A
power cut between that and their fsync would take the other rows of these files as well. So the
files are written and synced here, and then committed like new records. `run_id` is in their names:
see ArchiveTable.discarding.
"""

from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from odradek.pipeline.jobs.archive.parquet.dated_files import DatedFiles, FileWriter, WrittenFile
from odradek.pipeline.jobs.archive.parquet.plain_types import PlainFile
from odradek.pipeline.jobs.archive.parquet.storage import ArchiveFiles, unique_name
from odradek.pipeline.jobs.offset_spans import Span

from .data_files import DataFile, PartitionRows


def write_records(
    archive: ArchiveFiles, topic: str, records: pa.Table, run_id: str
) -> list[WrittenFile]:
    """Write records of a topic, in order of offset, to new files. Raises OSError."""
    files = DatedFiles(archive, topic, f"repaired-{unique_name(run_id)}")
    for batch in records.to_batches():
        files.add(batch)
    written = files.finish()
    archive.sync(each.path for each in written)
    return written


def write_without(
    archive: ArchiveFiles, files: Iterable[DataFile], rows: PartitionRows, run_id: str
) -> Iterator[tuple[DataFile, WrittenFile | None]]:
    """Yield the files that have such rows, each with a new one of its other rows, if it has any.

    Raises OSError.
    """
    for file in files:
        with PlainFile(archive.filesystem, file.path) as source:
            has_some = any(rows.select(group).num_rows for group in source.row_groups())
        if has_some:
            yield file, _write_selected(archive, file, rows.others, run_id)


def write_span(
    archive: ArchiveFiles, file: WrittenFile, span: Span, run_id: str
) -> WrittenFile | None:
    """Return a file of the rows with these offsets, or None: the same one if it has no others.

    Raises OSError.
    """
    first, last = file.offsets
    if span.start <= first and last < span.end:
        return file
    if last < span.start or span.end <= first:
        return None

    def select(table: pa.Table) -> pa.Table:
        offsets = table["offset"]
        from_start, before_end = pc.greater_equal(offsets, span.start), pc.less(offsets, span.end)
        return table.filter(pc.and_(from_start, before_end))

    written = _write_selected(archive, file, select, run_id)
    return None if written is None else written._replace(is_dead_letters=file.is_dead_letters)


def _write_selected(
    archive: ArchiveFiles,
    file: DataFile | WrittenFile,
    select: Callable[[pa.Table], pa.Table],
    run_id: str,
) -> WrittenFile | None:
    """Write a file's selected rows to a new one, if there are any. Raises OSError."""
    writer: FileWriter | None = None
    with PlainFile(archive.filesystem, file.path) as source:
        for selected in map(select, source.row_groups()):
            if selected.num_rows:
                if writer is None:
                    name = f"rewritten-{unique_name(run_id)}.parquet"
                    writer = FileWriter(archive, file.topic, file.date, name, source.schema)
                writer.write(selected)
    if writer is None:
        return None
    written = writer.close()
    archive.sync([written.path])
    return written
