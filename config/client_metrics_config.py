"""The configuration keys of a client metrics subscription (KIP-714), and what they mean.

A pattern in `match` is a Java regular expression. It is compiled by RE2, whose syntax and character
classes are close to Java's, and which matches in linear time. A pattern that RE2 does not have
(lookarounds, back references) is refused: Java and Python may match one for hours. So is one that
RE2 compiles to a large program. Texts have at most 256 characters (telemetry/instances.py).

Kafka: ClientMetricsConfigs.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .errors import ConfigError
from .key import parse_all
from .key_table import read_table
from .re2_options import bounded_options, re2_library, why_costly

CLIENT_METRICS_KEYS = read_table("""\
metrics LIST ""
    Prefixes of the metrics to push; *: all.
interval.ms INT 300000
    The interval between two pushes.
match LIST ""
    The clients that the subscription is for, as NAME=PATTERN.
""")

DEFAULT_INTERVAL_MS = 300_000
INTERVALS_MS = range(100, 3_600_001)
ALL_METRICS = "*"
_MATCHABLE = frozenset(
    [
        "client_id",
        "client_instance_id",
        "client_software_name",
        "client_software_version",
        "client_source_address",
        "client_source_port",
    ]
)

_TOO_MANY_TIMES = re.compile(r"\{[0-9]{10}")
MAX_PROGRAM = 1_000  # of RE2's instructions; a usual pattern has 10 to 100

# Whether a pattern matches the whole of a text.
Matches = Callable[[str], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """Which metrics clients push, how often, and which clients do, by attribute of the client."""

    metrics: tuple[str, ...]
    interval_ms: int
    match: Mapping[str, Matches]

    def is_for(self, attributes: Mapping[str, str | None]) -> bool:
        """Whether a client has all of the attributes. Without patterns every client has."""
        values = ((attributes.get(name), matches) for name, matches in self.match.items())
        return all(value is not None and matches(value) for value, matches in values)


class InvalidSubscriptionError(ConfigError):
    """An unknown key or a wrong interval. Kafka answers INVALID_REQUEST, not INVALID_CONFIG."""


def check_client_metrics(overrides: Mapping[str, str]) -> None:
    """Raise ConfigError unless a subscription may have these settings."""
    for name in overrides:
        if name not in CLIENT_METRICS_KEYS:
            raise InvalidSubscriptionError(f"Unknown client metrics configuration: {name}")
    interval_ms = parse_all(CLIENT_METRICS_KEYS, overrides).get("interval.ms", DEFAULT_INTERVAL_MS)
    if interval_ms not in INTERVALS_MS:
        raise InvalidSubscriptionError(
            f"Invalid value {interval_ms} for interval.ms, "
            "interval must be between 100 and 3600000 (1 hour)"
        )
    subscription_of(overrides)  # raises


def subscription_of(overrides: Mapping[str, str]) -> Subscription:
    """The subscription with these settings. Raises ConfigError."""
    values: dict[str, Any] = parse_all(CLIENT_METRICS_KEYS, overrides)
    if (problem := why_costly(overrides.get("match", ""))) is not None:
        raise ConfigError(f"Illegal client matching patterns: {problem}")
    return Subscription(
        metrics=values.get("metrics", ()),
        interval_ms=values.get("interval.ms", DEFAULT_INTERVAL_MS),
        match=dict(map(_parse_pattern, values.get("match", ()))),
    )


def _parse_pattern(text: str) -> tuple[str, Matches]:
    """`client_id=a.*` -> the attribute and what matches it. As in Java, trailing = are ignored."""
    name, _, pattern = text.rstrip("=").partition("=")
    if not pattern or "=" in pattern or name.strip() not in _MATCHABLE:
        raise ConfigError(f"Illegal client matching pattern: {text}")
    matches = _compiled(pattern.strip())
    if matches is None:
        raise ConfigError(f"Illegal client matching pattern: {text}")
    return name.strip(), matches


def _compiled(pattern: str) -> Matches | None:
    """Compile a pattern; None if RE2 does not have it, or if matching it could take long."""
    if _TOO_MANY_TIMES.search(pattern):
        return None  # RE2 would take it for a text
    re2 = re2_library()
    try:
        compiled: Any = re2.compile(pattern, bounded_options())
    except re2.error:
        return None
    re2.purge()  # otherwise the library caches the last 128
    if compiled.programsize > MAX_PROGRAM:
        return None
    return lambda text: compiled.fullmatch(text) is not None
