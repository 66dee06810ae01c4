"""Deadlines of members of consumer groups. Two are only for members of the classic protocol:

joins      a classic member that has not rejoined within its rebalance timeout
syncs      a classic member that has joined and not synced within its rebalance timeout
"""

from functools import partial

from odradek.coordinator.modern_groups.deadlines import Fence, MemberDeadlines, MemberKey
from odradek.coordinator.timers import DeadlineQueue, KeyedDeadlines


class ConsumerDeadlines(MemberDeadlines):
    """The deadlines of all members of consumer groups, in a shared queue."""

    def __init__(self, queue: DeadlineQueue, fence: Fence) -> None:
        super().__init__(queue, fence)
        self.joins = KeyedDeadlines(queue, partial(fence, "join", None))
        self.syncs = KeyedDeadlines(queue, partial(fence, "sync", None))

    def cancel_all(self, key: MemberKey) -> None:
        super().cancel_all(key)
        self.joins.cancel(key)
        self.syncs.cancel(key)
