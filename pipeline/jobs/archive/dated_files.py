"""Writes records to one Parquet file for each date of their timestamps.

Records are buffered until there is enough for a row group. Then the records of the date that has
most are written. So memory is bounded for any number of dates. The number of open files is bounded
too: a date that was not written to for long is closed. If it comes again, it gets a second file.
"""

from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from odradek.pipeline.decoding.varints import Ints
from odradek.storage.files import Files

from .layout import STAGED_SUFFIX
from .parquet_format import ROW_GROUP_BYTES, open_writer

_MAX_OPEN = 100
_US_PER_MS = 1000
_US_PER_DAY = 86_400_000_000


class StagedFile(NamedTuple):
    """A file that is written and synced. `day` counts from 1970-01-01."""

    path: Path
    day: int
    records: int
    size_bytes: int
    first_offset: int
    last_offset: int
    times_ms: tuple[int, int]


class DatedFiles:
    """Takes the records of one partition in order of offset, all with one schema.

    The files are named `stem` and a number, in `directory`, which must exist.
    """

    def __init__(
        self, files: Files, directory: Path, stem: str, row_group_bytes: int = ROW_GROUP_BYTES
    ) -> None:
        self._files = files
        self._directory = directory
        self._stem = stem
        self._row_group_bytes = row_group_bytes
        self._buffers: dict[int, _Buffer] = {}
        self._buffered_bytes = 0
        self._open: OrderedDict[int, _OpenFile] = OrderedDict()  # least recently written first
        self._opened = 0
        self._done: list[StagedFile] = []

    def add(self, batch: pa.RecordBatch) -> None:
        """Add records. Raises OSError."""
        for day, part in _by_day(batch):
            self._buffered_bytes += self._buffers.setdefault(day, _Buffer()).add(part)
        while self._buffered_bytes >= self._row_group_bytes:
            self._write(max(self._buffers, key=lambda day: self._buffers[day].size_bytes))

    def finish(self) -> list[StagedFile]:
        """Write and sync the rest, and return all files in order of date. Raises OSError."""
        for day in list(self._buffers):
            self._write(day)
        while self._open:
            self._close_least_recent()
        return sorted(self._done, key=lambda each: (each.day, each.first_offset))

    def _write(self, day: int) -> None:
        buffer = self._buffers.pop(day)
        self._buffered_bytes -= buffer.size_bytes
        file = self._open.get(day)
        if file is None:
            if len(self._open) >= _MAX_OPEN:
                self._close_least_recent()
            path = self._directory / f"{self._stem}-{self._opened}{STAGED_SUFFIX}"
            self._opened += 1
            file = self._open[day] = _OpenFile(path, buffer.batches[0].schema)
        self._open.move_to_end(day)
        file.write(pa.Table.from_batches(buffer.batches))

    def _close_least_recent(self) -> None:
        day, file = self._open.popitem(last=False)
        self._done.append(file.close(self._files, day))


class _Buffer:
    """The records of one date that are not written yet."""

    def __init__(self) -> None:
        self.batches: list[pa.RecordBatch] = []
        self.size_bytes = 0

    def add(self, batch: pa.RecordBatch) -> int:
        self.batches.append(batch)
        self.size_bytes += batch.nbytes
        return int(batch.nbytes)


class _OpenFile:
    """A file that is open for writing."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._path = path
        self._writer = open_writer(path, schema)
        self._records = 0
        self._offsets: list[int] = []
        self._times_us: list[int] = []

    def write(self, table: pa.Table) -> None:
        self._writer.write_table(table, row_group_size=max(table.num_rows, 1))
        self._records += table.num_rows
        self._offsets += [table["offset"][0].as_py(), table["offset"][-1].as_py()]
        bounds = pc.min_max(table["timestamp"].cast(pa.int64()))
        self._times_us += [bounds["min"].as_py(), bounds["max"].as_py()]

    def close(self, files: Files, day: int) -> StagedFile:
        self._writer.close()
        files.fsync(files.open(self._path, read_only=True))
        return StagedFile(
            path=self._path,
            day=day,
            records=self._records,
            size_bytes=files.size(self._path),
            first_offset=self._offsets[0],
            last_offset=self._offsets[-1],
            times_ms=(min(self._times_us) // _US_PER_MS, max(self._times_us) // _US_PER_MS),
        )


def _by_day(batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the records of each date, in their order."""
    if not batch.num_rows:
        return
    days: Ints = batch["timestamp"].cast(pa.int64()).to_numpy() // _US_PER_DAY
    if (days == days[0]).all():
        yield int(days[0]), batch
        return
    # Copied, not sliced: a slice would keep the whole batch in memory.
    for day in np.unique(days).tolist():
        yield day, batch.take(pa.array(np.flatnonzero(days == day)))
