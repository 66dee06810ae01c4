"""The names that Kafka's tools have for the sources and types of settings."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from odradek.config.describe import ConfigSource
from odradek.config.key import ConfigType

_SOURCES: Mapping[int, str] = MappingProxyType(
    {
        ConfigSource.TOPIC: "DYNAMIC_TOPIC_CONFIG",
        ConfigSource.DYNAMIC_BROKER: "DYNAMIC_BROKER_CONFIG",
        ConfigSource.DYNAMIC_DEFAULT_BROKER: "DYNAMIC_DEFAULT_BROKER_CONFIG",
        ConfigSource.STATIC_BROKER: "STATIC_BROKER_CONFIG",
        ConfigSource.DEFAULT: "DEFAULT_CONFIG",
        ConfigSource.BROKER_LOGGER: "DYNAMIC_BROKER_LOGGER_CONFIG",
        ConfigSource.CLIENT_METRICS: "DYNAMIC_CLIENT_METRICS_CONFIG",
        ConfigSource.GROUP: "DYNAMIC_GROUP_CONFIG",
    }
)
_TYPES = frozenset(ConfigType)


def source_name(source: int) -> str:
    """Kafka: DescribeConfigsResponse.ConfigSource."""
    return _SOURCES.get(source, "UNKNOWN")


def type_name(type_: int) -> str:
    """Kafka: DescribeConfigsResponse.ConfigType."""
    return ConfigType(type_).name if type_ in _TYPES else "UNKNOWN"
