"""The last values that clients have pushed, for /metrics.

A metric of a client becomes a series by OpenTelemetry's rules for Prometheus: dots in names become
underscores, and the name of a counter ends in `_total`; that of a gauge never does. Deltas are
added up. The labels are the attributes of the resource and of the data point, and what the broker
knows of the client (`client_instance_id`, `client_id`, software): a client cannot overwrite these.

Clients decide what they push, so all is bounded: the series of a client and of all clients, and the
size of a series. With the default limits all series take at most 70 MB. What exceeds a limit is
left out and counted. Only names that begin with `org.apache.kafka.` are taken, so no client can
push a metric that looks like one of the broker's.

A series stays for three intervals after its last value was pushed, and at least a minute, also if
the client has closed: so Prometheus sees its last values. A client that goes on without a series,
such as the lag in a partition that it has lost, does not keep it longer.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import lru_cache
from itertools import islice, starmap, takewhile
from math import isfinite

from odradek.coordinator.runtime.steps import Step, no_step, stepping

from .instances import ClientInstance, life_ms
from .otlp import Attributes, Point

PREFIX = "org.apache.kafka."
MAX_NAME_LENGTH = 200
MAX_ATTRIBUTES = 27  # and those that the broker adds
MAX_ATTRIBUTES_LENGTH = 2_000  # of their names and values together
TRANSLATIONS = 2_048  # that are kept: all clients of a kind push the same names
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_]")
_TOTAL = "_total"
# The labels that the broker sets: what it knows of the client.
_OF_THE_BROKER = (
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
)

Labels = tuple[tuple[str, str], ...]
_Series = tuple[str, Labels]
# The series of one client, each with its value and when it expires. That which was not pushed for
# the longest time is the first.
_Client = dict[_Series, tuple[float, int]]


class LeftOut(StrEnum):
    """Why a value is not shown."""

    NAME = "name"
    SIZE = "size"
    CLIENT_LIMIT = "client limit"
    TOTAL_LIMIT = "total limit"


class ClientSeries:
    """The series of all clients. Times are those of a clock that never jumps."""

    def __init__(self, max_series: int, max_client_series: int) -> None:
        self.left_out: Counter[LeftOut] = Counter()
        self.count = 0
        self._max_series = max_series
        self._max_client_series = max_client_series
        self._clients: dict[bytes, _Client] = {}

    def push_of(self, instance: ClientInstance, now_ms: int) -> Callable[[Point], None]:
        """Begin a push. Returns the function that takes its points."""
        known = {name: instance.attributes[name] or "" for name in _OF_THE_BROKER}
        expires_at_ms = now_ms + life_ms(instance.wanted.push_interval_ms)

        def take(point: Point) -> None:
            client = self._clients.get(instance.id, {})
            reason = self._take(client, known, point, expires_at_ms)
            if reason is None:
                self._clients[instance.id] = client
            else:
                self.left_out[reason] += 1

        return take

    def _take(
        self, client: _Client, known: Mapping[str, str], point: Point, expires_at_ms: int
    ) -> LeftOut | None:
        """Keep the value of a point. Returns why it is left out, or None."""
        if not point.name.startswith(PREFIX) or len(point.name) > MAX_NAME_LENGTH:
            return LeftOut.NAME
        length = sum(len(name) + len(value) for name, value in point.attributes)
        if len(point.attributes) > MAX_ATTRIBUTES or length > MAX_ATTRIBUTES_LENGTH:
            return LeftOut.SIZE
        series = series_name(point), _labels(point.attributes, known)
        before, _ = client.pop(series, (None, 0))  # it becomes the last
        if before is None:
            if len(client) >= self._max_client_series:
                return LeftOut.CLIENT_LIMIT
            if self.count >= self._max_series:
                return LeftOut.TOTAL_LIMIT
            self.count += 1
        value = _sum(before or 0.0, point.value) if point.is_delta else point.value
        client[series] = value, expires_at_ms
        return None

    def remove_expired(self, now_ms: int) -> None:
        """Remove the series that were not pushed for too long."""
        for id_, client in list(self._clients.items()):
            pushed = iter(client.values())
            expired = sum(1 for _ in takewhile(lambda each: each[1] <= now_ms, pushed))
            for series in list(islice(client, expired)):
                del client[series]
            self.count -= expired
            if not client:
                del self._clients[id_]

    def by_name(self, step: Step = no_step) -> Mapping[str, list[tuple[Labels, float]]]:
        """The current values of all series, by name."""
        found: dict[str, list[tuple[Labels, float]]] = {}
        for client in stepping(self._clients.values(), step):
            for (name, labels), (value, _) in stepping(client.items(), step):
                found.setdefault(name, []).append((labels, value))
        return found


def _sum(before: float, delta: float) -> float:
    """The sum, if it is a number. Java's clients push NaN where they have measured nothing."""
    total = before + delta
    if isfinite(total):
        return total
    return before if isfinite(before) else delta


def series_name(point: Point) -> str:
    """The name in Prometheus. It ends in `_total` if the value is a counter, and only then."""
    name = _translated(point.name)
    while name.endswith(_TOTAL):
        name = name.removesuffix(_TOTAL)
    return name + _TOTAL if point.is_monotonic else name


def is_counter(name: str) -> bool:
    """Whether the series of this name are counters."""
    return name.endswith(_TOTAL)


def _labels(attributes: Attributes, known: Mapping[str, str]) -> Labels:
    """The labels of a series, in the order of their names. Empty ones are left out."""
    labels = {**dict(starmap(_label, attributes)), **known}
    return tuple(sorted((name, value) for name, value in labels.items() if value))


def _label(name: str, value: str) -> tuple[str, str]:
    """A label with a name that Prometheus takes. Those that begin with `__` are its own."""
    name = _translated(name).lstrip("_")
    return (name if name[:1].isalpha() else f"attribute_{name}"), value


@lru_cache(TRANSLATIONS)
def _translated(name: str) -> str:
    """A name with the characters that Prometheus takes."""
    return _NOT_IN_NAMES.sub("_", name)
