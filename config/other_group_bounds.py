"""How the keys of share and streams groups hang together, though odradek does not use them yet.

A file that Apache Kafka would not start with is refused here too. Kafka: GroupCoordinatorConfig,
ShareGroupConfig.
"""

from collections.abc import Callable, Iterator, Sequence

from .broker_config import BrokerConfig
from .broker_keys import broker_value
from .errors import ConfigError, invalid_value
from .keys_consumer_group import check_intervals

# key -> least, most
_SHARE_LIMITS = {
    f"group.share.{name}": (f"group.share.min.{name}", f"group.share.max.{name}")
    for name in ("delivery.count.limit", "partition.max.record.locks", "record.lock.duration.ms")
}


def check(config: BrokerConfig, written: Sequence[str]) -> None:
    """ConfigError unless the keys of each kind of which some are `written` agree."""

    def number(name: str) -> int:
        value = broker_value(config, name)
        assert isinstance(value, int)
        return value

    if any(name.startswith("group.share.") for name in written):
        check_intervals("share", number)
        _check_assignors(config)
        _raise_first(_share_problems(number))
    if any(name.startswith("group.streams.") for name in written):
        check_intervals("streams", number)
        _raise_first(_streams_problems(number))


def _check_assignors(config: BrokerConfig) -> None:
    name = "group.share.assignors"
    names = broker_value(config, name)
    if names != ("simple",):
        raise invalid_value(name, config.texts[name], "must be simple, the only one there is")


def _share_problems(number: Callable[[str], int]) -> Iterator[ConfigError]:
    for name, (least, most) in _SHARE_LIMITS.items():
        yield from _not_more(number, least, name)
        yield from _not_more(number, name, most)
    yield from _not_more(number, "group.share.max.size", "group.share.max.share.sessions")


def _streams_problems(number: Callable[[str], int]) -> Iterator[ConfigError]:
    most = "group.streams.max.standby.replicas"
    yield from _not_more(number, "group.streams.num.standby.replicas", most)


def _not_more(number: Callable[[str], int], name: str, most: str) -> Iterator[ConfigError]:
    if number(name) > number(most):
        yield invalid_value(name, number(name), f"must be at most {most} ({number(most)})")


def _raise_first(problems: Iterator[ConfigError]) -> None:
    for problem in problems:
        raise problem
