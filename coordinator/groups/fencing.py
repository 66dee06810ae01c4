"""Removes members that have missed a deadline, from groups of every type with member epochs.

The decision may take slices (group_decisions.py), for example if the group becomes a classic group.
The member may have changed by then, or have renewed its session.
"""

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Generic, TypeVar

from odradek.coordinator.modern_groups.deadlines import SESSION, Fence, MemberDeadlines
from odradek.coordinator.modern_groups.draft import DraftResult
from odradek.coordinator.modern_groups.group import EpochGroup
from odradek.coordinator.modern_groups.member import MemberKey, ModernMember
from odradek.coordinator.runtime.outcome import Outcome
from odradek.coordinator.runtime.steps import Step
from odradek.coordinator.runtime.timers import Now
from odradek.protocol.errors import ApiError

from .group_decisions import GroupDecisions
from .group_shards import GroupShard, GroupShards
from .modern_group_commits import RETRY_MS

logger = logging.getLogger("odradek.groups")

G = TypeVar("G", bound=EpochGroup[Any, Any])
D = TypeVar("D", bound=MemberDeadlines)

# Decides on the removal of a member of a group.
Remove = Callable[[G, Any, Now, Step], Outcome[DraftResult[None]]]


class Fencing(Generic[G, D]):
    """The deadlines of the members of all groups of one type, and what follows if one is missed."""

    def __init__(
        self,
        shards: GroupShards,
        decisions: GroupDecisions,
        group_type: type[G],
        *,
        make_deadlines: Callable[[Fence], D],
        remove: Remove[G],
    ) -> None:
        self._shards = shards
        self._decisions = decisions
        self._group_type = group_type
        self._remove = remove
        self.deadlines = make_deadlines(self._fence)

    def member_now(self, key: MemberKey) -> ModernMember | None:
        """The member of this key; None if there is none, or its shard is not served any more."""
        try:
            _, member = self._find(self._shards.at(key.partition), key) or (None, None)
        except ApiError:
            return None
        return member

    def _find(self, shard: GroupShard, key: MemberKey) -> tuple[G, ModernMember] | None:
        """The member of this key, and its group."""
        group = shard.state.groups.get(key.group_id)
        member = group.members.get(key.member_id) if isinstance(group, self._group_type) else None
        return None if group is None or member is None else (group, member)

    def _fence(self, deadline: str, epoch: int | None, key: MemberKey, now: Now) -> int | None:
        """Remove a member that missed a deadline, if `epoch` is None or still the member's.

        Returns when to try again, in timer time, if the removal could not be written.
        """
        shard = self._shards.at(key.partition)
        found = self._find(shard, key)
        if found is None:  # the group has just become a classic group
            return None
        _, member = found
        if epoch not in (None, member.member_epoch):
            return None
        text = "group %s: member %s is removed: its %s deadline has passed"
        logger.info(text, key.group_id, key.member_id, deadline)
        try:
            decide = partial(self._decide, deadline, key, member)
            pending = self._decisions.decide(shard, key.group_id, decide, now)
        except ApiError as error:
            return _log_failure(key, error, now)
        if pending is not None:
            self._decisions.keep(self._wait_for(deadline, key, member, pending))
        return None

    def _decide(
        self,
        deadline: str,
        key: MemberKey,
        member: ModernMember,
        shard: GroupShard,
        now: Now,
        step: Step,
    ) -> Outcome[DraftResult[None]]:
        group, current = self._find(shard, key) or (None, None)
        is_renewed = deadline == SESSION and key in self.deadlines.sessions
        # The member may have changed while the decision waited.
        if is_renewed or group is None or current is not member:
            return Outcome(reply=DraftResult(key.group_id, None))
        return self._remove(group, member, now, step)

    async def _wait_for(
        self, deadline: str, key: MemberKey, member: ModernMember, pending: Awaitable[None]
    ) -> None:
        try:
            await pending
        except ApiError as error:
            now = self._decisions.clock()
            again_ms = _log_failure(key, error, now)
            if self.member_now(key) is member:  # else it has changed: replay makes another object
                self.deadlines.retry(deadline, key, again_ms)
                self._decisions.alarm.set(now)


def _log_failure(key: MemberKey, error: ApiError, now: Now) -> int:
    """Log that the removal could not be written. Returns when to try again, in timer time."""
    logger.warning("group %s: the removal could not be written: %s", key.group_id, error)
    return now.timer_ms + RETRY_MS
