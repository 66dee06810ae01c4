"""Checks that the keys of streams groups agree. odradek does not use them yet.

A file with which Apache Kafka would not start is refused here, too.

Kafka: GroupCoordinatorConfig.
"""

from collections.abc import Sequence

from .broker_config import BrokerConfig
from .broker_keys import broker_value
from .errors import invalid_value
from .keys_consumer_group import check_intervals


def check(config: BrokerConfig, written: Sequence[str]) -> None:
    """Raise ConfigError if the keys of streams groups contradict each other.

    They are checked only if the file has one of them: `written` are its unused keys.
    """

    def number(name: str) -> int:
        value = broker_value(config, name)
        assert isinstance(value, int)
        return value

    if any(name.startswith("group.streams.") for name in written):
        check_intervals("streams", number)
        name, most = "group.streams.num.standby.replicas", "group.streams.max.standby.replicas"
        if number(name) > number(most):
            raise invalid_value(name, number(name), f"must be at most {most} ({number(most)})")
