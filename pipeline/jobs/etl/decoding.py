"""Decodes keys and values for the SQL, with an error message for those that cannot be decoded.

JSON is parsed as {"r": [ … ]}. Alone, from_json would ignore what follows the first value, and
decode empty text to null. Here, the text must be exactly one value, and not null. A record is bad
if a field has another type or is too large for it. A field that is not in the schema is ignored. A
missing field is null, and the record is bad if the schema says NOT NULL.
"""

from collections.abc import Iterator

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructField, StructType

from odradek.pipeline.jobs import JobError

from .failures import first_line
from .job_values import DecodingSpec

INTERNAL = "_odradek_"
_CORRUPT = "corrupt"
_OPTIONS = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}


def decoded_column(name: str) -> str:
    """Return the name of the column with the decoded `key` or `value`."""
    return f"{INTERNAL}{name}"


def error_column(name: str) -> str:
    """Return the name of the column with the reason why it was not decoded; null if it was."""
    return f"{INTERNAL}{name}_error"


def decode(frame: DataFrame, name: str, spec: DecodingSpec, place: str) -> DataFrame:
    """Add the two columns for `name`, which is `key` or `value`. Raises JobError."""
    if spec.kind == "json":
        return _with_json(frame, name, spec, place)
    decoded, error = sf.col(name), sf.lit(None).cast("string")
    if spec.kind == "string":
        decoded = decoded.cast("string")
        error = sf.when(~_is_text(name), "not UTF-8")
    return frame.withColumn(decoded_column(name), decoded).withColumn(error_column(name), error)


def _with_json(frame: DataFrame, name: str, spec: DecodingSpec, place: str) -> DataFrame:
    kind = json_type(spec.ddl, place)
    wrapper = StructType(
        [StructField("r", ArrayType(kind)), StructField(_CORRUPT, StringType(), True)]
    )
    parsed = f"{INTERNAL}{name}_parsed"
    text = sf.concat(sf.lit('{"r":['), sf.col(name).cast("string"), sf.lit("]}"))
    try:
        with_parsed = frame.withColumn(
            parsed, sf.from_json(text, wrapper, {**spec.options, **_OPTIONS})
        )
    except PySparkException as failure:
        raise JobError(f"{place}: {first_line(failure)}") from failure
    value = sf.get(sf.col(parsed)["r"], sf.lit(0))
    is_single = sf.size(sf.col(parsed)["r"]) == 1
    fits = sf.col(parsed)[_CORRUPT].isNull() & is_single & value.isNotNull()
    error = (
        sf.when(sf.col(name).isNull(), None)
        .when(~_is_text(name), "not UTF-8")
        .when(~sf.coalesce(fits, sf.lit(False)), "not JSON that matches the schema")
    )
    decoded = decoded_column(name)
    for path in required_fields(kind, place):
        parent = sf.col(".".join((f"`{decoded}`", *_quoted(path[:-1]))))
        field = sf.col(".".join((f"`{decoded}`", *_quoted(path))))
        missing = parent.isNotNull() & field.isNull()
        error = error.when(missing, f"{'.'.join(path)} is missing")
    return with_parsed.withColumn(decoded, value).withColumn(error_column(name), error).drop(parsed)


def json_type(ddl: str, place: str) -> DataType:
    """Parse a schema in Spark's SQL syntax. Raises JobError."""
    try:
        return DataType.fromDDL(ddl)
    except PySparkException as error:
        raise JobError(f"{place}.json: {first_line(error)}") from error


def required_fields(kind: DataType, place: str) -> Iterator[tuple[str, ...]]:
    """Yield the paths of NOT NULL fields. Raises JobError for those that cannot be checked."""
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


def _is_text(name: str) -> Column:
    return sf.is_valid_utf8(sf.col(name).cast("string"))
