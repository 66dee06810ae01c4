"""When members of consumer groups are out: the ends of sessions, and of what they were asked to do.

    SESSION    not heard from for the session timeout
    REBALANCE  has not given up partitions within its rebalance timeout; only if it is still at the
               epoch at which it was asked
    JOIN       speaks the classic protocol, and has not joined again within its rebalance timeout
    SYNC       likewise, has joined and not synced

Deadlines are found by the names of group and member, not through the group: one that is read anew,
or is converted to the other protocol, keeps them, and what falls due for somebody who is gone finds
nobody. Kafka: the timers of GroupMetadataManager, by key.
"""

from typing import NamedTuple

from odradek.coordinator.classic_groups.member import Expiry, ExpiryKind
from odradek.coordinator.timers import Deadline, DeadlineQueue

# The kinds of what falls due here, and not in a classic group.
KINDS = frozenset(
    {
        ExpiryKind.MEMBER_SESSION,
        ExpiryKind.MEMBER_REBALANCE,
        ExpiryKind.MEMBER_JOIN,
        ExpiryKind.MEMBER_SYNC,
    }
)


class MemberKey(NamedTuple):
    """Whose deadlines."""

    group_id: str
    member_id: str


class MemberDeadlines:
    """The deadlines of all members of consumer groups, in a queue that others use too."""

    def __init__(self, queue: DeadlineQueue[Expiry]) -> None:
        self._queue = queue
        self._sessions: dict[MemberKey, Deadline[Expiry]] = {}
        # What members were asked to do; few have any of these at a time.
        self._others: dict[MemberKey, dict[ExpiryKind, Deadline[Expiry]]] = {}
        self._rebalance_epochs: dict[MemberKey, int] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    # -- sessions ----------------------------------------------------------------------------------

    def extend_session(self, key: MemberKey, at_ms: int) -> None:
        """The member is alive, and may be silent until then (timer clock)."""
        deadline = self._sessions.get(key)
        if deadline is None:
            expiry = Expiry(ExpiryKind.MEMBER_SESSION, *key)
            deadline = self._sessions[key] = Deadline(expiry)
        self._queue.schedule(deadline, at_ms)

    # -- what a member was asked to do -------------------------------------------------------------

    def schedule_rebalance(self, key: MemberKey, at_ms: int, epoch: int) -> None:
        """The member, now at `epoch`, shall have given up partitions by then."""
        self._rebalance_epochs[key] = epoch
        self.schedule(key, ExpiryKind.MEMBER_REBALANCE, at_ms)

    def rebalance_epoch(self, key: MemberKey) -> int | None:
        """The epoch at which the member was asked to give up partitions last."""
        return self._rebalance_epochs.get(key)

    def schedule(self, key: MemberKey, kind: ExpiryKind, at_ms: int) -> None:
        """The member shall have done it by then."""
        others = self._others.setdefault(key, {})
        deadline = others.get(kind)
        if deadline is None:
            deadline = others[kind] = Deadline(Expiry(kind, *key))
        self._queue.schedule(deadline, at_ms)

    def schedule_if_absent(self, key: MemberKey, kind: ExpiryKind, at_ms: int) -> None:
        """The same, unless it has been asked already."""
        if kind not in self._others.get(key, {}):
            self.schedule(key, kind, at_ms)

    def cancel(self, key: MemberKey, kind: ExpiryKind) -> None:
        """The member has done it."""
        others = self._others.get(key)
        if others is None:
            return
        deadline = others.pop(kind, None)
        if deadline is not None:
            self._queue.cancel(deadline)
        if not others:
            del self._others[key]

    def again(self, expiry: Expiry, at_ms: int) -> None:
        """What fell due could not be carried out: once more then."""
        key = MemberKey(expiry.group_id, expiry.member_id)
        if expiry.kind is ExpiryKind.MEMBER_SESSION:
            self.extend_session(key, at_ms)
        else:
            self.schedule(key, expiry.kind, at_ms)

    # -- ends --------------------------------------------------------------------------------------

    def fell_due(self, expiry: Expiry) -> None:
        """One has ended; it is scheduled no more."""
        key = MemberKey(expiry.group_id, expiry.member_id)
        if expiry.kind is ExpiryKind.MEMBER_SESSION:
            self._sessions.pop(key, None)
        else:
            self.cancel(key, expiry.kind)

    def forget(self, key: MemberKey) -> None:
        """The member is gone."""
        session = self._sessions.pop(key, None)
        if session is not None:
            self._queue.cancel(session)
        for deadline in self._others.pop(key, {}).values():
            self._queue.cancel(deadline)
        self._rebalance_epochs.pop(key, None)
