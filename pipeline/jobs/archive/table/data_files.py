"""Reads the records of one partition from the table, in order of offset.

The rows of a file are in no order after the table was compacted. So row groups are read in order of
their first offset. Rows are returned when no later row group can have a lower offset.
"""

import datetime
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from odradek.pipeline.jobs.archive.parquet.plain_types import PlainFile

from .state import PartitionKey

_OFFSET = "offset"


class DataFile(NamedTuple):
    """A file of the table. Bounds are inclusive.

    A bound that is not known is None, and so is the number of records: another writer has written
    the file again, without statistics.
    """

    path: str
    topic: str
    date: str | None
    records: int | None
    size_bytes: int
    offsets: tuple[int | None, int | None]
    partitions: tuple[int | None, int | None]
    times: tuple[datetime.datetime | None, datetime.datetime | None]

    @property
    def times_ms(self) -> tuple[int | None, int | None]:
        """The bounds of timestamps, in milliseconds since 1970."""
        oldest, newest = (
            None if each is None else round(each.timestamp() * 1000) for each in self.times
        )
        return oldest, newest

    @classmethod
    def all_of(cls, actions: pa.Table) -> list[Self]:
        """Return the files of a table.

        `actions` is what deltalake's `get_add_actions(flatten=True)` returns: one row a file.
        """

        def column(name: str) -> list[Any]:
            """Return a column. A column of statistics is missing if no file has them."""
            exists = name in actions.column_names
            return actions[name].to_pylist() if exists else [None] * actions.num_rows

        bounds = [
            zip(column(f"min.{name}"), column(f"max.{name}"), strict=True)
            for name in (_OFFSET, "partition", "timestamp")
        ]
        dates = [None if date is None else str(date) for date in column("partition.date")]
        topics, records = column("partition.topic"), column("num_records")
        return list(map(cls, column("path"), topics, dates, records, column("size_bytes"), *bounds))

    def count_records(self, filesystem: pafs.FileSystem) -> int:
        """Return the number of records, if need be from the file. Raises OSError."""
        if self.records is not None:
            return self.records
        return int(pq.read_metadata(self.path, filesystem=filesystem).num_rows)

    def may_have(self, wanted: "PartitionRows") -> bool:
        """Whether it may have some of these rows, by its bounds. The topic is not compared."""
        _, last_offset = self.offsets
        lowest, highest = self.partitions
        return (
            (last_offset is None or last_offset >= wanted.start_offset)
            and (lowest is None or lowest <= wanted.key.partition)
            and (highest is None or highest >= wanted.key.partition)
        )


class RowGroup(NamedTuple):
    """A row group of a file, by the lowest offset that it may have."""

    first_offset: int
    path: str
    number: int


class PartitionRows(NamedTuple):
    """The rows of one partition from an offset on."""

    key: PartitionKey
    start_offset: int = 0

    def select(self, table: pa.Table) -> pa.Table:
        """Return those rows of the table. All rows of `table` must be of the topic."""
        return table.filter(self._mask(table))

    def others(self, table: pa.Table) -> pa.Table:
        """Return the rows of the table that `select` does not return."""
        return table.filter(pc.invert(self._mask(table)))

    def _mask(self, table: pa.Table) -> pa.ChunkedArray:
        """Return true for each row of the table that is one of these.

        A topic whose id is not known has the id "" in its key. Its rows have null in the column
        `topicId`, or their file lacks the column.
        """
        has_ids = "topicId" in table.column_names
        ids = pc.fill_null(table["topicId"], "") if has_ids else pa.repeat("", table.num_rows)
        is_of_partition = pc.and_(
            pc.equal(table["partition"], self.key.partition), pc.equal(ids, self.key.topic_id)
        )
        return pc.and_(is_of_partition, pc.greater_equal(table[_OFFSET], self.start_offset))


def read_by_offset(
    filesystem: pafs.FileSystem,
    paths: Iterable[str],
    rows: PartitionRows,
    columns: Sequence[str],
) -> Iterator[pa.Table]:
    """Yield the rows in small tables, with these columns and the offset. Raises OSError."""
    kept = [_OFFSET, *(name for name in columns if name != _OFFSET)]
    groups = sorted(group for path in paths for group in _row_groups(filesystem, path, rows))
    held: list[pa.Table] = []
    for number, group in enumerate(groups):
        with PlainFile(filesystem, group.path) as file:
            table = file.row_group(group.number, [*kept, "partition", "topicId"])
        there = [name for name in kept if name in table.column_names]
        held.append(rows.select(table).select(there))
        following = groups[number + 1].first_offset if number + 1 < len(groups) else None
        if following is not None and following <= group.first_offset:
            continue
        table = pa.concat_tables(held, promote_options="default").sort_by(_OFFSET)
        ready = table.num_rows
        if following is not None:
            ready = pc.sum(pc.less(table[_OFFSET], following)).as_py() or 0
        held = [table.slice(ready)]
        if ready:
            yield table.slice(0, ready)


def _row_groups(filesystem: pafs.FileSystem, path: str, rows: PartitionRows) -> Iterator[RowGroup]:
    """Yield the row groups that may have such rows, by the statistics of their columns."""
    metadata = pq.read_metadata(path, filesystem=filesystem)
    names = metadata.schema.names
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        offsets = group.column(names.index(_OFFSET)).statistics
        partitions = group.column(names.index("partition")).statistics
        known = offsets is not None and offsets.has_min_max
        if known and offsets.max < rows.start_offset:
            continue
        if (
            partitions is None
            or not partitions.has_min_max
            or partitions.min <= rows.key.partition <= partitions.max
        ):
            yield RowGroup(offsets.min if known else 0, path, number)
