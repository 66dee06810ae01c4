"""What stands in a job file. Unknown keys are refused, and every error names the key and its line.

name           of the job: its checkpoint belongs to it
kafka          settings of the client, for all sources and the sink that name no broker
sources        view: what it reads, how keys and values are decoded, a watermark
sql | steps    one query, or views by name and query, of which the last one is written
sink           the topic, and which columns are what of a record
trigger        available-now, or every: 10 seconds
checkpoint     directory or URI; a path is relative to the file, like `path` of a source
spark          settings of Spark's

columns of a view       key, value (decoded), topic, partition, offset, timestamp,
                        timestampType, headers where asked for; event_time with a watermark
sink, value: column     the query names its columns as Spark's Kafka sink does
sink, value: json       all columns but those that the sink names become a JSON object
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, StringConstraints, ValidationError, model_validator

from odradek.pipeline.jobs.job_error import JobError

from .environment import Environment, KeyPath, Problem
from .job_values import BINARY, Decoding, Duration, Part, Texts, Trigger, Triggered, wrong
from .yaml_text import read_yaml

ViewName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
Words = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]
_BOOTSTRAP = "kafka.bootstrap.servers"
_NAMED_COLUMNS = ("key", "headers", "partition", "timestamp", "topic_column")


class Watermark(Part):
    """How late records may be; the view gets the column `event_time`."""

    event_time: Words  # an expression of SQL over the view's columns
    delay: Duration


class Source(Part):
    """A view of records."""

    format: Literal["odradek", "kafka"] = "odradek"
    options: Texts = Field(default_factory=dict)
    key: Decoding = BINARY
    value: Decoding = BINARY
    on_bad_record: Literal["fail", "drop", "dead-letter"] = "fail"
    dead_letter_topic: Words | None = None
    watermark: Watermark | None = None

    @model_validator(mode="after")
    def _has_dead_letter_topic(self) -> Self:
        if self.on_bad_record == "dead-letter" and self.dead_letter_topic is None:
            raise wrong("on_bad_record: dead-letter needs a dead_letter_topic")
        return self


class Sink(Part):
    """Where the rows of the query go."""

    topic: Words | None = None
    options: Texts = Field(default_factory=dict)
    value: Literal["column", "json"] = "column"
    key: Words | None = None
    headers: Words | None = None
    partition: Words | None = None
    timestamp: Words | None = None
    topic_column: Words | None = None
    json_options: Texts = Field(default_factory=dict)
    output_mode: Literal["append", "update", "complete"] = "append"

    @model_validator(mode="after")
    def _fits(self) -> Self:
        named = [name for name in _NAMED_COLUMNS if getattr(self, name) is not None]
        if self.value == "column" and (named or self.json_options):
            first = named[0] if named else "json_options"
            raise wrong(
                f"{first} is for value: json; with value: column the query itself names its "
                "columns key, value, headers, partition, timestamp, topic"
            )
        if self.topic is not None and self.topic_column is not None:
            raise wrong("topic and topic_column: only one of them can be")
        if self.value == "json" and self.topic is None and self.topic_column is None:
            raise wrong("topic is missing (or topic_column, if the query tells it)")
        return self


class EtlJob(Part):
    """A job. Texts that it takes from the environment are in it as they are: print none of them."""

    name: Words
    kafka: Texts = Field(default_factory=dict)
    sources: Annotated[Mapping[ViewName, Source], Field(min_length=1)]
    sql: Words | None = None
    steps: Annotated[Mapping[ViewName, Words], Field(min_length=1)] | None = None
    sink: Sink
    trigger: Trigger = Triggered(every="1 second")
    checkpoint: Words
    spark: Texts = Field(default_factory=dict)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if (self.sql is None) == (self.steps is None):
            raise wrong("one of sql and steps is needed" + (", not both" if self.sql else ""))
        names = [name.lower() for name in (*self.sources, *(self.steps or ()))]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise wrong(f"{', '.join(twice)}: two views of one name")
        prefixed = [name for name in self.kafka if name.lower().startswith("kafka.")]
        if prefixed:
            raise wrong(f"kafka: write {prefixed[0][6:]}, the prefix is understood")
        return self

    @property
    def statements(self) -> dict[str, str]:
        """Place in the file: SQL; the last one is written."""
        if self.steps is None:
            return {"sql": self.sql or ""}
        return {f"steps.{name}": text for name, text in self.steps.items()}

    def source_options(self, name: str) -> dict[str, str]:
        """Those of a source, with the settings of `kafka`."""
        return self._with_kafka(self.sources[name].options)

    @property
    def sink_options(self) -> dict[str, str]:
        """Those of the sink, with the settings of `kafka`."""
        return self._with_kafka(self.sink.options)

    def _with_kafka(self, options: Mapping[str, str]) -> dict[str, str]:
        """Credentials are for the broker they were given for."""
        if _BOOTSTRAP in map(str.lower, options):
            return dict(options)
        given = {f"kafka.{name}": value for name, value in self.kafka.items()}
        own = set(map(str.lower, options))
        return {name: each for name, each in given.items() if name.lower() not in own} | dict(
            options
        )


def read_job(path: Path, variables: Mapping[str, str] = os.environ) -> EtlJob:
    """The job of a file. Raises JobError."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise JobError(f"the job file cannot be read: {error}") from error
    return parse_job(text, path.absolute().parent, variables, str(path))


def parse_job(text: str, base: Path, variables: Mapping[str, str], name: str = "job") -> EtlJob:
    """The job of a text; paths in it are relative to `base`. Raises JobError."""
    found = read_yaml(text, name)
    environment = Environment(variables)
    data = environment.substituted(found.value)
    problems = list(environment.problems)
    if not problems:
        try:
            return _placed(EtlJob.model_validate(data), base)
        except ValidationError as error:
            problems = [_problem(each) for each in error.errors(include_input=False)]
    raise JobError("\n".join(_told(each, name, found.lines) for each in problems))


def _placed(job: EtlJob, base: Path) -> EtlJob:
    """With absolute paths."""
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
    """URIs are absolute."""
    return path if ":/" in path else str(base / path)


def _problem(found: Mapping[str, Any]) -> Problem:  # pydantic's ErrorDetails
    path: KeyPath = tuple(part for part in found["loc"] if part != "[key]")
    text = str(found["msg"])
    match found["type"]:
        case "missing":
            text = "is missing"
        case "unknown_key":
            path = (*path, found["ctx"]["key"])
        case "string_type":
            text = "a text is needed (put it in quotes)"
    return Problem(path, text[:1].lower() + text[1:])


def _told(problem: Problem, name: str, lines: Mapping[KeyPath, int]) -> str:
    """file:line: key.path: what."""
    known: KeyPath = problem.path
    while known and known not in lines:
        known = known[:-1]
    line = f":{lines[known]}" if known in lines else ""
    place = ".".join(map(str, problem.path))
    return f"{name}{line}: {place}: {problem.text}" if place else f"{name}{line}: {problem.text}"
