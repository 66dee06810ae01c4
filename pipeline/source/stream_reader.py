"""The reader of a streaming query: plans offsets in the driver, reads ranges in tasks.

In Spark 4.0 and 4.1, a Python reader cannot limit a batch, is not told where it begins, and does
not support Trigger.AvailableNow. For Spark 4.2 see limited_stream_reader.py.
"""

import time
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from .batch_reader import Rows, make_origin
from .options import ReadOptions
from .stream_offsets import from_json_object
from .stream_planner import StreamPlanner

JsonOffsets = dict[str, Any]


class OdradekStreamReader(DataSourceStreamReader):
    """Spark creates two in the driver: one plans; copies of the other read in the tasks."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self.options = options
        self.rows = Rows(options, schema)

    @cached_property
    def planner(self) -> StreamPlanner:
        # A batch that runs again after a crash must have the same tasks, or the sink cannot tell
        # which it has written. Files change in the meantime; offsets do not. So ranges are divided
        # by offsets, not by bytes.
        origin = make_origin(self.options, split_by_bytes=False)
        return StreamPlanner(origin, self.options, lambda: time.monotonic() * 1000)

    def initialOffset(self) -> JsonOffsets:  # noqa: N802 - Spark's name, as all that follow
        return self.planner.initial().as_json_object()

    def latestOffset(self, *_: Any) -> JsonOffsets:  # noqa: N802
        return self.planner.all_ends().as_json_object()

    def partitions(self, start: JsonOffsets, end: JsonOffsets) -> Sequence[InputPartition]:
        parts = self.planner.parts(from_json_object(start), from_json_object(end))
        return [InputPartition(part) for part in parts]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self.rows.read(partition)
