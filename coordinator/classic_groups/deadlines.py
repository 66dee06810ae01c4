"""When members of classic groups are out, and when the phases of a rebalance end.

    session  a member, or one that was only promised an id, was not heard from for too long
    joins    the time to join is up
    syncs    the time to sync is up

Members and groups hold their deadlines, which are made here when they are first scheduled: what is
replayed from a log has none. What is removed cancels them.
"""

from collections.abc import Callable
from typing import NamedTuple

from odradek.coordinator.timers import Deadline, DeadlineQueue, Now

from .group import ClassicGroup
from .member import ClassicMember


class Expiries(NamedTuple):
    """What ends: by the names of group and member, and by the group's."""

    session: Callable[[tuple[str, str], Now], None]
    joins: Callable[[str, Now], None]
    syncs: Callable[[str, Now], None]


class ClassicDeadlines:
    """The deadlines of all classic groups, in a queue that others use too."""

    def __init__(self, queue: DeadlineQueue, expiries: Expiries) -> None:
        self._queue = queue
        self._expiries = expiries

    def extend_session(self, group: ClassicGroup, member: ClassicMember, now: Now) -> None:
        """The member is alive: its session timeout starts again."""
        at_ms = now.timer_ms + member.session_timeout_ms
        if member.session is None:
            self.schedule_session(group, member, at_ms)
        else:  # each heartbeat comes here
            self._queue.schedule(member.session, at_ms)

    def schedule_session(self, group: ClassicGroup, member: ClassicMember, at_ms: int) -> None:
        """The member may be silent until then."""
        session = member.session
        if session is None:
            session = member.session = self._new_session(group, member.member_id)
        self._queue.schedule(session, at_ms)

    def promise_id(self, group: ClassicGroup, member_id: str, at_ms: int) -> None:
        """Somebody was promised the id, and is to join with it by then."""
        pending = group.pending_joins[member_id] = self._new_session(group, member_id)
        self._queue.schedule(pending, at_ms)

    def await_joins(self, group: ClassicGroup, at_ms: int) -> None:
        """The group waits until then for members to join."""
        if group.join_deadline is None:
            group.join_deadline = Deadline(self._expiries.joins, group.group_id)
        self._queue.schedule(group.join_deadline, at_ms)

    def await_syncs(self, group: ClassicGroup, at_ms: int) -> None:
        """The group waits until then for its members to sync."""
        if group.sync_deadline is None:
            group.sync_deadline = Deadline(self._expiries.syncs, group.group_id)
        self._queue.schedule(group.sync_deadline, at_ms)

    def _new_session(self, group: ClassicGroup, member_id: str) -> Deadline[tuple[str, str]]:
        return Deadline(self._expiries.session, (group.group_id, member_id))
