"""The columns of a query: all of them, or those of the user's schema, in its order.

Spark's data sources for Python are not told which columns a query needs: a schema with few columns
(`.schema("value binary, offset long")`) is how to say so, and what is not asked for is not made.
"""

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
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
from odradek.pipeline.decoding.columns import ALL_COLUMNS, COLUMN_TYPES
from odradek.pipeline.option_values import OptionError

from .options import ReadOptions

_HEADERS = ArrayType(
    StructType([StructField("key", StringType()), StructField("value", BinaryType())])
)
_SPARKS = {
    pa.string(): StringType(),
    pa.binary(): BinaryType(),
    pa.int32(): IntegerType(),
    pa.int64(): LongType(),
    pa.bool_(): BooleanType(),
    COLUMN_TYPES["timestamp"]: TimestampType(),
    COLUMN_TYPES["headers"]: _HEADERS,
}


def full_schema(options: ReadOptions) -> StructType:
    """What a query gets that names no schema: the columns of Spark's Kafka source."""
    if options.of_batches:
        return _schema_of(BATCH_COLUMN_TYPES)
    shown = {
        name: COLUMN_TYPES[name]
        for name in ALL_COLUMNS
        if options.include_headers or name != "headers"
    }
    return _schema_of(shown)


def chosen_columns(schema: StructType, options: ReadOptions) -> tuple[str, ...]:
    """The columns of a schema. Raises OptionError for what is no column of that type."""
    known = _schema_of(BATCH_COLUMN_TYPES if options.of_batches else COLUMN_TYPES)
    types = {field.name: field.dataType for field in known}
    for field in schema:
        if field.name not in types:
            raise OptionError(
                f"There is no column '{field.name}'; there are {', '.join(types)}, spelt like that"
            )
        if not _is_same(types[field.name], field.dataType):
            raise OptionError(
                f"Column '{field.name}' is {types[field.name].simpleString()}, "
                f"not {field.dataType.simpleString()}: cast it in the query"
            )
    if len(set(schema.names)) < len(schema.names) or not schema.names:
        raise OptionError(f"A schema needs columns, each once: {schema.simpleString()}")
    return tuple(schema.names)


def fitted(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The same in Spark's words: a schema may say that a column is never null."""
    if batch.schema.equals(schema):
        return batch
    columns = [
        column if column.type.equals(field.type) else column.cast(field.type)
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def arrow_schema(schema: StructType) -> pa.Schema:
    """What Spark expects to be given for a schema."""
    return to_arrow_schema(schema, timezone="UTC")


def _schema_of(types: dict[str, pa.DataType]) -> StructType:
    return StructType([StructField(name, _SPARKS[kind]) for name, kind in types.items()])


def _is_same(one: DataType, other: DataType) -> bool:
    """Whether they differ at most in what may be null."""
    return one.simpleString() == other.simpleString()
