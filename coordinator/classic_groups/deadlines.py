"""The deadlines of classic groups: sessions of members, and phases of a rebalance.

    session  a member, or a pending one, has sent no request for its session timeout
    joins    the time for members to join has ended
    syncs    the time for members to sync has ended

A deadline is a field of the member or group. It is created when it is first scheduled, so members
and groups that were replayed from a log have none. It is cancelled when the member or group is
removed.
"""

from collections.abc import Callable
from typing import NamedTuple

from odradek.coordinator.runtime.timers import Deadline, DeadlineQueue, Now

from .group import ClassicGroup
from .member import ClassicMember


class Expiries(NamedTuple):
    """The functions to call: `session` gets the group and a member id, the others the group."""

    session: Callable[[tuple[ClassicGroup, str], Now], None]
    joins: Callable[[ClassicGroup, Now], None]
    syncs: Callable[[ClassicGroup, Now], None]


class ClassicDeadlines:
    """The deadlines of all classic groups, in a queue shared with consumer groups."""

    def __init__(self, queue: DeadlineQueue, expiries: Expiries) -> None:
        self._queue = queue
        self._expiries = expiries

    def extend_session(self, group: ClassicGroup, member: ClassicMember, now: Now) -> None:
        """Restart the member's session timeout."""
        at_ms = now.timer_ms + member.session_timeout_ms
        if member.session is None:
            self.schedule_session(group, member, at_ms)
        else:  # each heartbeat comes here
            self._queue.schedule(member.session, at_ms)

    def schedule_session(self, group: ClassicGroup, member: ClassicMember, at_ms: int) -> None:
        """Let the member's session end at `at_ms` (timer clock)."""
        session = member.session
        if session is None:
            session = member.session = self._new_session(group, member.member_id)
        self._queue.schedule(session, at_ms)

    def add_pending_join(self, group: ClassicGroup, member_id: str, at_ms: int) -> None:
        """Add a pending member: it got this id in a response, and must join with it by `at_ms`."""
        pending = group.pending_joins[member_id] = self._new_session(group, member_id)
        self._queue.schedule(pending, at_ms)

    def await_joins(self, group: ClassicGroup, at_ms: int) -> None:
        """Wait until `at_ms` for members to join."""
        if group.join_deadline is None:
            group.join_deadline = Deadline(self._expiries.joins, group)
        self._queue.schedule(group.join_deadline, at_ms)

    def await_syncs(self, group: ClassicGroup, at_ms: int) -> None:
        """Wait until `at_ms` for the members to sync."""
        if group.sync_deadline is None:
            group.sync_deadline = Deadline(self._expiries.syncs, group)
        self._queue.schedule(group.sync_deadline, at_ms)

    def _new_session(
        self, group: ClassicGroup, member_id: str
    ) -> Deadline[tuple[ClassicGroup, str]]:
        return Deadline(self._expiries.session, (group, member_id))
