"""Reads job files. Unknown keys are refused, and each error names the key and its line.

name           of the job; its checkpoint belongs to it
kafka          client settings of all sources and of the sink, unless they name their own broker
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

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, StringConstraints, ValidationError, model_validator

from odradek.pipeline.jobs import JobError

from .environment import Environment, KeyPath, Problem
from .job_values import BINARY, Decoding, Duration, Section, Texts, Trigger, TriggerSpec, invalid
from .yaml_text import read_yaml

ViewName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
NonEmpty = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]
_BOOTSTRAP = "kafka.bootstrap.servers"
_NAMED_COLUMNS = ("key", "headers", "partition", "timestamp", "topic_column")


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


def read_job(path: Path, variables: Mapping[str, str] = os.environ) -> EtlJob:
    """Read a job file. Raises JobError."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise JobError(f"cannot read the job file: {error}") from error
    return parse_job(text, path.absolute().parent, variables, str(path))


def parse_job(text: str, base: Path, variables: Mapping[str, str], name: str = "job") -> EtlJob:
    """Parse a job file's text; paths in it are relative to `base`. Raises JobError."""
    yaml = read_yaml(text, name)
    environment = Environment(variables)
    data = environment.substitute(yaml.value)
    problems = list(environment.problems)
    if not problems:
        try:
            return _with_absolute_paths(EtlJob.model_validate(data), base)
        except ValidationError as error:
            problems = [_problem(each) for each in error.errors(include_input=False)]
    raise JobError("\n".join(_formatted(each, name, yaml.lines) for each in problems))


def _with_absolute_paths(job: EtlJob, base: Path) -> EtlJob:
    sources = {}
    for name, source in job.sources.items():
        options = {
            key: _absolute_each(value, base) if key.lower() == "path" else value
            for key, value in source.options.items()
        }
        sources[name] = source.model_copy(update={"options": options})
    checkpoint = _absolute(job.checkpoint, base)
    return job.model_copy(update={"sources": sources, "checkpoint": checkpoint})


def _absolute_each(paths: str, base: Path) -> str:
    return ",".join(_absolute(part.strip(), base) for part in paths.split(",") if part.strip())


def _absolute(path: str, base: Path) -> str:
    """Return an absolute path; a URI is absolute."""
    return path if ":/" in path else str(base / path)


def _problem(error: Mapping[str, Any]) -> Problem:  # pydantic's ErrorDetails
    path: KeyPath = tuple(part for part in error["loc"] if part != "[key]")
    text = str(error["msg"])
    match error["type"]:
        case "missing":
            text = "is missing"
        case "unknown_key":
            path = (*path, error["ctx"]["key"])
        case "string_type":
            text = "must be text (put it in quotes)"
    return Problem(path, text[:1].lower() + text[1:])


def _formatted(problem: Problem, name: str, lines: Mapping[KeyPath, int]) -> str:
    """Return `file:line: key.path: text`."""
    known: KeyPath = problem.path
    while known and known not in lines:
        known = known[:-1]
    line = f":{lines[known]}" if known in lines else ""
    place = ".".join(map(str, problem.path))
    return f"{name}{line}: {place}: {problem.text}" if place else f"{name}{line}: {problem.text}"
