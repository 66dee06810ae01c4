"""Deadlines of members of consumer groups.

Members of the classic protocol have two more kinds: `joins`, the time to join again, and `syncs`,
the time to sync after a join. Both are the member's rebalance timeout.
"""

from functools import partial

from odradek.coordinator.modern_groups.deadlines import Fence, MemberDeadlines, MemberKey
from odradek.coordinator.modern_groups.member import MemberState
from odradek.coordinator.timers import DeadlineQueue, KeyedDeadlines, Now

from .member import ConsumerMember


class ConsumerDeadlines(MemberDeadlines):
    """The deadlines of all members of consumer groups, in a shared queue."""

    def __init__(self, queue: DeadlineQueue, fence: Fence) -> None:
        super().__init__(queue, fence)
        self.joins = KeyedDeadlines(queue, partial(fence, "join", None))
        self.syncs = KeyedDeadlines(queue, partial(fence, "sync", None))

    def update_rebalance(self, group_id: str, member: ConsumerMember, now: Now) -> None:
        """Schedule the deadline of a member that must give up partitions, or cancel it."""
        key = MemberKey(group_id, member.member_id)
        if member.state is MemberState.UNREVOKED_PARTITIONS:
            at_ms = now.timer_ms + member.rebalance_timeout_ms
            self.schedule_rebalance(key, at_ms, member.member_epoch)
        else:
            self.cancel_rebalance(key)

    def cancel_all(self, key: MemberKey) -> None:
        """Cancel all deadlines of a member that has left."""
        super().cancel_all(key)
        self.joins.cancel(key)
        self.syncs.cancel(key)
