"""The reader of a batch query: plans ranges in the driver and reads one range per task."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from odradek.pipeline.option_values import OptionError
from odradek.pipeline.reading.range_reader import OffsetRange
from odradek.pipeline.spark_versions import to_arrow_schema

from .options import ReadOptions
from .origin import Origin
from .planning import plan_batch
from .row_schema import cast_to_schema, chosen_columns
from .task import read_range, reads_files

if TYPE_CHECKING:
    from odradek.pipeline.registry.values import ValueSchema


class OdradekReader(DataSourceReader):
    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self.options = options
        self.rows = Rows(options, schema)

    def partitions(self) -> Sequence[InputPartition]:
        parts = plan_batch(make_origin(self.options), self.options)
        return [InputPartition(part) for part in parts]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self.rows.read(partition)


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


class Rows:
    """What tasks return to Spark: the columns of a schema, with values decoded if asked for."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._values = value_schema(options) if "value" in schema.names else None
        value_type = self._values.type if self._values else None
        self._columns = chosen_columns(schema, options, value_type)

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a task; nothing for the partition of an empty plan."""
        if partition is None or partition.value is None:
            return
        schema = to_arrow_schema(self._schema)
        for batch in self._batches(partition.value):
            yield cast_to_schema(batch, schema)

    def _batches(self, wanted: OffsetRange) -> Iterator[pa.RecordBatch]:
        columns = self._columns
        if self._values is None:
            return read_range(self._options, wanted, columns)
        from .registry_values import with_values  # needs the extra `registry`

        with_offset = columns if "offset" in columns else (*columns, "offset")
        decoded = with_values(
            read_range(self._options, wanted, with_offset),
            wanted.partition,
            self._values,
            fail_on_bad_value=not self._options.null_for_bad_value,
        )
        return (batch.select(columns) for batch in decoded)


def value_schema(options: ReadOptions) -> "ValueSchema | None":
    """Return what values are decoded with; None if they stay bytes. Raises OptionError."""
    if options.value_format == "binary":
        return None
    try:
        from .registry_values import registry_schema
    except ImportError as error:
        raise OptionError(
            f"valueFormat: {error.name} is not installed: pip install 'odradek[registry]'"
        ) from error
    return registry_schema(options)
