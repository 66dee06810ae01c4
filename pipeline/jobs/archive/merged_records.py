"""Reads the records of several files of one partition in order of offset, in batches.

Within a file, offsets ascend. Files of one partition may overlap: if timestamps are out of order,
records of two dates alternate. A file is opened when its first offset is reached, so few are open.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

_BATCH_ROWS = 1 << 16
_OFFSET = "offset"


@dataclass(frozen=True, slots=True)
class OffsetFile:
    """A file and its first offset."""

    path: Path
    first_offset: int


def read_by_offset(
    sources: Sequence[OffsetFile],
    start_offset: int = 0,
    *,
    columns: Sequence[str] | None = None,
    batch_rows: int = _BATCH_ROWS,
) -> Iterator[pa.Table]:
    """Yield the records from `start_offset` on, in small tables; `columns` must include `offset`.

    Raises OSError.
    """
    waiting = deque(sorted(sources, key=lambda each: each.first_offset))
    cursors: list[_Cursor] = []
    while waiting or cursors:
        horizon = min((cursor.last_offset for cursor in cursors), default=None)
        if waiting and (horizon is None or waiting[0].first_offset <= horizon):
            cursor = _Cursor(waiting.popleft().path, start_offset, columns, batch_rows)
            cursors += [cursor] if cursor.advance() else []
            continue
        assert horizon is not None
        parts = [part for cursor in cursors if (part := cursor.take(horizon)).num_rows]
        table = pa.concat_tables(parts)
        yield table.sort_by(_OFFSET) if len(parts) > 1 else table
        cursors = [cursor for cursor in cursors if not cursor.is_empty or cursor.advance()]


class _Cursor:
    """A position in a file, with records that were read and not yet taken."""

    def __init__(
        self, path: Path, start_offset: int, columns: Sequence[str] | None, batch_rows: int
    ) -> None:
        file = pq.ParquetFile(path, pre_buffer=False)
        self._start = start_offset
        self._batches = file.iter_batches(
            batch_rows, _row_groups_from(file, start_offset), columns, use_threads=False
        )
        self._table: pa.Table = pa.table({})

    @property
    def is_empty(self) -> bool:
        return not self._table.num_rows

    @property
    def last_offset(self) -> int:
        return int(self._table[_OFFSET][-1].as_py())

    def advance(self) -> bool:
        """Read the next records after all were taken; return whether there were any."""
        for batch in self._batches:
            table = pa.Table.from_batches([batch])
            self._table = table.slice(_rows_before(table, self._start))
            if self._table.num_rows:
                return True
        return False

    def take(self, until_offset: int) -> pa.Table:
        """Take the records up to and including that offset."""
        rows = _rows_before(self._table, until_offset + 1)
        taken, self._table = self._table.slice(0, rows), self._table.slice(rows)
        return taken


def _rows_before(table: pa.Table, offset: int) -> int:
    return int(np.searchsorted(table[_OFFSET].to_numpy(), offset))


def _row_groups_from(file: pq.ParquetFile, offset: int) -> list[int]:
    """Return the row groups that may have records at or after an offset."""
    column = file.metadata.schema.names.index(_OFFSET)
    groups = range(file.metadata.num_row_groups)
    statistics = [file.metadata.row_group(group).column(column).statistics for group in groups]
    return [
        group
        for group, known in zip(groups, statistics, strict=True)
        if not (known and known.has_min_max) or known.max >= offset
    ]
