"""The data source "odradek"."""

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from odradek.pipeline.option_values import OptionError
from odradek.pipeline.spark_versions import CAN_LIMIT_BATCHES

from .batch_reader import OdradekReader, value_schema
from .options import read_options
from .row_schema import full_schema
from .stream_reader import OdradekStreamReader

if TYPE_CHECKING:
    from odradek.pipeline.sink.writers import OdradekStreamWriter, OdradekWriter


class OdradekDataSource(DataSource):
    """Implements `format("odradek")`."""

    @classmethod
    def name(cls) -> str:
        return "odradek"

    def schema(self) -> StructType:
        # Whether the query is a stream is not known here. The reader parses the options again.
        options = read_options(self.options, streaming=None)
        found = value_schema(options)
        return full_schema(options, found.type if found else None)

    def reader(self, schema: StructType) -> OdradekReader:
        return OdradekReader(read_options(self.options, streaming=False), schema)

    def streamReader(self, schema: StructType) -> OdradekStreamReader:  # noqa: N802 - Spark's name
        options = read_options(self.options, streaming=True)
        if not CAN_LIMIT_BATCHES:
            if options.max_offsets_per_trigger or options.min_offsets_per_trigger:
                raise OptionError("maxOffsetsPerTrigger and minOffsetsPerTrigger need Spark 4.2")
            return OdradekStreamReader(options, schema)
        from .limited_stream_reader import LimitedStreamReader

        return LimitedStreamReader(options, schema)

    # sink/ is imported late: it needs confluent-kafka, reading files does not.

    def writer(self, schema: StructType, overwrite: bool) -> "OdradekWriter":
        from odradek.pipeline.sink.write_options import write_options
        from odradek.pipeline.sink.writers import OdradekWriter

        _check_appends(overwrite=overwrite)
        return OdradekWriter(write_options(self.options), schema)

    def streamWriter(  # noqa: N802 - Spark's name
        self, schema: StructType, overwrite: bool
    ) -> "OdradekStreamWriter":
        from odradek.pipeline.sink.write_options import write_options
        from odradek.pipeline.sink.writers import OdradekStreamWriter

        del overwrite  # true in output mode `complete`, which writes all rows in each batch
        return OdradekStreamWriter(write_options(self.options), schema)


def _check_appends(*, overwrite: bool) -> None:
    if overwrite:
        raise OptionError("Save mode overwrite is not allowed: records can only be appended")
