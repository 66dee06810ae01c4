"""What Spark tells about the batches of a query, and what they add up to."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from odradek.pipeline.sink.write_options import Delivery

# What is observed of a query: of each source by its name, and of what is written.
SOURCE = "odradek.source."
SINK = "odradek.sink"


class SourceCount(NamedTuple):
    """Records of a source; how many of them were bad, and one of these."""

    records: int = 0
    bad: int = 0
    example: str | None = None

    def plus(self, other: "SourceCount") -> "SourceCount":
        """Both together."""
        example = self.example or other.example
        return SourceCount(self.records + other.records, self.bad + other.bad, example)


@dataclass(frozen=True, slots=True, kw_only=True)
class EtlBatch:
    """A batch that was written. `behind` is in offsets, where the sources tell it."""

    number: int
    seconds: float
    sources: Mapping[str, SourceCount]
    written: int
    behind: int | None

    @property
    def records(self) -> int:
        """Of all sources."""
        return sum(each.records for each in self.sources.values())

    @property
    def bad(self) -> int:
        """The same of those that were bad."""
        return sum(each.bad for each in self.sources.values())


@dataclass(slots=True)
class EtlSummary:
    """What a run has done; whether it began at a checkpoint, and whether it was told to end."""

    delivery: Delivery = Delivery.AUTO
    goes_on: bool = False
    was_stopped: bool = False
    batches: int = 0
    written: int = 0
    sources: dict[str, SourceCount] = field(default_factory=dict)

    def add(self, batch: EtlBatch) -> None:
        """One more."""
        self.batches += 1
        self.written += batch.written
        for name, count in batch.sources.items():
            self.sources[name] = self.sources.get(name, SourceCount()).plus(count)


def batches_of(told: Iterable[Mapping[str, Any]], after: int) -> list[EtlBatch]:
    """Of Spark's progress reports (as JSON), those on batches behind the number `after`.

    A report without `addBatch` is of a look at the sources that found nothing new.
    """
    last = {int(each["batchId"]): each for each in told if "addBatch" in _durations_ms(each)}
    return [_batch(last[number]) for number in sorted(last) if number > after]


def _batch(told: Mapping[str, Any]) -> EtlBatch:
    observed = told.get("observedMetrics") or {}
    return EtlBatch(
        number=int(told["batchId"]),
        seconds=int(_durations_ms(told).get("triggerExecution", 0)) / 1000,
        sources={
            name.removeprefix(SOURCE): SourceCount(
                int(counts["records"]), int(counts["bad"]), counts.get("example")
            )
            for name, counts in observed.items()
            if name.startswith(SOURCE)
        },
        written=int((observed.get(SINK) or {}).get("records", 0)),
        behind=_behind(told.get("sources") or ()),
    )


def _durations_ms(told: Mapping[str, Any]) -> Mapping[str, Any]:
    return told.get("durationMs") or {}


def _behind(sources: Iterable[Mapping[str, Any]]) -> int | None:
    """How many offsets there are that were not read, when the batch was planned."""
    total = 0
    for source in sources:
        end, latest = _offsets(source.get("endOffset")), _offsets(source.get("latestOffset"))
        if end is None or latest is None:
            return None
        total += sum(max(0, offset - end.get(each, 0)) for each, offset in latest.items())
    return total


def _offsets(told: Any) -> dict[tuple[str, str], int] | None:  # JSON, or JSON in a text
    """{(topic, partition): offset} of {"orders": {"0": 23}}; None for other offsets."""
    if isinstance(told, str):
        try:
            told = json.loads(told)
        except ValueError:
            return None
    try:
        return {
            (topic, partition): int(offset)
            for topic, offsets in told.items()
            for partition, offset in offsets.items()
        }
    except (AttributeError, TypeError, ValueError):
        return None
