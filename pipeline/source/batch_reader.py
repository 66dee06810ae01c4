"""The reader of a batch query: plans ranges in the driver and reads one range per task."""

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from .filters import UNBOUNDED, PushedFilters
from .options import ReadOptions
from .origin import Origin
from .planning import plan_batch
from .row_schema import arrow_schema, cast_to_schema, chosen_columns
from .task import TimesMs, read_range, reads_files


class OdradekReader(DataSourceReader):
    """Reads without filters: if pushdown is off, Spark refuses a reader with `pushFilters`."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self.options = options
        self.columns = chosen_columns(schema, options)
        self.schema = schema
        self.pushed = PushedFilters()

    def partitions(self) -> Sequence[InputPartition]:
        parts = plan_batch(make_origin(self.options), self.options, self.pushed)
        return [InputPartition(part) for part in parts]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        times_ms = None if self.pushed.times_ms == UNBOUNDED else self.pushed.times_ms
        return read_partition(self.options, partition, self.columns, self.schema, times_ms)


class FilteringReader(OdradekReader):
    """Also applies the conditions that filters.py can."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        return self.pushed.push(filters, batch_view=self.options.batch_view)


def make_origin(options: ReadOptions, *, split_by_bytes: bool = True) -> Origin:
    """Return the log directories if they can be read here, else the broker."""
    if reads_files(options):
        from .files_origin import FilesOrigin

        return FilesOrigin(
            options.directories,
            committed_only=options.read_committed,
            max_split_bytes=options.max_split_bytes if split_by_bytes else None,
        )
    from .broker_origin import BrokerOrigin  # confluent-kafka is needed only here

    return BrokerOrigin(options.client, committed_only=options.read_committed)


def read_partition(
    options: ReadOptions,
    partition: InputPartition,
    columns: tuple[str, ...],
    schema: StructType,
    times_ms: TimesMs = None,
) -> Iterator[pa.RecordBatch]:
    """Yield what a task returns to Spark; nothing for the partition of an empty plan."""
    if partition.value is None:
        return
    wanted_schema = arrow_schema(schema)
    for batch in read_range(options, partition.value, columns, times_ms):
        yield cast_to_schema(batch, wanted_schema)
