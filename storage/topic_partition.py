"""The name of a partition: its topic, and its number in the topic."""

from typing import NamedTuple


class TopicPartition(NamedTuple):
    """A partition. It is equal to a plain tuple, which is quicker to make where a table is read."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
