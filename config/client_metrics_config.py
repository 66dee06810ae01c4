"""The configuration keys of a client metrics subscription (KIP-714).

A pattern in `match` is a Java regular expression. Patterns that Python cannot compile are refused.

Kafka: ClientMetricsConfigs.
"""

import re
from collections.abc import Mapping

from .errors import ConfigError
from .key import parse_all
from .key_table import read_table

CLIENT_METRICS_KEYS = read_table("""\
metrics LIST ""
    Prefixes of the metrics to push; *: all.
interval.ms INT 300000
    The interval between two pushes.
match LIST ""
    The clients that the subscription is for, as NAME=PATTERN.
""")

INTERVALS_MS = range(100, 3_600_001)
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


class InvalidSubscriptionError(ConfigError):
    """An unknown key or a wrong interval. Kafka answers INVALID_REQUEST, not INVALID_CONFIG."""


def check_client_metrics(overrides: Mapping[str, str]) -> None:
    """Raise ConfigError unless a subscription may have these settings."""
    for name in overrides:
        if name not in CLIENT_METRICS_KEYS:
            raise InvalidSubscriptionError(f"Unknown client metrics configuration: {name}")
    values = parse_all(CLIENT_METRICS_KEYS, overrides)
    interval = values.get("interval.ms", INTERVALS_MS[0])
    if interval not in INTERVALS_MS:
        raise InvalidSubscriptionError(
            f"Invalid value {interval} for interval.ms, "
            "interval must be between 100 and 3600000 (1 hour)"
        )
    patterns = values.get("match", ())
    assert isinstance(patterns, tuple)
    for pattern in patterns:
        _check_pattern(pattern)


def _check_pattern(text: str) -> None:
    name, _, pattern = text.partition("=")
    is_pair = bool(pattern.rstrip("=")) and "=" not in pattern.rstrip("=")
    if not is_pair or name.strip() not in _MATCHABLE:
        raise ConfigError(f"Illegal client matching pattern: {text}")
    try:
        re.compile(pattern.rstrip("=").strip())
    except (re.error, OverflowError, RecursionError):
        raise ConfigError(f"Illegal client matching pattern: {text}") from None
