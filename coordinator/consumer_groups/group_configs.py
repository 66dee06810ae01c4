"""What the consumer groups may and must do: the broker's settings, under what is set on each group.

A group's own value (a GROUP resource of IncrementalAlterConfigs) is looked up whenever it is asked
for, so a change counts from the next heartbeat on, and a group that is gone leaves nothing behind.
Values were within the broker's bounds when they were set; where the bounds have moved since, the
nearest bound counts, and `warnings` says so once, at the start. Without an own value the broker's
counts: of these only group.consumer.assignment.interval.ms may change while it runs.

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
# A value beyond a key's own range is bent to the broker's bounds like any other.
_UNBOUNDED = {
    name: GROUP_KEYS[name]._replace(ge=None)
    for name in (SESSION_TIMEOUT, HEARTBEAT_INTERVAL, ASSIGNMENT_INTERVAL)
}


class ConsumerGroupConfigs:
    """The settings of each consumer group; `broker` has those that are the same for all.

    `overrides_of` gives what is set on a group, by key: of the metadata as it is at the moment.
    """

    def __init__(
        self,
        broker: ConsumerGroupSettings,
        overrides_of: Callable[[str], Mapping[str, str]] = lambda _group_id: _NO_OVERRIDES,
    ) -> None:
        self.broker = broker
        self._overrides_of = overrides_of

    def update(self, broker: ConsumerGroupSettings) -> None:
        """The broker's settings have changed."""
        self.broker = broker

    def session_timeout_ms(self, group_id: str) -> int:
        """How long a member may be silent."""
        broker = self.broker
        own = self._group_value(group_id, SESSION_TIMEOUT, broker.session_timeout_bounds)
        return broker.session_timeout_ms if own is None else own

    def heartbeat_interval_ms(self, group_id: str) -> int:
        """How often a member is to speak."""
        broker = self.broker
        own = self._group_value(group_id, HEARTBEAT_INTERVAL, broker.heartbeat_interval_bounds)
        return broker.heartbeat_interval_ms if own is None else own

    def assignment_interval_ms(self, group_id: str) -> int:
        """Least time between two assignments; 0: none."""
        broker = self.broker
        own = self._group_value(group_id, ASSIGNMENT_INTERVAL, broker.assignment_interval_bounds)
        return broker.assignment_interval_ms if own is None else own

    def warnings(self, group_ids: Iterable[str]) -> Iterator[str]:
        """A line for each value of these groups that does not count as it is written."""
        for group_id in group_ids:
            overrides = self._overrides_of(group_id)
            for name, bounds in self._bounds().items():
                if name in overrides:
                    yield from _warning(group_id, name, overrides[name], bounds)
            session, heartbeat = (
                self.session_timeout_ms(group_id),
                self.heartbeat_interval_ms(group_id),
            )
            if session <= heartbeat:
                yield (
                    f"group {group_id}: its effective {SESSION_TIMEOUT} ({session}) is not greater "
                    f"than its {HEARTBEAT_INTERVAL} ({heartbeat})"
                )

    def _bounds(self) -> Mapping[str, Bounds]:
        return {
            SESSION_TIMEOUT: self.broker.session_timeout_bounds,
            HEARTBEAT_INTERVAL: self.broker.heartbeat_interval_bounds,
            ASSIGNMENT_INTERVAL: self.broker.assignment_interval_bounds,
        }

    def _group_value(self, group_id: str, name: str, bounds: Bounds) -> int | None:
        text = self._overrides_of(group_id).get(name)
        number = None if text is None else _number(name, text)
        return None if number is None else bounds.nearest(number)


def _number(name: str, text: str) -> int | None:
    """The number that a text says, even one beyond the key's range; None where it says none."""
    try:
        value = _UNBOUNDED[name].parse(text)
    except ConfigError:
        return None
    assert isinstance(value, int)
    return value


def _warning(group_id: str, name: str, text: str, bounds: Bounds) -> Iterator[str]:
    number = _number(name, text)
    if number is None:
        yield f"group {group_id}: {name}={text} is no number; the broker's value counts"
    elif bounds.nearest(number) != number:
        yield (
            f"group {group_id}: {name}={text} is not within the broker's bounds "
            f"{bounds.least} to {bounds.most}; {bounds.nearest(number)} counts"
        )
