"""The reader of a batch query that applies filters itself. Needs Spark 4.1."""

from collections.abc import Iterable

from pyspark.sql.datasource import Filter

from .batch_reader import OdradekReader
from .filters import push


class FilteringReader(OdradekReader):
    """Applies the conditions that filters.py can."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        return push(filters, self.selection, batch_view=self.options.batch_view)
