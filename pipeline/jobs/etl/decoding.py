"""Bytes of keys and values into what the SQL sees, each with the reason why it could not be.

JSON is parsed as {"r": [ … ]}, for alone from_json would pass over what comes after the first value
and take an empty text for null. Here it must be one value and nothing else, and not null. A field
whose type is another, or is too large for it, makes the record bad; a field that the schema does
not name is passed over; one that is missing is null, and bad where the schema says NOT NULL.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import functions as sf
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructField, StructType

from odradek.pipeline.jobs.job_error import JobError

from .failures import first_line
from .job_values import Decoded

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

INTERNAL = "_odradek_"
_CORRUPT = "corrupt"
_OPTIONS = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}


def decoded_column(name: str) -> str:
    """What was made of `key` or `value`."""
    return f"{INTERNAL}{name}"


def error_column(name: str) -> str:
    """Why nothing could be made of it; null where something could."""
    return f"{INTERNAL}{name}_error"


def decode(frame: "DataFrame", name: str, decoded: Decoded, place: str) -> "DataFrame":
    """With the two columns for `name`, which is `key` or `value`. Raises JobError."""
    if decoded.kind == "json":
        return _with_json(frame, name, decoded, place)
    made, error = sf.col(name), sf.lit(None).cast("string")
    if decoded.kind == "string":
        made = made.cast("string")
        error = sf.when(~_is_text(name), "not UTF-8")
    return frame.withColumn(decoded_column(name), made).withColumn(error_column(name), error)


def _with_json(frame: "DataFrame", name: str, decoded: Decoded, place: str) -> "DataFrame":
    kind = json_type(decoded.ddl, place)
    around = StructType(
        [StructField("r", ArrayType(kind)), StructField(_CORRUPT, StringType(), True)]
    )
    parsed = f"{INTERNAL}{name}_parsed"
    text = sf.concat(sf.lit('{"r":['), sf.col(name).cast("string"), sf.lit("]}"))
    try:
        with_parsed = frame.withColumn(
            parsed, sf.from_json(text, around, {**decoded.options, **_OPTIONS})
        )
    except PySparkException as failure:
        raise JobError(f"{place}: {first_line(failure)}") from failure
    one = sf.get(sf.col(parsed)["r"], sf.lit(0))
    fits = sf.col(parsed)[_CORRUPT].isNull() & (sf.size(sf.col(parsed)["r"]) == 1) & one.isNotNull()
    error = (
        sf.when(sf.col(name).isNull(), None)
        .when(~_is_text(name), "not UTF-8")
        .when(~sf.coalesce(fits, sf.lit(False)), "no JSON that fits the schema")
    )
    made = decoded_column(name)
    for path in required_fields(kind, place):
        parent = sf.col(".".join((f"`{made}`", *_quoted(path[:-1]))))
        field = sf.col(".".join((f"`{made}`", *_quoted(path))))
        missing = parent.isNotNull() & field.isNull()
        error = error.when(missing, f"{'.'.join(path)} is missing")
    return with_parsed.withColumn(made, one).withColumn(error_column(name), error).drop(parsed)


def json_type(ddl: str, place: str) -> DataType:
    """Spark's type of a schema as SQL writes it. Raises JobError."""
    try:
        return DataType.fromDDL(ddl)
    except PySparkException as error:
        raise JobError(f"{place}.json: {first_line(error)}") from error


def required_fields(kind: DataType, place: str) -> Iterator[tuple[str, ...]]:
    """The paths of fields that are NOT NULL. Raises JobError where that could not be checked."""
    if isinstance(kind, StructType):
        for field in kind.fields:
            if not field.nullable:
                yield (field.name,)
            for path in required_fields(field.dataType, place):
                yield (field.name, *path)
    elif isinstance(kind, ArrayType | MapType):
        inside = kind.elementType if isinstance(kind, ArrayType) else kind.valueType
        if any(required_fields(inside, place)):
            raise JobError(f"{place}.json: NOT NULL in an array or a map cannot be checked")


def _quoted(path: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"`{name.replace('`', '``')}`" for name in path)


def _is_text(name: str) -> "Column":
    return sf.is_valid_utf8(sf.col(name).cast("string"))
