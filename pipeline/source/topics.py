"""Which partitions are read: the options `subscribe`, `subscribePattern` and `assign`."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from odradek.pipeline.option_values import OptionError
from odradek.storage.topic_names import is_internal
from odradek.storage.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Topics:
    """Topics by name, topics whose whole name matches a pattern, or single partitions."""

    names: tuple[str, ...] = ()
    pattern: re.Pattern[str] | None = None
    partitions: frozenset[TopicPartition] = frozenset()

    def choose(self, existing: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Return the selected partitions, sorted."""
        return sorted(
            each for each in existing if each in self.partitions or self._selects_all_of(each.topic)
        )

    def missing(self, existing: Iterable[TopicPartition]) -> list[str]:
        """Return the named topics and partitions that do not exist. A pattern need not match."""
        there = set(existing)
        topics = set(self.names) - {partition.topic for partition in there}
        return sorted(topics | set(map(str, self.partitions - there)))

    def reads(self, topic: str) -> bool:
        """Whether a partition of this topic can be selected."""
        return self._selects_all_of(topic) or any(each.topic == topic for each in self.partitions)

    def _selects_all_of(self, topic: str) -> bool:
        if self.pattern is None:
            return topic in self.names
        # A pattern never selects internal topics, as in Kafka. They can be read by name.
        return not is_internal(topic) and self.pattern.fullmatch(topic) is not None


def subscribed(text: str) -> Topics:
    """Parse names separated by commas. Raises OptionError."""
    topics = tuple(name for name in map(str.strip, text.split(",")) if name)
    if not topics:
        raise OptionError(
            f"No topics to subscribe to as specified value for option 'subscribe' is '{text}'"
        )
    return Topics(names=topics)


def matching(text: str) -> Topics:
    """Parse a regular expression. Raises OptionError."""
    if not text.strip():
        raise OptionError(
            "Pattern to subscribe is empty as specified value for option "
            f"'subscribePattern' is '{text}'"
        )
    try:
        return Topics(pattern=re.compile(text.strip()))
    except re.error as error:
        raise OptionError(f"subscribePattern: {text!r} is no regular expression: {error}") from None
