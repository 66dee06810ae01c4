"""Finds what a run alone has read, if another has archived some of the same offsets meanwhile.

The other may have found offsets lost that this run has read, because the log lost them in between.
Then this run alone has their records. So it archives what the other has not read, and writes files
that also have other records again without these.
"""

from collections.abc import Iterable, Iterator

from odradek.pipeline.jobs.archive.parquet.storage import ArchiveFiles
from odradek.pipeline.jobs.archive.table.replacing import write_span
from odradek.pipeline.jobs.archive.table.state import ArchiveState, PartitionKey, PartitionState
from odradek.pipeline.jobs.offset_spans import Span, overlap, without

from .writing import WrittenRange


def not_archived(
    archive: ArchiveFiles, state: ArchiveState, written: Iterable[WrittenRange], run_id: str
) -> Iterator[WrittenRange]:
    """Yield the ranges, or parts of them, that a commit on this state may add. Raises OSError."""
    partitions: dict[PartitionKey, PartitionState] = {}
    for each in written:
        archived = each.archived
        known = partitions.get(archived.of) or state.of(archived.of)
        for span in without(Span(archived.start, archived.end), known.read):
            part = _part(archive, each, span, run_id)
            known = known.with_range(part.archived)
            yield part
        partitions[archived.of] = known


def _part(archive: ArchiveFiles, written: WrittenRange, span: Span, run_id: str) -> WrittenRange:
    archived = written.archived
    if span == (archived.start, archived.end):
        return written
    parts = [write_span(archive, file, span, run_id) for file in written.files]
    files = tuple(file for file in parts if file is not None)
    part = archived._replace(
        start=span.start,
        end=span.end,
        mark=archived.mark if span.end == archived.end else None,
        records=sum(file.records for file in files if not file.is_dead_letters),
        dead_letters=sum(file.records for file in files if file.is_dead_letters),
        lost=tuple(overlap(archived.lost, [span])),
        skipped=tuple(overlap(archived.skipped, [span])),
    )
    return written._replace(
        archived=part, files=files, skipped=written.skipped if part.skipped else ()
    )
