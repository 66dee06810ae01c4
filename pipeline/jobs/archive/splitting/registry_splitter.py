"""Parses values that were written with the schemas of a registry into columns."""

import pyarrow as pa
import pyarrow.compute as pc

from odradek.pipeline.jobs import JobError
from odradek.pipeline.registry.values import RegistryError, ValueSchema

from .value_columns import DEAD_LETTER_SCHEMA, ValueColumns


class RegistrySplitter:
    """A ValueSplitter. It remembers the writers' schemas that the registry has returned."""

    def __init__(self, schema: ValueColumns, registry: ValueSchema) -> None:
        self._schema = schema
        self._decoder = registry.decoder()

    def split(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch | None]:
        """See ValueSplitter. Raises JobError if the registry does not answer."""
        try:
            decoded = self._decoder.decode(batch["value"])
        except RegistryError as error:
            raise JobError(str(error)) from error
        is_bad = pc.is_valid(decoded.errors)
        if not pc.any(is_bad).as_py():
            return self._schema.with_columns(batch, decoded.values), None
        is_good = pc.invert(is_bad)
        good = self._schema.with_columns(batch.filter(is_good), decoded.values.filter(is_good))
        columns = [*batch.filter(is_bad).columns, decoded.errors.filter(is_bad)]
        return good, pa.record_batch(columns, schema=DEAD_LETTER_SCHEMA)
