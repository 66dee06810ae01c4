"""Deadlines of members. A member that misses one is removed from its group.

    sessions   the member must send a heartbeat within the session timeout
    rebalance  the member must give up partitions within its rebalance timeout; the deadline applies
               only while the member is still at the epoch at which it got the request

Deadlines are keyed by shard, group id and member id, because each record of a member replaces the
object that describes it. Kafka: the timers of GroupMetadataManager, by key.
"""

from collections.abc import Callable
from functools import partial

from odradek.coordinator.runtime.timers import DeadlineQueue, KeyedDeadlines, Now

from .member import MemberKey, MemberState, ModernMember

SESSION = "session"
REBALANCE = "rebalance"

# Removes a member. Arguments: the kind of deadline, the epoch that the member must still be at (or
# None), its key, the time. Returns the timer time of a retry if the removal could not be written.
Fence = Callable[[str, int | None, MemberKey, Now], int | None]


class MemberDeadlines:
    """The deadlines of the members of all groups of one type, in a shared queue."""

    def __init__(self, queue: DeadlineQueue, fence: Fence) -> None:
        self.sessions = KeyedDeadlines(queue, partial(fence, SESSION, None))
        self._rebalances = KeyedDeadlines(queue, self._rebalance_ended)
        self._rebalance_epochs: dict[MemberKey, int] = {}
        self._fence = fence
        self._by_kind = {SESSION: self.sessions, REBALANCE: self._rebalances}

    def schedule_rebalance(self, key: MemberKey, at_ms: int, epoch: int) -> None:
        """Require the member, now at `epoch`, to give up partitions by `at_ms` (timer time)."""
        self._rebalance_epochs[key] = epoch
        self._rebalances.schedule(key, at_ms)

    def update_rebalance(
        self, key: MemberKey, member: ModernMember, timeout_ms: int, now: Now
    ) -> None:
        """Schedule the deadline of a member that must give something up, or cancel it."""
        if member.state is MemberState.UNREVOKED_PARTITIONS:
            self.schedule_rebalance(key, now.timer_ms + timeout_ms, member.member_epoch)
        else:
            self.cancel_rebalance(key)

    def cancel_rebalance(self, key: MemberKey) -> None:
        """Cancel the deadline: the member has given the partitions up."""
        self._rebalances.cancel(key)
        self._rebalance_epochs.pop(key, None)

    def _rebalance_ended(self, key: MemberKey, now: Now) -> int | None:
        return self._fence(REBALANCE, self._rebalance_epochs[key], key, now)

    def retry(self, kind: str, key: MemberKey, at_ms: int) -> None:
        """Schedule a deadline that has passed again, unless the member has got a new one."""
        self._by_kind[kind].schedule_if_absent(key, at_ms)

    def cancel_all(self, key: MemberKey) -> None:
        """Cancel all deadlines of a member that has left."""
        self.sessions.cancel(key)
        self.cancel_rebalance(key)
