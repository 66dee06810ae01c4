"""What the subscriptions in the metadata ask of one client.

A subscription is a config resource of the type CLIENT_METRICS. All subscriptions that match a
client count: it pushes the metrics of all, at the shortest interval of all, and at least every five
minutes.

The subscription id tells clients that something has changed. It is made as Kafka makes it, with the
order in which Java iterates over a HashSet, so a client sees the same id on both.
Kafka: ClientMetricsManager.createClientInstance, computeSubscriptionId.
"""

from __future__ import annotations

import logging
import math
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from odradek.config.client_metrics_config import (
    ALL_METRICS,
    DEFAULT_INTERVAL_MS,
    Subscription,
    subscription_of,
)
from odradek.config.errors import ConfigError
from odradek.coordinator.java.java_hash import SMALLEST_TABLE, hash_map_order
from odradek.coordinator.metadata.configs import ConfigResourceType, Configs
from odradek.coordinator.runtime.steps import Step, no_step, stepping
from odradek.protocol.crc import crc32c

logger = logging.getLogger("odradek.telemetry")

_UUID_WORDS = struct.Struct(">iiii")
_INT32 = struct.Struct(">i")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What one client is to push, and how often. `metrics` are prefixes of names, or `*`."""

    metrics: tuple[str, ...]
    push_interval_ms: int


class Subscriptions:
    """The current subscriptions. `version` grows with each change."""

    def __init__(self, configs: Configs) -> None:
        self.version = 0
        self._configs = configs
        self._by_name: dict[str, Subscription | None] = {}  # None: it is ignored
        self.update(configs.names(ConfigResourceType.CLIENT_METRICS))

    def __len__(self) -> int:
        return len(self._by_name)

    def update(self, names: Iterable[str], step: Step = no_step) -> None:
        """Read these subscriptions from the metadata again. Compiling patterns takes long."""
        for name in stepping(names, step):
            settings = self._configs.of(ConfigResourceType.CLIENT_METRICS, name)
            if settings:
                self._by_name[name] = self._read(name, settings)
            else:
                self._by_name.pop(name, None)
            self.version += 1

    def _read(self, name: str, settings: Mapping[str, str]) -> Subscription | None:
        try:
            return subscription_of(settings)
        except ConfigError as error:  # Kafka has stored it, and its patterns are Java's
            logger.error("the subscription %s is ignored: %s", name, error)
            return None

    def wanted_of(self, attributes: Mapping[str, str | None], step: Step = no_step) -> Wanted:
        """What a client with these attributes is to push."""
        named = stepping(self._by_name.items(), step)
        found = {name: each for name, each in named if each and each.is_for(attributes)}
        # In the order in which a map of all subscriptions iterates.
        table_size = max(SMALLEST_TABLE, math.ceil(len(self._by_name) * 4 / 3))
        matching = [found[name] for name in hash_map_order(found, table_size, step)]
        names = dict.fromkeys(
            name
            for each in stepping(matching, step)
            for name in hash_map_order(tuple(dict.fromkeys(each.metrics)))
        )
        intervals_ms = [each.interval_ms for each in matching]
        return Wanted(
            metrics=tuple(
                [ALL_METRICS] if ALL_METRICS in names else hash_map_order(names, step=step)
            ),
            push_interval_ms=min([DEFAULT_INTERVAL_MS, *intervals_ms]),
        )


def subscription_id(wanted: Wanted, client_instance_id: bytes) -> int:
    """The id of a client's subscription: a CRC, combined with Java's hash of the client's id."""
    text = f"[{', '.join(wanted.metrics)}]{wanted.push_interval_ms}"
    words = _UUID_WORDS.unpack(client_instance_id)
    number = crc32c(text.encode())
    for word in words:
        number ^= word & 0xFFFFFFFF
    return int(_INT32.unpack(number.to_bytes(4, "big"))[0])
