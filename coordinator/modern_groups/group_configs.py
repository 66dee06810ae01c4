"""Settings of groups: the broker's values, overridden per group.

A group's override (a GROUP resource of IncrementalAlterConfigs) is looked up at each use. So a
change applies from the next heartbeat on, and a deleted group leaves no state here. Overrides are
within the broker's bounds when they are set. If the bounds have changed since, the nearest bound
applies, and `warnings` reports it once at startup. Of the broker's values only the assignment
intervals (group.consumer.assignment.interval.ms) may change while the broker runs.

Kafka: GroupConfigManager, GroupConfig.evaluate.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Generic, TypeVar

from odradek.config.errors import ConfigError
from odradek.config.group_config import GROUP_KEYS
from odradek.config.key import Key
from odradek.coordinator.any_group.group_settings import (
    Bounds,
    ConsumerGroupSettings,
    ModernGroupSettings,
)

S = TypeVar("S", bound=ModernGroupSettings)
OverridesOf = Callable[[str], Mapping[str, str]]

_NO_OVERRIDES: Mapping[str, str] = {}


class GroupConfigs(Generic[S]):
    """The settings of each group of one type; `broker` has the broker's values.

    `overrides_of` returns a group's current overrides by key.
    """

    def __init__(
        self, broker: S, overrides_of: OverridesOf = lambda _group_id: _NO_OVERRIDES
    ) -> None:
        self.overrides_of = overrides_of
        self._session_timeout = f"{broker.kind}.session.timeout.ms"
        self._heartbeat_interval = f"{broker.kind}.heartbeat.interval.ms"
        self._assignment_interval = f"{broker.kind}.assignment.interval.ms"
        self.update(broker)

    def update(self, broker: S) -> None:
        """Replace the broker's values."""
        self.broker = broker
        self._bounds = {f"{broker.kind}.{name}": found for name, found in broker.bounds().items()}

    def session_timeout_ms(self, group_id: str) -> int:
        """The longest time between two heartbeats of a member."""
        return self.number(group_id, self._session_timeout, self.broker.session_timeout_ms)

    def heartbeat_interval_ms(self, group_id: str) -> int:
        """The interval at which members send heartbeats."""
        return self.number(group_id, self._heartbeat_interval, self.broker.heartbeat_interval_ms)

    def assignment_interval_ms(self, group_id: str) -> int:
        """The shortest time between two assignments; 0 means no limit."""
        return self.number(group_id, self._assignment_interval, self.broker.assignment_interval_ms)

    def number(self, group_id: str, name: str, default: int) -> int:
        """Return a group's override of a key, within the bounds; `default` if it has none."""
        text = self.overrides_of(group_id).get(name)
        if text is None:
            return default
        number = _number(name, text)
        return default if number is None else self._bounds[name].nearest(number)

    def warnings(self, group_ids: Iterable[str]) -> Iterator[str]:
        """Yield a line for each override of these groups that does not apply as written."""
        for group_id in group_ids:
            overrides = self.overrides_of(group_id)
            for name, bounds in self._bounds.items():
                if name in overrides:
                    yield from _warning(group_id, name, overrides[name], bounds)
            session = self.session_timeout_ms(group_id)
            heartbeat = self.heartbeat_interval_ms(group_id)
            if session <= heartbeat:
                yield (
                    f"group {group_id}: its effective {self._session_timeout} ({session}) is not "
                    f"greater than its {self._heartbeat_interval} ({heartbeat})"
                )


ConsumerGroupConfigs = GroupConfigs[ConsumerGroupSettings]


@cache
def _unbounded(name: str) -> Key:
    """The key without a lower limit: values below it are moved to the broker's bounds."""
    return GROUP_KEYS[name]._replace(ge=None)


def _number(name: str, text: str) -> int | None:
    """Parse a number, even one below the key's range; None if it is not a number."""
    try:
        value = _unbounded(name).parse(text)
    except ConfigError:
        return None
    assert isinstance(value, int)
    return value


def _warning(group_id: str, name: str, text: str, bounds: Bounds) -> Iterator[str]:
    number = _number(name, text)
    if number is None:
        yield f"group {group_id}: {name}={text} is not a number; the broker's value applies"
    elif bounds.nearest(number) != number:
        yield (
            f"group {group_id}: {name}={text} is not within the broker's bounds "
            f"{bounds.min} to {bounds.max}; {bounds.nearest(number)} applies"
        )
