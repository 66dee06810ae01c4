"""Checks that the keys of share groups agree. odradek does not use them yet.

A file with which Apache Kafka would not start is refused here, too.

Kafka: GroupCoordinatorConfig, ShareGroupConfig.
"""

from collections.abc import Callable, Iterator, Sequence

from .broker_config import BrokerConfig
from .broker_keys import broker_value
from .errors import ConfigError, invalid_value
from .keys_consumer_group import check_intervals

# key -> the keys of its lower and upper bound
_SHARE_LIMITS = {
    f"group.share.{name}": (f"group.share.min.{name}", f"group.share.max.{name}")
    for name in ("delivery.count.limit", "partition.max.record.locks", "record.lock.duration.ms")
}


def check(config: BrokerConfig, written: Sequence[str]) -> None:
    """Raise ConfigError if the keys of share groups contradict each other.

    They are checked only if the file has one of them: `written` are its unused keys.
    """

    def number(name: str) -> int:
        value = broker_value(config, name)
        assert isinstance(value, int)
        return value

    if any(name.startswith("group.share.") for name in written):
        check_intervals("share", number)
        _check_assignors(config)
        _raise_first(_share_problems(number))


def _check_assignors(config: BrokerConfig) -> None:
    name = "group.share.assignors"
    names = broker_value(config, name)
    if names != ("simple",):
        raise invalid_value(name, config.texts[name], "must be simple, the only assignor")


def _share_problems(number: Callable[[str], int]) -> Iterator[ConfigError]:
    for name, (least, most) in _SHARE_LIMITS.items():
        yield from _not_more(number, least, name)
        yield from _not_more(number, name, most)
    yield from _not_more(number, "group.share.max.size", "group.share.max.share.sessions")


def _not_more(number: Callable[[str], int], name: str, most: str) -> Iterator[ConfigError]:
    if number(name) > number(most):
        yield invalid_value(name, number(name), f"must be at most {most} ({number(most)})")


def _raise_first(problems: Iterator[ConfigError]) -> None:
    for problem in problems:
        raise problem
