"""The reader of a streaming query: plans offsets in the driver, reads ranges in tasks."""

import time
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from .batch_reader import Rows, make_origin
from .options import ReadOptions
from .positions import as_json_object, from_json_object
from .stream_planner import StreamPlanner

# Offsets as Spark stores them: {"orders": {"0": 23}}, the format of its Kafka source.
_Json = dict[str, Any]


class OdradekStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Spark creates one in the driver, which plans, and copies another to the tasks, which read."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self.options = options
        self.rows = Rows(options, schema)

    @cached_property
    def _planner(self) -> StreamPlanner:
        # A batch that runs again after a crash must have the same tasks, or the sink cannot tell
        # which it has written. Files change in the meantime; offsets do not.
        origin = make_origin(self.options, split_by_bytes=False)
        return StreamPlanner(origin, self.options, lambda: time.monotonic() * 1000)

    def initialOffset(self) -> _Json:  # noqa: N802 - Spark's name, as all that follow
        return as_json_object(self._planner.initial())

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return one limit. If both are set, the planner applies the minimum."""
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
        return as_json_object(self._planner.last_ends) or None

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._planner.stop_at_current_ends()

    def partitions(self, start: _Json, end: _Json) -> Sequence[InputPartition]:
        parts = self._planner.parts(from_json_object(start), from_json_object(end))
        return [InputPartition(part) for part in parts]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self.rows.read(partition)
