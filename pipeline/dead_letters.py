"""Dead letters: rows that a schema or a condition refuses go to a topic of their own.

    orders = decode_json(source, "id BIGINT NOT NULL, amount DOUBLE")
    rows = with_dead_letters(orders, large_orders, "orders.bad")
    rows.writeStream.format("odradek")…

The functions agree on one column: `error` is null for a good row, and a reason for a bad one.
`decode_json` and `decode_registry` write it. Any expression of a user may write it, too.

One query writes the results and the dead letters. Spark's checkpoint and the sink's transactions
are per batch of a query, so one transaction of a task holds both. With two queries, a crash could
leave a batch in one checkpoint and not in the other. The cost: Spark reads and decodes the source
for each of the two branches, and stores offsets for each. So a checkpoint of a query without dead
letters is not one of the query with them; Spark refuses it.

JSON is parsed as {"r": [ … ]}. Alone, from_json would ignore what follows the first value, and
decode empty text to null. Here, the text must be exactly one value, and not null. A text may end
this list and begin another field, so it is also parsed as the second of three elements of a list.
The others are a text that nobody can guess, so the list is whole if it has them. A row is bad if a
field has another type or is too large for it. A field that is not in the schema is ignored. A
missing field is null, and the row is bad if the schema says NOT NULL.
"""

import secrets
import uuid
from collections.abc import Callable, Iterator, Mapping

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructField, StructType

from odradek.pipeline.registry.formats import RegistryFormat

from .option_values import OptionError
from .spark_versions import from_arrow_type, to_arrow_type

__all__ = ["decode_json", "decode_registry", "fail_at_errors", "with_dead_letters"]

ERROR = "error"
HEADER = "odradek.error."
_HEADERS = "array<struct<key:string,value:binary>>"
_PLACE = ("topic", "partition", "offset", "timestamp")
_PARSED = "_odradek_parsed"
_CORRUPT = "corrupt"
_FOUND = "_odradek_error"


def with_dead_letters(
    checked: DataFrame, results_of: Callable[[DataFrame], DataFrame], topic: str
) -> DataFrame:
    """Return the results of the good rows, and the bad rows for `topic`: all in one frame.

    `checked` has the columns of the source, with or without `headers`, and `error`. `results_of` is
    given the good rows, without `error`, and returns the columns that the sink writes, among them
    `topic`. Do not set the option `topic`, which would override it.

    A dead letter has its row's key, value and headers, and these headers, as text: where the record
    was (odradek.error.topic, .partition, .offset, .timestamp) and why it is here
    (odradek.error.message). Its timestamp is the time of writing: with the original one, retention
    could delete it at once. Raises OptionError if a column is missing.
    """
    missing = [name for name in ("value", ERROR) if name not in checked.columns]
    if missing:
        raise OptionError(f"dead letters need a column '{missing[0]}'")
    rows = results_of(checked.where(sf.col(ERROR).isNull()).drop(ERROR))
    if "topic" not in rows.columns:
        raise OptionError("the rows beside dead letters need a column 'topic', not the option")
    rows = rows.withColumns(
        {name: sf.col(name).cast("binary") for name in ("key", "value") if name in rows.columns}
    )
    return rows.unionByName(_dead_letters(checked, topic), allowMissingColumns=True)


def _dead_letters(checked: DataFrame, topic: str) -> DataFrame:
    about = {name: sf.col(name).cast("string") for name in _PLACE if name in checked.columns}
    about["message"] = sf.col(ERROR)
    new = sf.array(
        *(
            sf.struct(sf.lit(HEADER + name).alias("key"), value.cast("binary").alias("value"))
            for name, value in about.items()
        )
    )
    own = sf.col("headers") if "headers" in checked.columns else sf.lit(None).cast(_HEADERS)
    columns = {
        "topic": sf.lit(topic),
        "value": sf.col("value").cast("binary"),
        "headers": sf.concat(sf.coalesce(own, sf.array().cast(_HEADERS)), new),
    }
    if "key" in checked.columns:
        columns["key"] = sf.col("key").cast("binary")
    bad = checked.where(sf.col(ERROR).isNotNull())
    return bad.select(*(column.alias(name) for name, column in columns.items()))


def fail_at_errors(checked: DataFrame) -> DataFrame:
    """Return the rows without the column `error`; the query fails at a row that has an error.

    No filter that follows hides such a row: it is looked for where Spark counts observed metrics.
    """
    place = (sf.col(name).cast("string") for name in _PLACE if name in checked.columns)
    message = sf.concat_ws(" ", *place, sf.concat(sf.lit("cannot be decoded: "), sf.col(ERROR)))
    bad = sf.when(sf.col(ERROR).isNotNull(), sf.raise_error(message))
    name = f"{HEADER}{uuid.uuid4().hex}"  # a query may have several
    return checked.observe(name, sf.count(bad).alias("bad")).drop(ERROR)


# --- decoding


def decode_json(
    frame: DataFrame,
    schema: str | DataType,
    *,
    column: str = "value",
    into: str = "decoded",
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """Add the column `into` with the JSON of `column`, and write why it is null to `error`.

    `schema` is in Spark's SQL syntax, where a field may be NOT NULL. `options` are those of
    from_json. A null is decoded as null and is no error. Raises OptionError.
    """
    kind = DataType.fromDDL(schema) if isinstance(schema, str) else schema
    wrapper = StructType([StructField("r", ArrayType(kind)), StructField(_CORRUPT, StringType())])
    reserved = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
    text = sf.col(column).cast("string")
    json = sf.concat(sf.lit('{"r":['), text, sf.lit("]}"))
    parsed = frame.withColumn(_PARSED, sf.from_json(json, wrapper, {**(options or {}), **reserved}))
    values = sf.col(_PARSED)["r"]
    value = sf.get(values, sf.lit(0))
    fits = sf.col(_PARSED)[_CORRUPT].isNull() & (sf.size(values) == 1) & value.isNotNull()
    fits &= _is_one_value(text, options or {})
    error = (
        sf.when(sf.col(column).isNull(), None)
        .when(~sf.is_valid_utf8(text), "not UTF-8")
        .when(~sf.coalesce(fits, sf.lit(False)), "not JSON that matches the schema")
    )
    for path in _required_fields(kind):
        parent, field = (sf.col(_dotted(into, *each)) for each in (path[:-1], path))
        missing = parent.isNotNull() & field.isNull()
        error = error.when(missing, f"{'.'.join(path)} is missing")
    decoded = parsed.withColumn(into, value).withColumn(_FOUND, error).drop(_PARSED)
    # What from_json returns of a value that does not match is only a part of it.
    whole = sf.when(sf.col(_FOUND).isNull(), sf.col(into))
    return _with_error(decoded.withColumn(into, whole), column)


def _is_one_value(text: Column, options: Mapping[str, str]) -> Column:
    """Whether a text is one value of JSON; null if it is not."""
    edge = secrets.token_hex(8)
    json = sf.concat(sf.lit(f'["{edge}",'), text, sf.lit(f',"{edge}"]'))
    elements = sf.from_json(json, ArrayType(StringType()), {**options, "mode": "PERMISSIVE"})
    has_edges = (elements[0] == edge) & (elements[2] == edge)
    return sf.when(sf.size(elements) == 3, has_edges)


def decode_registry(
    frame: DataFrame,
    kind: RegistryFormat,
    subject: str,
    registry: Mapping[str, str],
    *,
    column: str = "value",
    into: str = "decoded",
) -> DataFrame:
    """Add the column `into` with the values of a schema registry, and write errors to `error`.

    Values are read with the latest schema of the subject. `registry` holds the settings of
    confluent-kafka's client, such as url. Raises RegistryError.
    """
    from odradek.pipeline.registry.values import find_schema  # the extra `registry`

    schema = find_schema(kind, subject, registry)
    decoded = StructField(into, from_arrow_type(schema.type))
    wanted = StructType([*frame.schema.fields, decoded, StructField(_FOUND, StringType())])
    arrow_type = to_arrow_type(decoded.dataType)

    def decode_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        decoder = schema.decoder()
        for batch in batches:
            found = decoder.decode(batch[column])
            columns = [*batch.columns, found.values.cast(arrow_type), found.errors]
            yield pa.RecordBatch.from_arrays(columns, names=wanted.names)

    return _with_error(frame.mapInArrow(decode_batches, wanted), column)


def _with_error(frame: DataFrame, column: str) -> DataFrame:
    """Move the error that was found to `error`, after the one that is there."""
    found = sf.concat(sf.lit(f"{column}: "), sf.col(_FOUND))
    if ERROR in frame.columns:
        is_bad = sf.coalesce(sf.col(ERROR), found).isNotNull()
        found = sf.when(is_bad, sf.concat_ws("; ", ERROR, found))
    return frame.withColumn(ERROR, found).drop(_FOUND)


def _required_fields(kind: DataType) -> Iterator[tuple[str, ...]]:
    """Yield the paths of NOT NULL fields. Raises OptionError for those that cannot be checked."""
    if isinstance(kind, StructType):
        for field in kind.fields:
            if not field.nullable:
                yield (field.name,)
            for path in _required_fields(field.dataType):
                yield (field.name, *path)
    elif isinstance(kind, ArrayType | MapType):
        inside = kind.elementType if isinstance(kind, ArrayType) else kind.valueType
        if any(_required_fields(inside)):
            raise OptionError("NOT NULL in an array or a map cannot be checked")


def _dotted(*names: str) -> str:
    return ".".join(f"`{name.replace('`', '``')}`" for name in names)
