"""Which partitions are read: the options `subscribe`, `subscribePattern` and `assign`."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from odradek.pipeline.option_values import OptionError
from odradek.pipeline.reading.partitions import TopicPartition
from odradek.storage.topic_names import is_internal


@dataclass(frozen=True, slots=True)
class Subscribed:
    """All partitions of the named topics."""

    topics: tuple[str, ...]

    def choose(self, existing: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Return the selected partitions."""
        return sorted(partition for partition in existing if partition.topic in self.topics)

    def missing(self, existing: Iterable[TopicPartition]) -> list[str]:
        """Return the names of topics that do not exist."""
        return sorted(set(self.topics) - {partition.topic for partition in existing})


@dataclass(frozen=True, slots=True)
class Matching:
    """All partitions of topics whose whole name matches."""

    pattern: re.Pattern[str]

    def choose(self, existing: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Return the selected partitions."""
        return sorted(
            partition
            for partition in existing
            # A pattern never selects internal topics, as in Kafka. They can be read by name.
            if not is_internal(partition.topic) and self.pattern.fullmatch(partition.topic)
        )

    def missing(self, existing: Iterable[TopicPartition]) -> list[str]:  # noqa: ARG002 - as the others
        """Return nothing: a pattern need not match."""
        return []


@dataclass(frozen=True, slots=True)
class Assigned:
    """These partitions."""

    partitions: frozenset[TopicPartition]

    def choose(self, existing: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Return the selected partitions."""
        return sorted(self.partitions.intersection(existing))

    def missing(self, existing: Iterable[TopicPartition]) -> list[str]:
        """Return the partitions that do not exist."""
        return sorted(map(str, self.partitions.difference(existing)))


Topics = Subscribed | Matching | Assigned


def subscribed(text: str) -> Subscribed:
    """Parse names separated by commas. Raises OptionError."""
    topics = tuple(name for name in map(str.strip, text.split(",")) if name)
    if not topics:
        raise OptionError(
            f"No topics to subscribe to as specified value for option 'subscribe' is '{text}'"
        )
    return Subscribed(topics)


def matching(text: str) -> Matching:
    """Parse a regular expression. Raises OptionError."""
    if not text.strip():
        raise OptionError(
            "Pattern to subscribe is empty as specified value for option "
            f"'subscribePattern' is '{text}'"
        )
    try:
        return Matching(re.compile(text.strip()))
    except re.error as error:
        raise OptionError(f"subscribePattern: {text!r} is no regular expression: {error}") from None
