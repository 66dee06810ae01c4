"""The columns of a query: all of them, or those of the user's schema, in its order.

Spark does not tell a Python data source which columns a query needs. A schema with few columns
(`.schema("value binary, offset long")`) says so, and only these columns are decoded.
"""

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from odradek.pipeline.decoding.batch_decoder import BATCH_COLUMN_TYPES
from odradek.pipeline.decoding.columns import COLUMN_TYPES
from odradek.pipeline.option_values import OptionError
from odradek.pipeline.spark_versions import from_arrow_type

from .options import ReadOptions

_HEADERS = ArrayType(
    StructType([StructField("key", StringType()), StructField("value", BinaryType())])
)
_SPARK_TYPES = {
    pa.string(): StringType(),
    pa.binary(): BinaryType(),
    pa.int32(): IntegerType(),
    pa.int64(): LongType(),
    pa.bool_(): BooleanType(),
    COLUMN_TYPES["timestamp"]: TimestampType(),
    COLUMN_TYPES["headers"]: _HEADERS,
}


def full_schema(options: ReadOptions, value_type: pa.DataType | None = None) -> StructType:
    """Return the schema of a query that names none: the columns of Spark's Kafka source.

    `value_type` is that of values that are decoded.
    """
    known = _known_types(options, value_type)
    if not options.batch_view and not options.include_headers:
        del known["headers"]
    return StructType([StructField(name, kind) for name, kind in known.items()])


def chosen_columns(
    schema: StructType, options: ReadOptions, value_type: pa.DataType | None = None
) -> tuple[str, ...]:
    """Return a schema's columns. Raises OptionError for an unknown column or another type."""
    types = _known_types(options, value_type)
    for field in schema:
        if field.name not in types:
            raise OptionError(
                f"Unknown column '{field.name}'; columns are {', '.join(types)} (case-sensitive)"
            )
        if not _is_same(types[field.name], field.dataType):
            raise OptionError(
                f"Column '{field.name}' is {types[field.name].simpleString()}, "
                f"not {field.dataType.simpleString()}: cast it in the query"
            )
    if len(set(schema.names)) < len(schema.names) or not schema.names:
        raise OptionError(f"A schema needs columns, each only once: {schema.simpleString()}")
    return tuple(schema.names)


def cast_to_schema(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the batch with Spark's schema, which may declare columns as not null."""
    if batch.schema.equals(schema):
        return batch
    columns = [
        column if column.type.equals(field.type) else column.cast(field.type)
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _known_types(options: ReadOptions, value_type: pa.DataType | None) -> dict[str, DataType]:
    arrow_types = BATCH_COLUMN_TYPES if options.batch_view else COLUMN_TYPES
    known = {name: _SPARK_TYPES[kind] for name, kind in arrow_types.items()}
    if value_type is not None:
        known["value"] = from_arrow_type(value_type)
    return known


def _is_same(one: DataType, other: DataType) -> bool:
    """Whether they are equal, except for which parts are nullable."""
    return one.simpleString() == other.simpleString()
