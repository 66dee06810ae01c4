"""One metric: its name, its labels, and the function that reads its values.

Names and labels are those that the JMX exporter's usual rules give to Apache Kafka's MBeans, so
dashboards for Kafka find them. The lag of groups is named as kafka-exporter names it. Metrics that
neither has begin with `odradek_`. An empty label is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import NamedTuple, TypeAlias

from odradek.broker.common.durations import Durations

from .observed import Observed

Sample: TypeAlias = tuple[tuple[str, ...], float | Durations]


class Kind(StrEnum):
    """The types that Prometheus knows."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Metric(NamedTuple):
    """`read` gives the label values and the value of each series: Durations in a histogram.

    It is read in slices, between which the broker serves requests (Observed.step). It must not keep
    an iterator over what requests change.
    """

    name: str
    kind: Kind
    labels: tuple[str, ...]
    help: str
    read: Callable[[Observed], Iterable[Sample]]


def gauge(name: str, help_: str, read: Callable[[Observed], float]) -> Metric:
    """A gauge of one value."""
    return Metric(name, Kind.GAUGE, (), help_, lambda observed: [((), read(observed))])


def counter(name: str, help_: str, read: Callable[[Observed], float]) -> Metric:
    """A counter of one value."""
    return Metric(name, Kind.COUNTER, (), help_, lambda observed: [((), read(observed))])
