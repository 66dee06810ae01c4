"""Writes records to one Parquet file for each date of their timestamps.

Records are buffered until there is enough for a row group. Then the records of the date that has
most are written. So memory is bounded for any number of dates. The number of open files is bounded
too: a date that was not written to for long is closed. If it comes again, it gets a second file.
"""

import datetime
from collections import OrderedDict
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from odradek.pipeline.decoding.varints import Bools, Ints

from .parquet_format import ROW_GROUP_BYTES, open_writer
from .storage import ArchiveFiles, topic_directory

_MAX_OPEN = 100
_BOUNDED = ("partition", "offset", "timestamp")
_US_PER_DAY = 86_400_000_000
_NO_DATE = "__HIVE_DEFAULT_PARTITION__"  # the name for null in Hive's partitioning
_DAYS_FROM_YEAR_1 = -719_162  # to 1970-01-01
_DAYS_TO_YEAR_9999 = 2_932_896
_NO_DAY = _DAYS_TO_YEAR_9999 + 1  # all records without a date are in one file
_MS_PER_DAY = 86_400_000


class WrittenFile(NamedTuple):
    """A file with records of one topic and date. The bounds are inclusive.

    `date` is None for timestamps outside the years 1 to 9999.
    """

    path: str
    topic: str
    date: str | None
    records: int
    size_bytes: int
    partitions: tuple[int, int]
    offsets: tuple[int, int]
    times_us: tuple[int, int]
    is_dead_letters: bool = False


class DatedFiles:
    """Takes the records of one partition in order of offset, all with one schema.

    The files have names that begin with `stem`, which no other attempt may use.
    """

    def __init__(
        self,
        files: ArchiveFiles,
        topic: str,
        stem: str,
        row_group_bytes: int = ROW_GROUP_BYTES,
    ) -> None:
        self._files = files
        self._topic = topic
        self._stem = stem
        self._row_group_bytes = row_group_bytes
        self._buffers: dict[int, _Buffer] = {}
        self._buffered_bytes = 0
        self._open: OrderedDict[int, FileWriter] = OrderedDict()  # least recently written first
        self._opened = 0
        self._done: list[WrittenFile] = []

    def add(self, batch: pa.RecordBatch) -> None:
        """Add records. Raises OSError."""
        for day, part in _by_day(batch):
            self._buffered_bytes += self._buffers.setdefault(day, _Buffer()).add(part)
        while self._buffered_bytes >= self._row_group_bytes:
            self._write(max(self._buffers, key=lambda day: self._buffers[day].size_bytes))

    def finish(self) -> list[WrittenFile]:
        """Write the rest, and return all files. Raises OSError."""
        for day in list(self._buffers):
            self._write(day)
        while self._open:
            self._close_least_recent()
        return self._done

    def _write(self, day: int) -> None:
        buffer = self._buffers.pop(day)
        self._buffered_bytes -= buffer.size_bytes
        file = self._open.get(day)
        if file is None:
            if len(self._open) >= _MAX_OPEN:
                self._close_least_recent()
            file = self._open[day] = self._new_file(day, buffer.batches[0].schema)
        self._open.move_to_end(day)
        file.write(pa.Table.from_batches(buffer.batches))

    def _new_file(self, day: int, schema: pa.Schema) -> "FileWriter":
        name = f"{self._stem}-{self._opened}.parquet"
        self._opened += 1
        return FileWriter(self._files, self._topic, date_of(day), name, schema)

    def _close_least_recent(self) -> None:
        _, file = self._open.popitem(last=False)
        self._done.append(file.close())


class _Buffer:
    """The records of one date that are not written yet."""

    def __init__(self) -> None:
        self.batches: list[pa.RecordBatch] = []
        self.size_bytes = 0

    def add(self, batch: pa.RecordBatch) -> int:
        self.batches.append(batch)
        self.size_bytes += batch.nbytes
        return int(batch.nbytes)


class FileWriter:
    """A new file of one topic and date that is open for writing."""

    def __init__(
        self, files: ArchiveFiles, topic: str, date: str | None, name: str, schema: pa.Schema
    ) -> None:
        """Open it. Raises OSError."""
        self._topic = topic
        self._date = date
        self._path = f"{date_directory(topic, date)}/{name}"
        self._output = files.open_output(self._path)
        self._writer = open_writer(self._output, schema)
        self._records = 0
        self._bounds: dict[str, list[int]] = {name: [] for name in _BOUNDED}

    def write(self, table: pa.Table) -> None:
        """Add a row group. Raises OSError."""
        self._writer.write_table(table, row_group_size=max(table.num_rows, 1))
        self._records += table.num_rows
        for name, known in self._bounds.items():
            bounds = pc.min_max(table[name].cast(pa.int64()))
            known += [bounds["min"].as_py(), bounds["max"].as_py()]

    def close(self) -> WrittenFile:
        """Close it, and return what it contains. Raises OSError."""
        self._writer.close()
        size_bytes = self._output.tell()
        self._output.close()
        partitions, offsets, times_us = ((min(each), max(each)) for each in self._bounds.values())
        return WrittenFile(
            path=self._path,
            topic=self._topic,
            date=self._date,
            records=self._records,
            size_bytes=size_bytes,
            partitions=partitions,
            offsets=offsets,
            times_us=times_us,
        )


def date_of(day: int) -> str | None:
    """Return the date `day` days after 1970-01-01; None outside the years 1 to 9999."""
    if day == _NO_DAY:
        return None
    return (datetime.date(1970, 1, 1) + datetime.timedelta(days=day)).isoformat()


def have_no_date(times_ms: Ints) -> Bools:
    """Whether each of these timestamps, in milliseconds, is outside the years 1 to 9999."""
    return _are_outside(times_ms // _MS_PER_DAY)


def _days_of(timestamps: pa.Array) -> Ints:
    """Return the days since 1970-01-01; _NO_DAY outside the years 1 to 9999."""
    days: Ints = timestamps.cast(pa.int64()).to_numpy() // _US_PER_DAY
    return np.where(_are_outside(days), _NO_DAY, days)


def _are_outside(days: Ints) -> Bools:
    outside: Bools = (days < _DAYS_FROM_YEAR_1) | (days > _DAYS_TO_YEAR_9999)
    return outside


def date_directory(topic: str, date: str | None) -> str:
    """Return the path relative to the archive."""
    return f"{topic_directory(topic)}/date={date or _NO_DATE}"


def _by_day(batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the records of each date, in their order."""
    if not batch.num_rows:
        return
    days = _days_of(batch["timestamp"])
    if (days == days[0]).all():
        yield int(days[0]), batch
        return
    # Copied, not sliced: a slice would keep the whole batch in memory.
    order = np.argsort(days, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(days[order])) + 1):
        yield int(days[rows[0]]), batch.take(pa.array(rows))
