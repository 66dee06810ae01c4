"""Deadlines of streams groups: those of members, and the initial rebalance delay.

When the first member joins a group without members, no tasks are assigned until the delay has
passed, because the other instances of the application usually start at the same time.
"""

from collections.abc import Callable
from typing import NamedTuple

from odradek.coordinator.modern_groups.deadlines import Fence, MemberDeadlines
from odradek.coordinator.runtime.timers import DeadlineQueue, KeyedDeadlines, Now


class GroupKey(NamedTuple):
    """Identifies a group. `partition` names its shard."""

    partition: int
    group_id: str


class StreamsDeadlines(MemberDeadlines):
    """The deadlines of all streams groups, in a shared queue."""

    def __init__(
        self, queue: DeadlineQueue, fence: Fence, end_delay: Callable[[GroupKey, Now], int | None]
    ) -> None:
        """`end_delay` assigns the tasks of a group (its key); it returns the time of a retry."""
        super().__init__(queue, fence)
        self.initial_delays = KeyedDeadlines(queue, end_delay)
