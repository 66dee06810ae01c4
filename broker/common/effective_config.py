"""The broker's effective configuration: the file's, overridden by dynamic settings (KIP-226).

Dynamic settings come from the metadata log: those of this node take precedence over those of all
brokers. Code that changes them calls `refresh`, which sets `current` and calls the functions in
`on_change`. Read `current` (or `broker.config`) at each use, or keep a copy and update it from
`on_change`. A stored setting that cannot be applied is logged and left out: the broker starts with
the others. Kafka: DynamicBrokerConfig, BrokerConfigHandler.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Mapping
from functools import partial

from odradek.config.broker_config import LIMITS_OF_LISTENERS, SERVED_KEYS, BrokerConfig
from odradek.config.broker_keys import without_listener
from odradek.config.describe import ConfigSource, Layers, merged
from odradek.config.dynamic_settings import (
    OPENED_AT_START,
    applied_config,
    check_change,
    check_settings,
    clamped_settings,
    printable_value,
    usable_settings,
)
from odradek.config.key import field_name
from odradek.config.listener_settings import listener_keys
from odradek.coordinator.metadata.configs import ConfigResourceType, Configs
from odradek.coordinator.runtime.steps import Step, no_step, sorted_in_steps, stepping

logger = logging.getLogger("odradek.config")

ALL_BROKERS = ""
MOVE_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"  # a dynamic setting only
NO_LIMIT = -1


class EffectiveConfig:
    """The broker's configuration, and its layers.

    `written` is the file's configuration, `current` the effective one. `layers` are the dynamic
    settings that are applied: first those of this node, then those of all brokers.
    """

    def __init__(self, written: BrokerConfig, configs: Configs, node_id: int) -> None:
        self.written = written
        self.current = written
        self.layers: Layers = ()
        # The stored layers: each setting is valid alone, but some may conflict with others.
        self._usable: Layers = ()
        self._settings: Mapping[str, str] = {}  # the layers merged
        self.on_change: list[Callable[[BrokerConfig], object]] = []
        # Called with the configuration that a request asks for; may raise ConfigError.
        self.checks: list[Callable[[BrokerConfig], object]] = []
        self._configs = configs
        self._names = (str(node_id), ALL_BROKERS)
        self.refresh()

    def refresh(self, step: Step = no_step) -> None:
        """Read the stored settings again; if they changed, update `current` and report it.

        `step` may serve other requests. None of them may change the stored settings, or call this.
        """
        usable = tuple(self._layer_of(name, step) for name in self._names)
        if usable == self._usable:
            return
        iterate = partial(stepping, step=step)
        current, left_out = applied_config(self.written, merged(usable, iterate), iterate)
        for name, reason in left_out.items():
            logger.error("%s of the broker is not applied: %s", name, reason)
        layers = usable
        if left_out:
            layers = tuple((source, _without(left_out, texts, step)) for source, texts in usable)
        settings = merged(layers, iterate)
        self._report(current, settings, step)
        for name, bound in clamped_settings(self.written, settings).items():
            logger.warning("%s is outside the bounds that the file sets; %s is used", name, bound)
        self._usable, self.layers = usable, layers
        self._settings, self.current = settings, current
        for callback in tuple(self.on_change):
            callback(current)

    @property
    def move_bytes_per_second(self) -> int:
        """The rate limit of moves between directories; negative if there is none."""
        text = self._settings.get(MOVE_RATE)
        return NO_LIMIT if text is None else int(text)

    def check(
        self, name: str, settings: Mapping[str, str], layers: Layers, step: Step = no_step
    ) -> Layers:
        """Check the settings that the node `name`, or all brokers (""), would have.

        They are all settings of `name`, and replace its layer in `layers`. Returns the resulting
        layers. Raises ConfigError.
        """
        iterate = partial(stepping, step=step)
        check_settings(settings, of_all_brokers=name == ALL_BROKERS, iterate=iterate)
        changed = dict(layers) | {_source_of(name): settings}
        new = tuple((source, changed.get(source, {})) for source in map(_source_of, self._names))
        config = check_change(self.written, self._settings, merged(new, iterate), iterate)
        for check_config in self.checks:
            check_config(config)
        return new

    def _layer_of(self, name: str, step: Step) -> tuple[ConfigSource, Mapping[str, str]]:
        stored = self._configs.of(ConfigResourceType.BROKER, name)
        usable, problems = usable_settings(
            stored, of_all_brokers=name == ALL_BROKERS, iterate=partial(stepping, step=step)
        )
        for problem in problems:
            logger.error("a setting of the broker is not applied: %s", problem)
        return _source_of(name), usable

    def _report(self, current: BrokerConfig, after: Mapping[str, str], step: Step) -> None:
        before = self._settings
        names = [name for name in stepping(before, step) if name not in after]
        names += [
            name
            for name, text in stepping(after.items(), step)
            # The former are never applied, so each change of any setting warns of them.
            if name in OPENED_AT_START or before.get(name) != text
        ]
        for name in stepping(sorted_in_steps(names, step), step):
            if name in OPENED_AT_START and name in after:
                logger.warning(
                    "%s is not applied: listeners are opened only at start, from the file", name
                )
            elif name not in after:
                logger.info("%s is reset to the value of the file", name)
            elif not _is_same(name, self.current, current):
                note = "" if _has_effect(name) else "; it is stored and has no effect"
                logger.info("%s is now %s%s", name, printable_value(name, after[name]), note)


def _is_same(name: str, before: BrokerConfig, after: BrokerConfig) -> bool:
    """Whether the key is served and has the same value in both configurations."""
    field = field_name(name)
    return name in SERVED_KEYS and getattr(before, field) == getattr(after, field)


def _without(names: Container[str], texts: Mapping[str, str], step: Step) -> Mapping[str, str]:
    return {name: text for name, text in stepping(texts.items(), step) if name not in names}


def _has_effect(name: str) -> bool:
    """Whether the key is served, of the broker or of a listener. The file cannot have MOVE_RATE."""
    base = without_listener(name)
    is_of_listener = base != name and (base in LIMITS_OF_LISTENERS or base in listener_keys())
    return name in SERVED_KEYS or name == MOVE_RATE or is_of_listener


def _source_of(name: str) -> ConfigSource:
    is_default = name == ALL_BROKERS
    return ConfigSource.DYNAMIC_DEFAULT_BROKER if is_default else ConfigSource.DYNAMIC_BROKER
