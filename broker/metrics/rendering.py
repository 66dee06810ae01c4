"""Makes the text that Prometheus reads.

Thousands of partitions have tens of thousands of series. They are read and rendered in slices, and
the broker serves requests between two of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import accumulate, chain, islice
from math import inf
from typing import NamedTuple

from prometheus_client.core import Metric as Family
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from odradek.broker.common.durations import BOUNDS_MS, Durations
from odradek.broker.telemetry.client_series import is_counter
from odradek.broker.turns.slices import Slices

from .catalogue import CATALOGUE
from .metric import Kind, Metric
from .observed import Observed

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
# The number of samples that are formatted at once.
SAMPLES_PER_PART = 50
HEADER_LINES = 2

_Labelled = tuple[dict[str, str], float | Durations]

PROCESS = ProcessCollector(registry=None)


class _Families(Collector):
    """Some families of series, as generate_latest takes them."""

    def __init__(self, *families: Family) -> None:
        self._families = families

    def collect(self) -> Iterable[Family]:
        return self._families


class _Shown(NamedTuple):
    """One metric and its series: their labels and values."""

    name: str
    kind: Kind
    help: str
    samples: Iterator[_Labelled]


async def render(observed: Observed, slices: Slices) -> bytes:
    """All metrics in Prometheus' text format."""
    observed = replace(observed, step=slices.step)
    observed.traffic.count_appends(slices.of(observed.broker.log_manager.logs()))
    # In a thread, because it lists the open files: thousands take milliseconds. Not in a thread of
    # the disk: all of these may wait for a disk that hangs.
    parts = [await asyncio.to_thread(generate_latest, PROCESS)]
    for metric in _all_shown(observed):
        header_lines = 0
        while (part := list(islice(metric.samples, SAMPLES_PER_PART))) or not header_lines:
            text = generate_latest(_Families(_family(metric, part)))
            parts.append(text.split(b"\n", header_lines)[-1])
            header_lines = HEADER_LINES  # once for each metric
            slices.step()
    return b"".join(parts)


def _all_shown(observed: Observed) -> Iterator[_Shown]:
    own = (_shown(metric, observed) for metric in chain.from_iterable(CATALOGUE.values()))
    return chain(own, _shown_of_clients(observed))


def _shown(metric: Metric, observed: Observed) -> _Shown:
    samples = (
        ({name: text for name, text in zip(metric.labels, values, strict=True) if text}, value)
        for values, value in metric.read(observed)
    )
    return _Shown(metric.name, metric.kind, metric.help, samples)


def _shown_of_clients(observed: Observed) -> Iterator[_Shown]:
    """What clients have pushed (KIP-714)."""
    for name, series in observed.broker.telemetry.series.by_name(observed.step).items():
        samples = ((dict(labels), value) for labels, value in series)
        kind = Kind.COUNTER if is_counter(name) else Kind.GAUGE
        yield _Shown(name, kind, "Pushed by clients.", samples)


def _family(metric: _Shown, samples: Iterable[_Labelled]) -> Family:
    """The family with these series. prometheus-client adds `_total` to the name of a counter."""
    family = Family(metric.name.removesuffix("_total"), metric.help, metric.kind.value)
    for labels, value in samples:
        if isinstance(value, Durations):
            _add_histogram(family, labels, value)
        else:
            family.add_sample(metric.name, labels, value)
    return family


def _add_histogram(family: Family, labels: dict[str, str], durations: Durations) -> None:
    bounds = map(floatToGoString, (*BOUNDS_MS, inf))
    for bound, count in zip(bounds, accumulate(durations.counts), strict=True):
        family.add_sample(f"{family.name}_bucket", {**labels, "le": bound}, count)
    family.add_sample(f"{family.name}_count", labels, durations.count)
    family.add_sample(f"{family.name}_sum", labels, durations.sum_s * 1000)
