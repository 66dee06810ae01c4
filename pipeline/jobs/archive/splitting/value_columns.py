"""The columns that values become: the fields of JSON objects, or of a schema of a registry."""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from odradek.pipeline.decoding.columns import TIMESTAMP_MS
from odradek.pipeline.jobs import JobError
from odradek.pipeline.jobs.archive.parquet.parquet_format import RECORD_SCHEMA

if TYPE_CHECKING:
    from odradek.pipeline.registry.values import ValueSchema

DEAD_LETTER_SCHEMA = RECORD_SCHEMA.append(pa.field("error", pa.string()))
_RESERVED = frozenset(
    name.lower()
    for name in (*RECORD_SCHEMA.names, "topic", "date", "topicId", "error", TIMESTAMP_MS)
)
_NOT_IN_NAMES = re.compile(r"[ ,;{}()\n\t=]")  # Parquet files of a Delta table


@dataclass(frozen=True, slots=True)
class ValueColumns:
    """Values become the columns of `kind`. They are JSON objects, or of a schema of a registry.

    Raises JobError for names of other columns.
    """

    kind: pa.StructType
    keep_value: bool = True
    registry: "ValueSchema | None" = None

    def __post_init__(self) -> None:
        names = [field.name.lower() for field in self.kind]  # columns differ in more than case
        clashing = sorted({name for name in names if name in _RESERVED or names.count(name) > 1})
        if clashing:
            raise JobError(f"fields of the schema have names of other columns: {clashing}")
        invalid = [field.name for field in self.kind if _NOT_IN_NAMES.search(field.name)]
        if invalid:
            raise JobError(f"fields of the schema have names that no column can have: {invalid}")

    @property
    def schema(self) -> pa.Schema:
        """The schema of records whose value matches."""
        kept = [field for field in RECORD_SCHEMA if self.keep_value or field.name != "value"]
        return pa.schema([*kept, *(field.with_nullable(True) for field in self.kind)])

    def with_columns(self, records: pa.RecordBatch, values: pa.StructArray) -> pa.RecordBatch:
        """Return records of which each has its value's fields in columns."""
        if not self.keep_value:
            records = records.drop_columns(["value"])
        return pa.record_batch([*records.columns, *values.flatten()], schema=self.schema)
