"""A streaming query: its offsets are planned in the driver, its ranges read as those of a batch."""

import time
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from .batch_reader import make_origin, read_partition
from .options import ReadOptions
from .positions import as_json_object, from_json_object
from .row_schema import chosen_columns
from .stream_planner import StreamPlanner

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

# Offsets as Spark keeps them: {"orders": {"0": 23}}, like those of its Kafka source.
_Json = dict[str, Any]


class OdradekStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Spark makes one in the driver, which plans, and copies of another, which read, in tasks."""

    def __init__(self, options: ReadOptions, schema: "StructType") -> None:
        self.options = options
        self.columns = chosen_columns(schema, options)
        self.schema = schema

    @cached_property
    def _planner(self) -> StreamPlanner:
        # What runs again after a crash must be cut as before, or a sink cannot tell what it has:
        # files change meanwhile, offsets do not.
        origin = make_origin(self.options, cut_by_bytes=False)
        return StreamPlanner(origin, self.options, lambda: time.monotonic() * 1000)

    def initialOffset(self) -> _Json:  # noqa: N802 - Spark's name, as all that follow
        return as_json_object(self._planner.initial())

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Both limits at once cannot be said: the planner knows the minimum."""
        if self.options.max_offsets_per_trigger is not None:
            return ReadMaxRows(self.options.max_offsets_per_trigger)
        if self.options.min_offsets_per_trigger is not None:
            return ReadMinRows(self.options.min_offsets_per_trigger)
        return ReadAllAvailable()

    def latestOffset(self, start: _Json, limit: ReadLimit) -> _Json:  # noqa: N802
        at_most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        end = self._planner.next_end(
            from_json_object(start), at_most, may_wait=not isinstance(limit, ReadAllAvailable)
        )
        return as_json_object(end)

    def reportLatestOffset(self) -> _Json | None:  # noqa: N802
        return as_json_object(self._planner.seen) or None

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._planner.stop_at_what_is_there()

    def partitions(self, start: _Json, end: _Json) -> Sequence[InputPartition]:
        parts = self._planner.parts(from_json_object(start), from_json_object(end))
        return [InputPartition(part) for part in parts]

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        return read_partition(self.options, partition, self.columns, self.schema)
