"""What differs between the versions 4.0 to 4.3 of Spark.

4.1    the writer of a stream may take batches of Arrow
4.2    a source may limit the batches of a stream
"""

from inspect import signature
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.pandas import types as pandas_types
from pyspark.sql.types import DataType, StructType

from .spark_internals import can_limit_batches

try:
    from pyspark.sql.datasource import DataSourceStreamArrowWriter as StreamArrowWriter
except ImportError:
    # Spark 4.0 gives Arrow's batches to a stream's writer, too, if it is one of a batch query.
    from pyspark.sql.datasource import (  # type: ignore[assignment]  # neither is the other's base
        DataSourceArrowWriter as StreamArrowWriter,
    )

__all__ = [
    "CAN_LIMIT_BATCHES",
    "StreamArrowWriter",
    "from_arrow_type",
    "to_arrow_schema",
    "to_arrow_type",
]

CAN_LIMIT_BATCHES: Final = can_limit_batches()

# Before 4.2 Arrow's times are in UTC, and there is no argument for it.
_HAS_TIMEZONE = "timezone" in signature(pandas_types.to_arrow_schema).parameters
_IN_UTC: Final[dict[str, Any]] = {"timezone": "UTC"} if _HAS_TIMEZONE else {}


def to_arrow_schema(schema: StructType) -> pa.Schema:
    """Return the Arrow schema that Spark expects for a schema."""
    return pandas_types.to_arrow_schema(schema, **_IN_UTC)


def to_arrow_type(kind: DataType) -> pa.DataType:
    """Return the Arrow type that Spark expects for a type."""
    return pandas_types.to_arrow_type(kind, **_IN_UTC)


def from_arrow_type(kind: pa.DataType) -> DataType:
    """Return the type of Spark for one of Arrow; a time without a zone stays one."""
    return pandas_types.from_arrow_type(kind, prefer_timestamp_ntz=True)
