"""The broker's configuration in force: its file, under what was set while it ran (KIP-226).

Settings come from the metadata log: of this node, and of all brokers, in the order in which they
count. Whoever changed them calls `refresh`; then `current` is the new configuration, and those in
`on_change` hear of it. Read `current` (or `broker.config`) at each use, or keep it together with a
place in `on_change`. A setting in the log that cannot be applied is left out and named in one line:
the broker starts with the others. Kafka: DynamicBrokerConfig, BrokerConfigHandler.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from odradek.config.broker_config import SERVED_KEYS
from odradek.config.describe import ConfigSource, Layers, merged
from odradek.config.dynamic_settings import (
    OPENED_AT_START,
    check_change,
    check_settings,
    clamped_settings,
    effective_config,
    printable_value,
    usable_settings,
)
from odradek.config.errors import ConfigError
from odradek.config.key import field_name
from odradek.coordinator.metadata.configs import ConfigResourceType

if TYPE_CHECKING:
    from odradek.config.broker_config import BrokerConfig
    from odradek.coordinator.metadata.configs import Configs

logger = logging.getLogger("odradek.config")

ALL_BROKERS = ""
MOVE_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"  # no file may have it
NO_LIMIT = -1


class ConfigInForce:
    """`written` is the file's configuration, `current` the one that counts, `layers` what lies
    between them: the node's own settings, then those of all brokers.
    """

    def __init__(self, written: BrokerConfig, configs: Configs, node_id: int) -> None:
        self.written = written
        self.current = written
        self.layers: Layers = ()
        self.on_change: list[Callable[[BrokerConfig], object]] = []
        self._configs = configs
        self._names = (str(node_id), ALL_BROKERS)
        self.refresh()

    def refresh(self) -> None:
        """Look at the settings again, and tell of a new configuration, if it is one."""
        layers = self._layers_of(
            {name: self._configs.of(ConfigResourceType.BROKER, name) for name in self._names}
        )
        if layers == self.layers:
            return
        try:
            current = effective_config(self.written, merged(layers))
        except ConfigError as error:
            logger.error("settings of the broker are not applied: %s", error)
            return
        self._report(current, merged(self.layers), merged(layers))
        for name, bound in clamped_settings(self.written, merged(layers)).items():
            logger.warning("%s is beyond the bounds of the file, so %s counts", name, bound)
        self.layers, self.current = layers, current
        for tell in tuple(self.on_change):
            tell(current)

    @property
    def move_bytes_per_second(self) -> int:
        """How fast logs may move between directories; below zero there is no limit."""
        text = merged(self.layers).get(MOVE_RATE)
        return NO_LIMIT if text is None else int(text)

    def check(self, name: str, settings: Mapping[str, str]) -> None:
        """ConfigError unless a layer may hold these settings: of the node, or ("") of all."""
        check_settings(settings, of_all_brokers=name == ALL_BROKERS)
        of_layers = {source: dict(texts) for source, texts in self.layers}
        of_layers[_source_of(name)] = dict(settings)
        then = [(source, of_layers.get(source, {})) for source in map(_source_of, self._names)]
        check_change(self.written, merged(self.layers), merged(then))

    def _layers_of(self, settings: Mapping[str, Mapping[str, str]]) -> Layers:
        layers = []
        for name, texts in settings.items():
            usable, problems = usable_settings(texts, of_all_brokers=name == ALL_BROKERS)
            for problem in problems:
                logger.error("a setting of the broker is not applied: %s", problem)
            layers.append((_source_of(name), usable))
        return tuple(layers)

    def _report(
        self, current: BrokerConfig, before: Mapping[str, str], after: Mapping[str, str]
    ) -> None:
        for name in sorted(before.keys() | after.keys()):
            if name in OPENED_AT_START and name in after:
                logger.warning("%s is not applied: listeners are those of the file", name)
            elif name not in after:
                logger.info("%s is as the file says again", name)
            elif before.get(name) != after[name] and not _is_same(name, self.current, current):
                is_used = name in SERVED_KEYS or name == MOVE_RATE
                use = "" if is_used else "; it is kept, odradek does not use it"
                logger.info("%s is %s now%s", name, printable_value(name, after[name]), use)


def _is_same(name: str, before: BrokerConfig, after: BrokerConfig) -> bool:
    """Whether a served key has the same value, wherever each comes from."""
    field = field_name(name)
    return name in SERVED_KEYS and getattr(before, field) == getattr(after, field)


def _source_of(name: str) -> ConfigSource:
    is_default = name == ALL_BROKERS
    return ConfigSource.DYNAMIC_DEFAULT_BROKER if is_default else ConfigSource.DYNAMIC_BROKER
