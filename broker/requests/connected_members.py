"""Removes the members of groups whose connection has closed.

With `odradek.group.expire.on.disconnect`, a client that was killed does not hold up its group until
its session expires, as it does in Kafka. It is meant for tests: a member that only loses its
connection has to join again. A static member stays: it may come back under its instance id.

The requests of members are watched by a wrapper around their handlers, so a broker without the
setting has no cost.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from odradek.broker.security.session import Session
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from odradek.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from odradek.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest

from .context import RequestContext
from .route import Handler

# The requests that name a member. Its client sends all of them on one connection.
MEMBER_APIS = frozenset(
    {
        ApiKey.JOIN_GROUP,
        ApiKey.SYNC_GROUP,
        ApiKey.HEARTBEAT,
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        ApiKey.SHARE_GROUP_HEARTBEAT,
        ApiKey.STREAMS_GROUP_HEARTBEAT,
    }
)
MODERN_REQUESTS = (ConsumerGroupHeartbeatRequest, StreamsGroupHeartbeatRequest)
# Group id and member id.
Member = tuple[str, str]


class ConnectedMembers:
    """The connection of the last request of each dynamic member."""

    def __init__(self, remove: Callable[[str, list[str]], object]):
        """`remove` members (their ids) from a group (its id)."""
        self._remove = remove
        self._sessions: dict[Member, Session] = {}
        self._members: dict[Session, set[Member]] = {}

    def around(self, handlers: Mapping[ApiKey, Handler]) -> dict[ApiKey, Handler]:
        """The handlers; those of MEMBER_APIS note the member."""
        return {
            key: self._noting(handle) if key in MEMBER_APIS else handle
            for key, handle in handlers.items()
        }

    def _noting(self, handle: Handler) -> Handler:
        @functools.wraps(handle)
        def handle_and_note(context: RequestContext, request: Any) -> Any:
            if request.member_id and _instance_id(request) is None:
                self._note((request.group_id, request.member_id), context.session)
            return handle(context, request)

        return handle_and_note

    def _note(self, member: Member, session: Session) -> None:
        """Note the connection of a member, which may have been on another one."""
        before = self._sessions.get(member)
        if before is session:
            return
        if before is not None:
            self._members[before].discard(member)
        self._sessions[member] = session
        self._members.setdefault(session, set()).add(member)

    def disconnected(self, session: Session) -> None:
        """Remove the members of a connection that has closed."""
        for member in self._members.pop(session, ()):
            del self._sessions[member]
            group_id, member_id = member
            self._remove(group_id, [member_id])


def _instance_id(request: Any) -> str | None:
    if isinstance(request, ShareGroupHeartbeatRequest):
        return None  # share groups have no static members
    is_modern = isinstance(request, MODERN_REQUESTS)
    found: str | None = request.instance_id if is_modern else request.group_instance_id
    return found
