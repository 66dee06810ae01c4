"""Says what is in a job: its sections, and the types of their values.

name           of the job; its checkpoint belongs to it
kafka          client settings of all sources and of the sink, unless they name their own broker
schema_registry client settings of the registry, if a key or value is avro, protobuf, json-schema
sources        view name: what it reads, how keys and values are decoded, a watermark
sql | steps    one query, or several named views, of which the last one is written
sink           the topic, and which columns become which part of a record
trigger        available-now, or every: 10 seconds
checkpoint     directory or URI; a path is relative to the file, like `path` of a source
spark          settings of Spark

columns of a view       key, value (decoded), topic, partition, offset, timestamp,
                        timestampType; headers if requested; event_time with a watermark
sink, value: column     the query's columns have the names of Spark's Kafka sink
sink, value: json       all columns except those that the sink names become a JSON object
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    model_validator,
)
from pydantic_core import PydanticCustomError

from odradek.pipeline.registry.formats import REGISTRY_FORMATS, RegistryFormat

_BOOTSTRAP = "kafka.bootstrap.servers"
_NAMED_COLUMNS = ("key", "headers", "partition", "timestamp", "topic_column")
_AMOUNT = r"\d+ +(?:millisecond|second|minute|hour|day|week)s?"
_DURATION = re.compile(rf"{_AMOUNT}(?: +{_AMOUNT})*")
# Options of from_json that sources.py sets itself.
_RESERVED_OPTIONS = frozenset({"mode", "columnnameofcorruptrecord", "multiline", "samplingratio"})

# --- values


def invalid(text: str) -> PydanticCustomError:
    """Return the error that a validator raises, with exactly this text."""
    return PydanticCustomError("invalid", "{text}", {"text": text})


class Section(BaseModel):
    """A mapping in the file. The error for an unknown key lists the known ones."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    @model_validator(mode="before")
    @classmethod
    def _has_known_keys(cls, data: Any) -> Any:  # any YAML value
        _check_keys(data, tuple(cls.model_fields))
        return data


@dataclass(frozen=True, slots=True)
class DecodingSpec:
    """How bytes are decoded.

    For JSON, `ddl` is the schema in Spark's syntax and `options` are those of from_json. For the
    formats of a registry, an empty `subject` is that of the topic.
    """

    kind: Literal["binary", "string", "json"] | RegistryFormat = "binary"
    ddl: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    subject: str = ""


@dataclass(frozen=True, slots=True)
class TriggerSpec:
    """How often a batch runs. If `every` is None, one run reads all existing records and ends."""

    every: str | None = None


def _check_keys(data: Any, known: tuple[str, ...]) -> None:  # any YAML value
    if not isinstance(data, dict):
        raise invalid(f"must be a mapping with {', '.join(known)}")
    for key in data:
        if key not in known:
            text = "unknown key; known keys are {known}"
            raise PydanticCustomError(
                "unknown_key", text, {"key": str(key), "known": ", ".join(known)}
            )


def _texts(data: Any) -> Any:  # any YAML value
    """Convert options to text; values that are not text become JSON."""
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise invalid("must be a mapping of names to values")
    texts: dict[str, str] = {}
    for name, value in data.items():
        if value is None:
            raise invalid(f"{name} has no value")
        texts[str(name)] = value if isinstance(value, str) else json.dumps(value)
    return texts


def _duration(data: Any) -> Any:  # any YAML value
    if not isinstance(data, str) or not _DURATION.fullmatch(data):
        raise invalid(f"must be a duration such as 10 seconds, not {data!r}")
    return data


def _decoding(data: Any) -> Any:  # any YAML value
    if isinstance(data, DecodingSpec):
        return data
    if data in ("binary", "string", *REGISTRY_FORMATS):
        return DecodingSpec(data)
    if not isinstance(data, dict):
        raise invalid(
            f"must be binary, string, {', '.join(REGISTRY_FORMATS)}, or json: with a schema such "
            "as 'id long, at date'"
        )
    for kind in REGISTRY_FORMATS:
        if kind in data:
            _check_keys(data, (kind,))
            return DecodingSpec(kind, subject=_subject(data[kind]))
    _check_keys(data, ("json", "options"))
    schema = data.get("json")
    if not isinstance(schema, str) or not schema.strip():
        raise invalid("json must be a schema such as 'id long, at timestamp'")
    options = _texts(data.get("options"))
    reserved = [name for name in options if name.lower() in _RESERVED_OPTIONS]
    if reserved:
        raise invalid(f"options: {reserved[0]} cannot be set; see on_bad_record")
    return DecodingSpec("json", schema, options)


def _subject(data: Any) -> str:  # any YAML value
    if not isinstance(data, str) or not data.strip():
        raise invalid("must be followed by the name of a subject, or by nothing")
    return data.strip()


def _trigger(data: Any) -> Any:  # any YAML value
    if isinstance(data, TriggerSpec):
        return data
    if data == "available-now":
        return TriggerSpec()
    if not isinstance(data, dict):
        raise invalid("must be available-now, or every: with a duration such as 10 seconds")
    _check_keys(data, ("every",))
    return TriggerSpec(_duration(data.get("every")))


ViewName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
NonEmpty = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]
Texts = Annotated[Mapping[str, str], BeforeValidator(_texts)]
Duration = Annotated[str, BeforeValidator(_duration)]
Decoding = Annotated[DecodingSpec, BeforeValidator(_decoding)]
Trigger = Annotated[TriggerSpec, BeforeValidator(_trigger)]
BINARY = DecodingSpec()


# --- sections


class Watermark(Section):
    """How late records may be. The view gets the column `event_time`."""

    event_time: NonEmpty  # a SQL expression over the view's columns
    delay: Duration


class Source(Section):
    """A view of records."""

    format: Literal["odradek", "kafka"] = "odradek"
    options: Texts = Field(default_factory=dict)
    key: Decoding = BINARY
    value: Decoding = BINARY
    on_bad_record: Literal["fail", "drop", "dead-letter"] = "fail"
    dead_letter_topic: NonEmpty | None = None
    watermark: Watermark | None = None

    @model_validator(mode="after")
    def _has_dead_letter_topic(self) -> Self:
        if self.on_bad_record == "dead-letter" and self.dead_letter_topic is None:
            raise invalid("on_bad_record: dead-letter requires dead_letter_topic")
        return self


class Sink(Section):
    """Where the rows of the query are written."""

    topic: NonEmpty | None = None
    options: Texts = Field(default_factory=dict)
    value: Literal["column", "json"] = "column"
    key: NonEmpty | None = None
    headers: NonEmpty | None = None
    partition: NonEmpty | None = None
    timestamp: NonEmpty | None = None
    topic_column: NonEmpty | None = None
    json_options: Texts = Field(default_factory=dict)
    output_mode: Literal["append", "update", "complete"] = "append"

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        named = [name for name in _NAMED_COLUMNS if getattr(self, name) is not None]
        if self.value == "column" and (named or self.json_options):
            first = named[0] if named else "json_options"
            raise invalid(
                f"{first} requires value: json; with value: column the query itself names its "
                "columns key, value, headers, partition, timestamp, topic"
            )
        if self.topic is not None and self.topic_column is not None:
            raise invalid("topic and topic_column: set only one of them")
        if self.value == "json" and self.topic is None and self.topic_column is None:
            raise invalid("topic is missing (or topic_column, if a column holds it)")
        return self


class EtlJob(Section):
    """A job. It contains secrets from the environment: do not print its texts."""

    name: NonEmpty
    kafka: Texts = Field(default_factory=dict)
    schema_registry: Texts = Field(default_factory=dict)
    sources: Annotated[Mapping[ViewName, Source], Field(min_length=1)]
    sql: NonEmpty | None = None
    steps: Annotated[Mapping[ViewName, NonEmpty], Field(min_length=1)] | None = None
    sink: Sink
    trigger: Trigger = TriggerSpec(every="1 second")
    checkpoint: NonEmpty
    spark: Texts = Field(default_factory=dict)

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        if (self.sql is None) == (self.steps is None):
            raise invalid("one of sql and steps is required" + (", not both" if self.sql else ""))
        names = [name.lower() for name in (*self.sources, *(self.steps or ()))]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise invalid(f"{', '.join(twice)}: two views have this name")
        for name, source in self.sources.items():
            kinds = {source.key.kind, source.value.kind}
            if kinds.intersection(REGISTRY_FORMATS) and "url" not in self.schema_registry:
                raise invalid(f"schema_registry.url is missing, which sources.{name} needs")
        prefixed = [name for name in self.kafka if name.lower().startswith("kafka.")]
        if prefixed:
            raise invalid(f"kafka: write {prefixed[0][6:]}, without the prefix")
        return self

    @property
    def statements(self) -> dict[str, str]:
        """SQL by place in the file; the last one is written."""
        if self.steps is None:
            return {"sql": self.sql or ""}
        return {f"steps.{name}": text for name, text in self.steps.items()}

    def source_options(self, name: str) -> dict[str, str]:
        """Return the options of a source, with the settings of `kafka`."""
        return self._with_kafka(self.sources[name].options)

    @property
    def sink_options(self) -> dict[str, str]:
        """The options of the sink, with the settings of `kafka`."""
        return self._with_kafka(self.sink.options)

    def _with_kafka(self, options: Mapping[str, str]) -> dict[str, str]:
        """Leave out `kafka` if the options name a broker: its credentials are for another one."""
        if _BOOTSTRAP in map(str.lower, options):
            return dict(options)
        given = {f"kafka.{name}": value for name, value in self.kafka.items()}
        own = set(map(str.lower, options))
        return {name: each for name, each in given.items() if name.lower() not in own} | dict(
            options
        )
