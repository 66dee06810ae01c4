"""The columns of a query are those that the user's schema names."""

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from odradek.pipeline.decoding.batch_decoder import BATCH_COLUMN_TYPES, batch_schema_of
from odradek.pipeline.decoding.columns import ALL_COLUMNS, schema_of
from odradek.pipeline.option_values import OptionError
from odradek.pipeline.source.options import ReadOptions, read_options
from odradek.pipeline.source.row_schema import (
    cast_to_schema,
    chosen_columns,
    full_schema,
)
from odradek.pipeline.spark_versions import to_arrow_schema


def options(**given: str) -> ReadOptions:
    return read_options({"path": "/logs", "subscribe": "a", **given}, streaming=None)


def test_the_schema_is_that_of_sparks_kafka_source() -> None:
    assert full_schema(options()).simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,"
        "timestamp:timestamp,timestampType:int>"
    )
    with_headers = full_schema(options(includeHeaders="true"))
    assert with_headers["headers"].dataType.simpleString() == (
        "array<struct<key:string,value:binary>>"
    )


def test_sparks_arrow_schema_is_that_of_the_decoder() -> None:
    with_headers = full_schema(options(includeHeaders="true"))
    assert to_arrow_schema(with_headers).equals(schema_of(ALL_COLUMNS))
    batch_view = full_schema(options(view="batches"))
    assert to_arrow_schema(batch_view).equals(batch_schema_of(BATCH_COLUMN_TYPES))


def test_columns_come_in_the_order_of_the_schema_and_headers_without_an_option() -> None:
    headers = ArrayType(
        StructType([StructField("key", StringType()), StructField("value", BinaryType())]), False
    )
    schema = StructType().add("headers", headers).add("offset", LongType(), False)
    assert chosen_columns(schema, options()) == ("headers", "offset")


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        (StructType().add("Value", BinaryType()), "Unknown column 'Value'; columns are key, "),
        (StructType().add("value", StringType()), "Column 'value' is binary, not string: cast it"),
        (StructType(), "A schema needs columns"),
        (StructType().add("key", "binary").add("key", "binary"), "each only once"),
    ],
)
def test_an_invalid_schema_is_an_error(schema: StructType, says: str) -> None:
    with pytest.raises(OptionError, match=says):
        chosen_columns(schema, options())


def test_a_column_that_is_never_null_is_given_as_such() -> None:
    wanted = to_arrow_schema(StructType().add("offset", LongType(), False))
    batch = pa.RecordBatch.from_pydict({"offset": [1, 2]}, schema=schema_of(["offset"]))
    assert cast_to_schema(batch, wanted).schema.equals(wanted)
