"""Which partitions are read: `subscribe`, `subscribePattern` or `assign`."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from odradek.pipeline.option_values import OptionError
from odradek.pipeline.reading.partitions import TopicPartition
from odradek.storage.topic_names import is_internal


@dataclass(frozen=True, slots=True)
class Subscribed:
    """All partitions of topics by their names."""

    topics: tuple[str, ...]

    def choose(self, there: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Those that are wanted, of those that are there."""
        return sorted(partition for partition in there if partition.topic in self.topics)

    def missing(self, there: Iterable[TopicPartition]) -> list[str]:
        """What is wanted and is not there, by name."""
        return sorted(set(self.topics) - {partition.topic for partition in there})


@dataclass(frozen=True, slots=True)
class Matching:
    """All partitions of topics whose whole name matches."""

    pattern: re.Pattern[str]

    def choose(self, there: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Those that are wanted, of those that are there."""
        return sorted(
            partition
            for partition in there
            # No pattern means them, as Kafka's listing leaves them out; by name they are read.
            if not is_internal(partition.topic) and self.pattern.fullmatch(partition.topic)
        )

    def missing(self, there: Iterable[TopicPartition]) -> list[str]:  # noqa: ARG002 - as the others
        """Nothing: a pattern may match no topic yet."""
        return []


@dataclass(frozen=True, slots=True)
class Assigned:
    """These partitions."""

    partitions: frozenset[TopicPartition]

    def choose(self, there: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Those that are wanted, of those that are there."""
        return sorted(self.partitions.intersection(there))

    def missing(self, there: Iterable[TopicPartition]) -> list[str]:
        """What is wanted and is not there, by name."""
        return sorted(map(str, self.partitions.difference(there)))


Topics = Subscribed | Matching | Assigned


def subscribed(text: str) -> Subscribed:
    """Names with commas between them. Raises OptionError."""
    topics = tuple(name for name in map(str.strip, text.split(",")) if name)
    if not topics:
        raise OptionError(
            f"No topics to subscribe to as specified value for option 'subscribe' is '{text}'"
        )
    return Subscribed(topics)


def matching(text: str) -> Matching:
    """A regular expression. Raises OptionError."""
    if not text.strip():
        raise OptionError(
            "Pattern to subscribe is empty as specified value for option "
            f"'subscribePattern' is '{text}'"
        )
    try:
        return Matching(re.compile(text.strip()))
    except re.error as error:
        raise OptionError(f"subscribePattern: {text!r} is no regular expression: {error}") from None
