"""Deadlines of members of consumer groups.

Members of the classic protocol have two more kinds: `joins`, the time to join again, and `syncs`,
the time to sync after a join. Both are the member's rebalance timeout.
"""

from functools import partial

from odradek.coordinator.modern_groups.deadlines import Fence, MemberDeadlines
from odradek.coordinator.modern_groups.member import MemberKey
from odradek.coordinator.runtime.timers import DeadlineQueue, KeyedDeadlines

JOIN = "join"
SYNC = "sync"


class ConsumerDeadlines(MemberDeadlines):
    """The deadlines of all members of consumer groups, in a shared queue."""

    def __init__(self, queue: DeadlineQueue, fence: Fence) -> None:
        super().__init__(queue, fence)
        self.joins = self._by_kind[JOIN] = KeyedDeadlines(queue, partial(fence, JOIN, None))
        self.syncs = self._by_kind[SYNC] = KeyedDeadlines(queue, partial(fence, SYNC, None))

    def cancel_all(self, key: MemberKey) -> None:
        """Cancel all deadlines of a member that has left."""
        super().cancel_all(key)
        self.joins.cancel(key)
        self.syncs.cancel(key)
