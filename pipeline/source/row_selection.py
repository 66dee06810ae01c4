"""Which rows a batch query reads: all, or what the conditions of its WHERE clause leave."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from odradek.storage.topic_partition import TopicPartition

INFINITY: Final = 1 << 63

# Integers in [first, second).
Interval = tuple[int, int]
UNBOUNDED: Interval = (-INFINITY, INFINITY)


@dataclass(slots=True)
class RowSelection:
    """Rows that meet all conditions. Without `times_ms` all timestamps do."""

    of_topic: list[Callable[[str], bool]] = field(default_factory=list)
    of_partition: list[Callable[[int], bool]] = field(default_factory=list)
    offsets: Interval = UNBOUNDED
    times_ms: Interval | None = None

    def has(self, partition: TopicPartition) -> bool:
        """Whether rows of this partition can be selected."""
        return all(is_true(partition.topic) for is_true in self.of_topic) and all(
            is_true(partition.partition) for is_true in self.of_partition
        )


def intersection(one: Interval, other: Interval) -> Interval:
    """Return the integers that are in both intervals."""
    return max(one[0], other[0]), min(one[1], other[1])
