"""The data source "odradek".

Spark gives the options anew to every process, in a dictionary that does not care for case: copied
into a plain one, its keys would be lower case.
"""

import sys
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

from odradek.pipeline.option_values import OptionError

from .batch_reader import FilteringReader, OdradekReader
from .options import read_options
from .row_schema import full_schema
from .stream_reader import OdradekStreamReader

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from odradek.pipeline.sink.writers import OdradekStreamWriter, OdradekWriter

# Only the process that pushes filters down imports it. Spark does not tell a data source whether
# `spark.sql.python.filterPushdown.enabled` is set, and where it is not, it refuses a reader that
# has `pushFilters`.
_PUSHING_MODULE = "pyspark.sql.worker.data_source_pushdown_filters"


class OdradekDataSource(DataSource):
    """`format("odradek")`."""

    @classmethod
    def name(cls) -> str:
        return "odradek"

    def schema(self) -> "StructType":
        # Whether it is a stream is not said here: the reader will look at the options again.
        return full_schema(read_options(self.options, streaming=None))

    def reader(self, schema: "StructType") -> OdradekReader:
        kind = FilteringReader if _PUSHING_MODULE in sys.modules else OdradekReader
        return kind(read_options(self.options, streaming=False), schema)

    def streamReader(self, schema: "StructType") -> OdradekStreamReader:  # noqa: N802 - Spark's name
        return OdradekStreamReader(read_options(self.options, streaming=True), schema)

    # Who only reads need not have the client.

    def writer(self, schema: "StructType", overwrite: bool) -> "OdradekWriter":
        from odradek.pipeline.sink.write_options import write_options
        from odradek.pipeline.sink.writers import OdradekWriter

        _check_appends(overwrite=overwrite)
        return OdradekWriter(write_options(self.options), schema)

    def streamWriter(  # noqa: N802 - Spark's name
        self, schema: "StructType", overwrite: bool
    ) -> "OdradekStreamWriter":
        from odradek.pipeline.sink.write_options import write_options
        from odradek.pipeline.sink.writers import OdradekStreamWriter

        del overwrite  # of a stream it is the output mode `complete`: all rows, every time
        return OdradekStreamWriter(write_options(self.options), schema)


def _check_appends(*, overwrite: bool) -> None:
    if overwrite:
        raise OptionError("Save mode overwrite is not allowed: a topic is only appended to")
