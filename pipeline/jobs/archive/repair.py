"""Repairs the archive of a partition whose log has lost archived records (see batch_marks.py).

The records of the table and of the log are compared, from the newest batch that both have, as far
as they were archived. Those from the first difference on are deleted from the table. The records
that now have these offsets replace them, in the same commit.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from heapq import merge
from itertools import groupby, repeat
from typing import Any

import msgspec
import pyarrow as pa

from odradek.pipeline.jobs import JobError, OvertakenError
from odradek.pipeline.jobs.archive.table.archive_table import ArchiveTable
from odradek.pipeline.jobs.archive.table.data_files import PartitionRows
from odradek.pipeline.jobs.archive.table.state import (
    ArchivedRange,
    ArchiveState,
    BatchMark,
    PartitionState,
)
from odradek.pipeline.jobs.offset_spans import Span, overlap
from odradek.pipeline.reading.bounds import offset_bounds
from odradek.pipeline.reading.range_reader import OffsetRange
from odradek.storage.topic_partition import TopicPartition

from .batch_marks import is_cleaned, mark_before, matches_mark
from .planner import Planner, partition_key
from .writing import RangeReading, WritingWork

Row = tuple[Any, ...]
_ROWS_AT_ONCE = 10_000
_COMPARED = ("offset", "key", "timestamp", "headers", "value")


@dataclass(frozen=True, slots=True)
class Repair:
    """Repairs partitions of an archive. `planner` and `work` are those of the run."""

    table: ArchiveTable
    planner: Planner
    work: WritingWork

    def repair(self, partition: TopicPartition) -> str:
        """Repair a partition, and say what was done. Raises JobError, OSError."""
        directories = self.planner.directories
        topic_id = self.planner.topic_id(partition)
        archived = self.table.state.of(partition_key(partition, topic_id))
        log_start = offset_bounds(directories, partition).start
        marks = [
            mark
            for mark in archived.marks
            if log_start < mark.end and matches_mark(directories, partition, mark)
        ]
        common = marks[-1].end if marks else max(archived.start, log_start)
        first = self._first_difference(partition, archived, marks, common)
        if first == common and not marks and topic_id is None:
            raise JobError(
                f"the archive has offsets up to {archived.end - 1}, and the log has none of these "
                f"records: it was replaced by another"
            )
        if first > common and (mark := mark_before(directories, partition, first)) is not None:
            marks.append(mark)
        return self._replace(partition, archived, archived.before(first, marks), first)

    def _first_difference(
        self,
        partition: TopicPartition,
        archived: PartitionState,
        marks: Sequence[BatchMark],
        common: int,
    ) -> int:
        """Return the first offset from which on the table and the log differ."""
        if archived.dropped_values:  # there is nothing to compare
            if common < archived.changed_before:
                raise JobError(
                    "the log has lost archived records, and which cannot be found out: another "
                    "writer has changed the table, and values were not archived. Archive to "
                    "another place"
                )
            return common
        missing = self._ranges(partition, archived.before(common, marks), archived.end)
        ranges = [  # not what was never archived
            replace(each, start=span.start, end=span.end)
            for each in missing
            for span in overlap([Span(each.start, each.end)], archived.covered)
        ]
        end = max((each.end for each in ranges), default=common)
        plain = replace(self.work, value_schemas={})
        logged = (table for each in ranges for table in _tables(plain.reading(each)))
        there = self.table.rows(PartitionRows(archived.of, common), _COMPARED)
        was_cleaned = partial(is_cleaned, self.planner.directories, partition)
        return first_difference(
            _rows(there), _rows(logged), end, was_cleaned, archived.changed_before
        )

    def _replace(
        self, partition: TopicPartition, archived: PartitionState, left: PartitionState, first: int
    ) -> str:
        """Delete the rows from an offset on, and add the log's, up to where the archive ended."""
        dead = PartitionRows(archived.of, first)
        removed = sum(each.num_rows for each in self.table.rows(dead, ["offset"]))
        ranges: list[ArchivedRange] = []
        parts: list[pa.Table] = []
        for wanted in self._ranges(partition, left, archived.end):
            if wanted.end <= first:  # it was never archived: the next plan has it
                continue
            reading = self.work.reading(replace(wanted, start=max(wanted.start, first)))
            parts += _tables(reading)
            ranges.append(reading.archived())
        records = pa.concat_tables(parts, promote_options="default") if parts else None
        replaces = bool(removed) or records is not None
        if replaces:
            left = msgspec.structs.replace(left, repairs=(*left.repairs, first))

        def change(state: ArchiveState) -> ArchiveState:
            if state.of(archived.of) != archived:
                raise OvertakenError(
                    f"another process has changed what is archived of {partition} at the same "
                    f"time; run this again when it has ended"
                )
            return state.with_partition(left).with_ranges(ranges)

        if not replaces:
            self.table.append([], change)
            return "the last archived batches were written again; their records are the same"
        self.table.replace(dead, records, change)
        return (
            f"the log has lost archived records from offset {first} on (the archive had offsets up "
            f"to {archived.end - 1}): {removed} records were removed from the table, and "
            f"{0 if records is None else records.num_rows} that the log has there now were added"
        )

    def _ranges(
        self, partition: TopicPartition, archived: PartitionState, end: int
    ) -> list[OffsetRange]:
        """Return the ranges before `end` that the log has and that state lacks."""
        state = self.table.state.with_partition(archived)
        plan = replace(self.planner, state=state, until_end=True).plan(partition)
        if plan.problem:
            raise JobError(plan.problem)
        wanted = [each for each in plan.ranges if each.start < end]
        return [replace(each, end=min(each.end, end)) for each in wanted]


def first_difference(
    archived: Iterable[Row],
    logged: Iterable[Row],
    end: int,
    was_cleaned: Callable[[int], bool],
    changed_before: int = 0,
) -> int:
    """Return the first offset from which on the rows differ, or `end`, where the log ends.

    Rows begin with their offset and are sorted. A row that only the table has is no difference if
    the log cleaner has removed it from the log. Another writer may have changed rows before
    `changed_before`. A log loses its end only, so if both have a later row, it was the writer.
    """
    first: int | None = None
    for offset, row, there in _paired(archived, logged):
        if row == there:
            first = None
        elif offset >= end:
            break
        elif there is not None or not was_cleaned(offset):
            first = offset if first is None else first
            if offset >= changed_before:
                break
    return end if first is None else first


def _paired(
    archived: Iterable[Row], logged: Iterable[Row]
) -> Iterator[tuple[int, Row | None, Row | None]]:
    """Yield each offset with the row of the table and that of the log. One may be None."""
    tables = (zip(rows, repeat(number)) for number, rows in enumerate((archived, logged)))
    rows_by_offset = groupby(merge(*tables, key=_offset), key=_offset)
    for offset, pairs in rows_by_offset:
        found = {number: row for row, number in pairs}
        yield offset, found.get(0), found.get(1)


def _offset(numbered: tuple[Row, int]) -> int:
    return int(numbered[0][0])


def _tables(reading: RangeReading) -> Iterator[pa.Table]:
    """Yield all records of a range. Raises JobError if one cannot be read: nothing is repaired."""
    for pair in reading.records():
        yield from (pa.Table.from_batches([each]) for each in pair if each is not None)
    if reading.error or reading.note:
        raise JobError(f"the log has lost archived records, and {reading.error or reading.note}")


def _rows(tables: Iterable[pa.Table]) -> Iterator[Row]:
    for table in tables:
        for batch in table.select(_COMPARED).to_batches(max_chunksize=_ROWS_AT_ONCE):
            yield from zip(*(_plain(column).to_pylist() for column in batch.columns), strict=True)


def _plain(column: pa.Array) -> pa.Array:
    """Return a column without timestamps: Python has none after the year 9999."""
    return column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column
