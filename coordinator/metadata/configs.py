"""Config overrides in the metadata log: per topic, per broker, cluster-wide.

The cluster-wide default of brokers is the broker resource with an empty name. The config package
defines the keys and their legal values. Kafka: ConfigurationControlManager.
"""

from collections.abc import Iterator, Mapping
from enum import IntEnum
from types import MappingProxyType

from odradek.protocol.records.cluster_metadata import ConfigRecord


class ConfigResourceType(IntEnum):
    """The kind of resource that has overrides. On disk and on the wire: never renumber."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


_NOTHING: Mapping[str, str] = MappingProxyType({})


class Configs:
    """The overrides of all resources. Only replay changes them."""

    def __init__(self) -> None:
        self._of: dict[tuple[int, str], dict[str, str]] = {}

    def of(self, resource_type: ConfigResourceType, name: str) -> Mapping[str, str]:
        """Return the overrides of one resource; empty if it has none."""
        return self._of.get((resource_type, name), _NOTHING)

    def of_topic(self, name: str) -> Mapping[str, str]:
        """Return the overrides of one topic."""
        return self.of(ConfigResourceType.TOPIC, name)

    def copy(self) -> "Configs":
        """The overrides as they are now."""
        copied = Configs()
        copied._of = {resource: overrides.copy() for resource, overrides in self._of.items()}
        return copied

    def records(self) -> Iterator[ConfigRecord]:
        """Iterate over the records that set the overrides."""
        for (kind, resource), overrides in self._of.items():
            for name, value in overrides.items():
                yield ConfigRecord(
                    resource_type=kind, resource_name=resource, name=name, value=value
                )

    def names(self, resource_type: ConfigResourceType) -> list[str]:
        """Return the names of resources of a type that have overrides."""
        return [name for kind, name in self._of if kind == resource_type]

    def replay(self, record: ConfigRecord) -> None:
        """Set an override, or remove it (null)."""
        key = (record.resource_type, record.resource_name)
        if record.value is not None:
            self._of.setdefault(key, {})[record.name] = record.value
        elif key in self._of:
            self._of[key].pop(record.name, None)
            if not self._of[key]:
                del self._of[key]

    def replay_topic_removal(self, name: str) -> None:
        """Remove the overrides of a deleted topic."""
        self._of.pop((ConfigResourceType.TOPIC, name), None)
