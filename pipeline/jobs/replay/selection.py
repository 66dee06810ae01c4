"""Selects the records that are to be replayed."""

import msgspec
import numpy as np
import pyarrow as pa

from odradek.pipeline.decoding.columns import TIMESTAMP_MS
from odradek.pipeline.decoding.varints import Bools, Ints

_US_PER_MS = 1000


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """Records in [from_ms, to_ms) and [from_offset, to_offset), of these partitions or of all."""

    from_ms: int | None = None
    to_ms: int | None = None
    from_offset: int | None = None
    to_offset: int | None = None
    partitions: tuple[int, ...] = ()

    def may_select_from(
        self,
        partition: int,
        times_ms: tuple[int | None, int | None],
        offsets: tuple[int | None, int | None],
    ) -> bool:
        """Whether records in these ranges may be selected. A bound that is None is not known."""
        return (
            (not self.partitions or partition in self.partitions)
            and _overlap(times_ms, self.from_ms, self.to_ms)
            and _overlap(offsets, self.from_offset, self.to_offset)
        )

    def may_select_offsets(self, first: int, last: int) -> bool:
        """Whether an offset in [first, last] may be selected."""
        return _overlap((first, last), self.from_offset, self.to_offset)

    def filter(self, table: pa.Table) -> pa.Table:
        """Return the selected records of a table."""
        offset: Ints = table["offset"].to_numpy()
        time_ms: Ints = table["timestamp"].cast(pa.int64()).to_numpy() // _US_PER_MS
        time_ms = with_kept_times(time_ms, table)
        selected: Bools = np.ones(offset.size, np.bool_)
        for values, start, end in (
            (offset, self.from_offset, self.to_offset),
            (time_ms, self.from_ms, self.to_ms),
        ):
            if start is not None:
                selected &= values >= start
            if end is not None:
                selected &= values < end
        return table if selected.all() else table.filter(pa.array(selected))


def with_kept_times(times_ms: Ints, table: pa.Table) -> Ints:
    """Return the times of a table's rows; those that may not fit into microseconds as they were."""
    if TIMESTAMP_MS not in table.column_names:
        return times_ms
    kept = table[TIMESTAMP_MS]
    return np.where(kept.is_valid().to_numpy(), kept.fill_null(0).to_numpy(), times_ms)


def _overlap(known: tuple[int | None, int | None], start: int | None, end: int | None) -> bool:
    first, last = known
    return (start is None or last is None or last >= start) and (
        end is None or first is None or first < end
    )
