"""Parses what Spark reports of a query: its progress, batch by batch, and its errors."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # py4j has no types

from odradek.pipeline.jobs.spark_tasks import PYTHON_ERROR
from odradek.pipeline.sink.write_options import Delivery
from odradek.pipeline.source.stream_offsets import from_json_object
from odradek.storage.topic_partition import TopicPartition

# Names of observed metrics: a prefix for those of each source, and that of what is written.
SOURCE = "odradek.source."
SINK = "odradek.sink"
_SQLSTATE = re.compile(r"\s*SQLSTATE: \w{5};?")
_RAISED = re.compile(r"\[USER_RAISED_EXCEPTION\] (.*?)(?: SQLSTATE: \w{5}|$)", re.MULTILINE)
_WRAPPED = re.compile(r"^\[STREAM_FAILED\].*?terminated with exception: ")
_SOURCES = re.compile(r"There are \[(\d+)\] sources in the checkpoint.*now there are \[(\d+)\]")
_STATE = re.compile(r"STATE_STORE_\w+|STATE_SCHEMA|StateSchemaNotCompatible|stateful operator")
_SHARED = re.compile(r"CONCURRENT_STREAM_LOG_UPDATE|Multiple streaming queries are concurrently")
_NO_CONNECTOR = re.compile(r"Failed to find (?:the )?data source: kafka|KAFKA_SOURCE_NOT_FOUND")


class SourceCount(NamedTuple):
    """The number of records of a source, of bad ones among them, and the error of one of these."""

    records: int = 0
    bad: int = 0
    example: str | None = None

    def plus(self, other: "SourceCount") -> "SourceCount":
        """Return the sum of both."""
        example = self.example or other.example
        return SourceCount(self.records + other.records, self.bad + other.bad, example)


@dataclass(frozen=True, slots=True, kw_only=True)
class EtlBatch:
    """A batch that was written. `lag` is in offsets; None if a source does not report it."""

    number: int
    seconds: float
    sources: Mapping[str, SourceCount]
    written: int
    lag: int | None

    @property
    def records(self) -> int:
        """The number of records of all sources."""
        return sum(each.records for each in self.sources.values())

    @property
    def bad(self) -> int:
        """The number of bad records of all sources."""
        return sum(each.bad for each in self.sources.values())


@dataclass(slots=True)
class EtlSummary:
    """The result of a run; whether it resumed from a checkpoint, and whether it was stopped."""

    delivery: Delivery
    is_resumed: bool = False
    was_stopped: bool = False
    batches: int = 0
    written: int = 0
    sources: dict[str, SourceCount] = field(default_factory=dict)

    def add(self, batch: EtlBatch) -> None:
        """Add a batch."""
        self.batches += 1
        self.written += batch.written
        for name, count in batch.sources.items():
            self.sources[name] = self.sources.get(name, SourceCount()).plus(count)


def batches_of(reports: Iterable[Mapping[str, Any]], after: int) -> list[EtlBatch]:
    """Return the batches with numbers greater than `after`, from Spark's progress reports (JSON).

    A report without `addBatch` is of a trigger that found no new records.
    """
    last = {int(each["batchId"]): each for each in reports if "addBatch" in _durations_ms(each)}
    return [_batch(last[number]) for number in sorted(last) if number > after]


def _batch(report: Mapping[str, Any]) -> EtlBatch:
    observed = report.get("observedMetrics") or {}
    return EtlBatch(
        number=int(report["batchId"]),
        seconds=int(_durations_ms(report).get("triggerExecution", 0)) / 1000,
        sources={
            name.removeprefix(SOURCE): SourceCount(
                int(counts["records"]), int(counts["bad"]), counts.get("example")
            )
            for name, counts in observed.items()
            if name.startswith(SOURCE)
        },
        written=int((observed.get(SINK) or {}).get("records", 0)),
        lag=_lag(report.get("sources") or ()),
    )


def _durations_ms(report: Mapping[str, Any]) -> Mapping[str, Any]:
    return report.get("durationMs") or {}


def _lag(sources: Iterable[Mapping[str, Any]]) -> int | None:
    """Return the number of offsets that were not read when the batch was planned."""
    total = 0
    for source in sources:
        end, latest = _offsets(source.get("endOffset")), _offsets(source.get("latestOffset"))
        if end is None or latest is None:
            return None
        total += sum(max(0, offset - end.get(each, 0)) for each, offset in latest.items())
    return total


def _offsets(reported: Any) -> Mapping[TopicPartition, int] | None:  # JSON, or JSON in a text
    """Parse {"orders": {"0": 23}}. Returns None for another format."""
    if isinstance(reported, str):
        try:
            reported = json.loads(reported)
        except ValueError:
            return None
    try:
        return from_json_object(reported).offsets
    except (AttributeError, TypeError, ValueError):
        return None


# --- errors


def first_line(error: Exception) -> str:
    """Return the first line of Spark's message, without its codes."""
    text = str(error.java_exception) if isinstance(error, Py4JJavaError) else str(error)
    lines = (line.strip() for line in text.splitlines())
    line = next(filter(None, lines), type(error).__name__)
    return _SQLSTATE.sub("", _WRAPPED.sub("", line)).rstrip(" ;")


def explain(error: Exception, checkpoint: str) -> str:
    """Return why a query failed, and what to do if that is known."""
    text = str(error)
    if raised := _RAISED.search(text):
        return raised[1]
    if sources := _SOURCES.search(text):
        return (
            f"the checkpoint {checkpoint} belongs to another job: it has {sources[1]} sources, and "
            f"this job has {sources[2]}. Set another checkpoint"
        )
    if _SHARED.search(text):
        return f"another query is running on the checkpoint {checkpoint}"
    if _STATE.search(first_line(error)):
        return (
            f"{first_line(error)} (the state in {checkpoint} is that of another SQL: set another "
            "checkpoint)"
        )
    if _NO_CONNECTOR.search(text):
        return (
            "format: kafka is Spark's own connector, whose jars were not found: set "
            "spark.jars.packages"
        )
    python_errors: list[str] = PYTHON_ERROR.findall(text)
    return _SQLSTATE.sub("", python_errors[-1]) if python_errors else first_line(error)
