"""Parses the values of records into columns, and separates those that do not match their schema."""

from typing import Protocol

import pyarrow as pa

from .json_splitter import JsonSplitter
from .value_columns import ValueColumns


class ValueSplitter(Protocol):
    """Parses the values of batches."""

    def split(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch | None]:
        """Return the valid records with their columns, and the invalid ones with an error each."""


def splitter_for(schema: ValueColumns) -> ValueSplitter:
    """Return what parses values, in the process that does it."""
    if schema.registry is None:
        return JsonSplitter(schema)
    from .registry_splitter import RegistrySplitter  # needs the extra `registry`

    return RegistrySplitter(schema, schema.registry)
