"""Settings of consumer groups: the broker's defaults, overridden per group.

A group's override (a GROUP resource of IncrementalAlterConfigs) is looked up at each use. So a
change applies from the next heartbeat on, and a deleted group leaves no state here. Overrides are
within the broker's bounds when they are set. If the bounds have changed since, the nearest bound
applies, and `warnings` reports it once at startup. Of the broker's defaults only
group.consumer.assignment.interval.ms may change while the broker runs.

Kafka: GroupConfigManager, GroupConfig.evaluate.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

from odradek.config.errors import ConfigError
from odradek.config.group_config import GROUP_KEYS
from odradek.coordinator.group_settings import Bounds, ConsumerGroupSettings

SESSION_TIMEOUT = "consumer.session.timeout.ms"
HEARTBEAT_INTERVAL = "consumer.heartbeat.interval.ms"
ASSIGNMENT_INTERVAL = "consumer.assignment.interval.ms"

_NO_OVERRIDES: Mapping[str, str] = {}
# Parsers without a lower limit: values below it are moved to the broker's bounds like others.
_UNBOUNDED = {
    name: GROUP_KEYS[name]._replace(ge=None)
    for name in (SESSION_TIMEOUT, HEARTBEAT_INTERVAL, ASSIGNMENT_INTERVAL)
}


class ConsumerGroupConfigs:
    """The settings of each consumer group; `broker` has the defaults.

    `overrides_of` returns a group's current overrides by key.
    """

    def __init__(
        self,
        broker: ConsumerGroupSettings,
        overrides_of: Callable[[str], Mapping[str, str]] = lambda _group_id: _NO_OVERRIDES,
    ) -> None:
        self.broker = broker
        self._bounds = _bounds_of(broker)
        self._overrides_of = overrides_of

    def update(self, broker: ConsumerGroupSettings) -> None:
        """Replace the broker's settings."""
        self.broker = broker
        self._bounds = _bounds_of(broker)

    def session_timeout_ms(self, group_id: str) -> int:
        """The longest time between two heartbeats of a member."""
        return self._value(group_id, SESSION_TIMEOUT, self.broker.session_timeout_ms)

    def heartbeat_interval_ms(self, group_id: str) -> int:
        """The interval at which members send heartbeats."""
        return self._value(group_id, HEARTBEAT_INTERVAL, self.broker.heartbeat_interval_ms)

    def assignment_interval_ms(self, group_id: str) -> int:
        """The shortest time between two assignments; 0 means no limit."""
        return self._value(group_id, ASSIGNMENT_INTERVAL, self.broker.assignment_interval_ms)

    def warnings(self, group_ids: Iterable[str]) -> Iterator[str]:
        """Yield a line for each override of these groups that does not apply as written."""
        for group_id in group_ids:
            overrides = self._overrides_of(group_id)
            for name, bounds in self._bounds.items():
                if name in overrides:
                    yield from _warning(group_id, name, overrides[name], bounds)
            session = self.session_timeout_ms(group_id)
            heartbeat = self.heartbeat_interval_ms(group_id)
            if session <= heartbeat:
                yield (
                    f"group {group_id}: its effective {SESSION_TIMEOUT} ({session}) is not greater "
                    f"than its {HEARTBEAT_INTERVAL} ({heartbeat})"
                )

    def _value(self, group_id: str, name: str, default: int) -> int:
        text = self._overrides_of(group_id).get(name)
        if text is None:
            return default
        number = _number(name, text)
        return default if number is None else self._bounds[name].nearest(number)


def _bounds_of(broker: ConsumerGroupSettings) -> Mapping[str, Bounds]:
    return {
        SESSION_TIMEOUT: broker.session_timeout_bounds,
        HEARTBEAT_INTERVAL: broker.heartbeat_interval_bounds,
        ASSIGNMENT_INTERVAL: broker.assignment_interval_bounds,
    }


def _number(name: str, text: str) -> int | None:
    """Parse a number, even one below the key's range; None if it is not a number."""
    try:
        value = _UNBOUNDED[name].parse(text)
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
            f"{bounds.least} to {bounds.most}; {bounds.nearest(number)} applies"
        )
