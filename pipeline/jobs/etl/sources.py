"""Builds the view of each source: keys and values decoded, bad records separated as dead letters.

JSON is parsed as {"r": [ … ]}. Alone, from_json would ignore what follows the first value, and
decode empty text to null. Here, the text must be exactly one value, and not null. A record is bad
if a field has another type or is too large for it. A field that is not in the schema is ignored. A
missing field is null, and the record is bad if the schema says NOT NULL.

The formats of a schema registry are decoded by Python tasks, which return an error beside each
value; a value of another schema is read as the latest one says (pipeline/registry).
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j has no types
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructField, StructType

from odradek.pipeline.jobs import JobError
from odradek.pipeline.registry.formats import REGISTRY_FORMATS
from odradek.pipeline.spark_versions import from_arrow_type, to_arrow_type

from .job_model import DecodingSpec, EtlJob, Source
from .spark_reports import SOURCE, explain, first_line

if TYPE_CHECKING:
    from odradek.pipeline.registry.values import ValueSchema

EVENT_TIME = "event_time"
HEADER = "odradek.error."
_INTERNAL = "_odradek_"
_CORRUPT = "corrupt"
_OPTIONS = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
_ERROR = f"{_INTERNAL}error"
_HEADERS = "array<struct<key:string,value:binary>>"
_PLACE = ("topic", "partition", "offset")


class SourceView(NamedTuple):
    """The view's rows, and records for the dead-letter topic (none without such a topic)."""

    rows: DataFrame
    dead_letters: DataFrame


def source_view(spark: SparkSession, job: EtlJob, name: str) -> SourceView:
    """Build a source's view. Raises JobError."""
    source, place = job.sources[name], f"sources.{name}"
    frame = _load(spark, job, name)
    parts = ("key", "value")
    for part in parts:
        spec = getattr(source, part)
        if spec.kind in REGISTRY_FORMATS:
            frame = _with_registry(frame, part, _registry_schema(job, name, part))
        else:
            frame = decode(frame, part, spec, f"{place}.{part}")
    errors = [sf.concat(sf.lit(f"{part}: "), sf.col(error_column(part))) for part in parts]
    is_bad = sf.greatest(*errors).isNotNull()  # greatest() is null if both are
    frame = frame.withColumn(_ERROR, sf.when(is_bad, sf.concat_ws("; ", *errors)))
    has_headers = _wants_headers(job.source_options(name))
    rows = _valid_rows(_observe(frame, name, source), has_headers=has_headers)
    return SourceView(_with_event_time(rows, source, place), _dead_letters(frame, job, name))


def _load(spark: SparkSession, job: EtlJob, name: str) -> DataFrame:
    """Load the source, with headers if the SQL or the dead letters need them."""
    source, options = job.sources[name], job.source_options(name)
    try:
        reader = spark.readStream.format(source.format).options(**options)
        if source.on_bad_record == "dead-letter":
            reader = reader.option("includeHeaders", "true")
        return reader.load()
    except (PySparkException, Py4JError) as error:
        raise JobError(f"sources.{name}: {explain(error, job.checkpoint)}") from error


def _wants_headers(options: dict[str, str]) -> bool:
    return any(
        key.lower() == "includeheaders" and value.lower() == "true"
        for key, value in options.items()
    )


def _observe(frame: DataFrame, name: str, source: Source) -> DataFrame:
    """Count records and bad ones in the query's progress; or fail at the first bad one."""
    message = sf.concat(
        *(sf.lit(f"{name}: "), sf.concat_ws("-", "topic", "partition")),
        *(sf.lit(" offset "), sf.col("offset").cast("string"), sf.lit(": "), sf.col(_ERROR)),
    )
    is_bad = sf.col(_ERROR).isNotNull()
    counted: Column = sf.lit(1)
    if source.on_bad_record == "fail":
        advice = " (on_bad_record: drop or dead-letter would continue)"
        counted = sf.raise_error(sf.concat(message, sf.lit(advice)))
    return frame.observe(
        SOURCE + name,
        sf.count(sf.lit(1)).alias("records"),
        sf.count(sf.when(is_bad, counted)).alias("bad"),
        sf.min(sf.when(is_bad, message)).alias("example"),
    )


def _valid_rows(frame: DataFrame, *, has_headers: bool) -> DataFrame:
    kept = [
        sf.col(decoded_column(name)).alias(name) if name in ("key", "value") else sf.col(name)
        for name in frame.columns
        if not name.startswith(_INTERNAL) and (has_headers or name != "headers")
    ]
    return frame.filter(sf.col(_ERROR).isNull()).select(*kept)


def _with_event_time(rows: DataFrame, source: Source, place: str) -> DataFrame:
    watermark = source.watermark
    if watermark is None:
        return rows
    try:
        timed = rows.withColumn(EVENT_TIME, sf.expr(watermark.event_time))
        return timed.withWatermark(EVENT_TIME, watermark.delay)
    except PySparkException as error:
        raise JobError(f"{place}.watermark: {first_line(error)}") from error


def _dead_letters(frame: DataFrame, job: EtlJob, name: str) -> DataFrame:
    """Return the bad records: key, value and headers as they were, more headers with the reason.

    The timestamp is that of the write: with the original one, retention could delete them at once.
    """
    source = job.sources[name]
    is_wanted = source.on_bad_record == "dead-letter"
    about = {each: sf.col(each).cast("string") for each in (*_PLACE, "timestamp")}
    about |= {"message": sf.col(_ERROR), "job": sf.lit(job.name)}
    own = sf.col("headers") if "headers" in frame.columns else sf.lit(None).cast(_HEADERS)
    headers = sf.array(
        *(
            sf.struct(sf.lit(HEADER + key).alias("key"), value.cast("binary").alias("value"))
            for key, value in about.items()
        )
    )
    return frame.filter(sf.col(_ERROR).isNotNull() if is_wanted else sf.lit(False)).select(
        sf.lit(source.dead_letter_topic or "").alias("topic"),
        "key",
        "value",
        sf.concat(sf.coalesce(own, sf.array().cast(_HEADERS)), headers).alias("headers"),
    )


# --- decoding


def decoded_column(name: str) -> str:
    """Return the name of the column with the decoded `key` or `value`."""
    return f"{_INTERNAL}{name}"


def error_column(name: str) -> str:
    """Return the name of the column with the reason why it was not decoded; null if it was."""
    return f"{_INTERNAL}{name}_error"


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
    parsed = f"{_INTERNAL}{name}_parsed"
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


def _registry_schema(job: EtlJob, name: str, part: str) -> "ValueSchema":
    """Ask the registry for the latest schema of a source's keys or values. Raises JobError."""
    from odradek.pipeline.registry.values import RegistryError, find_schema  # extra `registry`

    spec, options = getattr(job.sources[name], part), job.source_options(name)
    topics = [
        text.strip()
        for option, texts in options.items()
        if option.lower() == "subscribe"
        for text in texts.split(",")
    ]
    subject = spec.subject or (f"{topics[0]}-{part}" if len(topics) == 1 else "")
    if not subject:
        raise JobError(
            f"sources.{name}.{part}: several topics may be read: write {spec.kind}: SUBJECT"
        )
    try:
        return find_schema(spec.kind, subject, job.schema_registry)
    except RegistryError as error:
        raise JobError(f"sources.{name}.{part}: {error}") from error


def _with_registry(frame: DataFrame, name: str, schema: "ValueSchema") -> DataFrame:
    decoded = StructField(decoded_column(name), from_arrow_type(schema.type))
    error = StructField(error_column(name), StringType())
    wanted = StructType([*frame.schema.fields, decoded, error])
    kind = to_arrow_type(decoded.dataType)

    def decode_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        decoder = schema.decoder()
        for batch in batches:
            found = decoder.decode(batch[name])
            columns = [*batch.columns, found.values.cast(kind), found.errors]
            yield pa.RecordBatch.from_arrays(columns, names=wanted.names)

    return frame.mapInArrow(decode_batches, wanted)


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
