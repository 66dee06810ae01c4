"""When members of consumer groups are out: the ends of sessions, and of what they were asked to do.

    sessions   not heard from for the session timeout
    rebalance  has not given up partitions within its rebalance timeout; only if it is still at the
               epoch at which it was asked
    joins      speaks the classic protocol, and has not joined again within its rebalance timeout
    syncs      likewise, has joined and not synced

Deadlines are found by the names of group and member: each record of a member replaces the object
that describes it. Kafka: the timers of GroupMetadataManager, by key.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from odradek.coordinator.timers import DeadlineQueue, KeyedDeadlines, Now


class MemberKey(NamedTuple):
    """Whose deadlines."""

    group_id: str
    member_id: str


# Removes a member, for a reason. With an epoch: only if the member is at it. Returns when to try
# again, where that could not be written.
Fence = Callable[[str, int | None, MemberKey, Now], int | None]


class MemberDeadlines:
    """The deadlines of all members of consumer groups, in a queue that others use too."""

    def __init__(self, queue: DeadlineQueue, fence: Fence) -> None:
        self.sessions = KeyedDeadlines(queue, partial(fence, "session", None))
        self.joins = KeyedDeadlines(queue, partial(fence, "join", None))
        self.syncs = KeyedDeadlines(queue, partial(fence, "sync", None))
        self._rebalances = KeyedDeadlines(queue, self._rebalance_ended)
        self._rebalance_epochs: dict[MemberKey, int] = {}
        self._fence = fence

    def schedule_rebalance(self, key: MemberKey, at_ms: int, epoch: int) -> None:
        """The member, now at `epoch`, shall have given up partitions by then."""
        self._rebalance_epochs[key] = epoch
        self._rebalances.schedule(key, at_ms)

    def cancel_rebalance(self, key: MemberKey) -> None:
        """The member has given them up."""
        self._rebalances.cancel(key)
        self._rebalance_epochs.pop(key, None)

    def _rebalance_ended(self, key: MemberKey, now: Now) -> int | None:
        return self._fence("rebalance", self._rebalance_epochs[key], key, now)

    def forget(self, key: MemberKey) -> None:
        """The member is gone: none of its deadlines falls."""
        for deadlines in (self.sessions, self.joins, self.syncs):
            deadlines.cancel(key)
        self.cancel_rebalance(key)
