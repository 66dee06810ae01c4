"""The reader of a batch query that applies filters itself. Needs Spark 4.1."""

from collections.abc import Iterable

from pyspark.sql.datasource import Filter
from pyspark.sql.types import StructType

from .batch_reader import OdradekReader
from .filters import PushedFilters
from .options import ReadOptions


class FilteringReader(OdradekReader):
    """Applies the conditions that filters.py can."""

    pushed: PushedFilters

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        super().__init__(options, schema)
        self.pushed = PushedFilters()

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        return self.pushed.push(filters, batch_view=self.options.batch_view)
