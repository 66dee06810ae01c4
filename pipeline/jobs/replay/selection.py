"""Selects the records that are to be replayed."""

import msgspec
import numpy as np
import pyarrow as pa

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
        self, partition: int, times_ms: tuple[int, int], offsets: tuple[int, int]
    ) -> bool:
        """Whether records with timestamps and offsets in these ranges may be selected."""
        return (
            (not self.partitions or partition in self.partitions)
            and (self.from_ms is None or times_ms[1] >= self.from_ms)
            and (self.to_ms is None or times_ms[0] < self.to_ms)
            and (self.from_offset is None or offsets[1] >= self.from_offset)
            and (self.to_offset is None or offsets[0] < self.to_offset)
        )

    def filter(self, table: pa.Table) -> pa.Table:
        """Return the selected records of a table."""
        offset: Ints = table["offset"].to_numpy()
        time_ms: Ints = table["timestamp"].cast(pa.int64()).to_numpy() // _US_PER_MS
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
