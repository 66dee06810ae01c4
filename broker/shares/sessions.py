"""Share sessions: the partitions that a member fetches, and what its next request must be.

A member opens a session with epoch 0; each request has the next epoch, and -1 ends it. A request
names only the partitions that are new, and those to forget. The session belongs to the connection
on which it was opened: when that closes, the session ends, and the records of the member become
available again.

Kafka: ShareSessionCache, ShareSession, SharePartitionManager.newContext.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from odradek.broker.fetching.fetch_sessions import FINAL_EPOCH, INITIAL_EPOCH, next_epoch
from odradek.broker.security.session import Session
from odradek.protocol.errors import ApiError, ErrorCode

# A topic id and a partition.
Place = tuple[bytes, int]


class SessionKey(NamedTuple):
    """A member of a group."""

    group_id: str
    member_id: str


@dataclass(slots=True, eq=False)
class ShareSession:
    """One session.

    `partitions` says for each whether the next response must have an entry for it, also without
    records: if it was added since the last one, or had an error there.
    """

    key: SessionKey
    partitions: dict[Place, bool]
    connection: Session
    epoch: int = 1


class ShareSessions:
    """All sessions of the broker, at most `max_sessions`."""

    def __init__(self, max_sessions: int) -> None:
        self._max_sessions = max_sessions
        self._sessions: dict[SessionKey, ShareSession] = {}
        self._of_connection: dict[Session, set[SessionKey]] = {}  # of each that has opened one

    def __len__(self) -> int:
        return len(self._sessions)

    def find(self, key: SessionKey) -> ShareSession:
        """Return a session. Raises ApiError SHARE_SESSION_NOT_FOUND."""
        session = self._sessions.get(key)
        if session is None:
            raise ApiError(
                ErrorCode.SHARE_SESSION_NOT_FOUND,
                f"member {key.member_id} of group {key.group_id} has no session",
            )
        return session

    def size_of(self, group_id: str | None, member_id: str | None) -> int:
        """How many partitions the session of a member has; 0 if there is none."""
        session = self._sessions.get(SessionKey(group_id or "", member_id or ""))
        return 0 if session is None else len(session.partitions)

    def groups(self) -> set[str]:
        """The groups of which a member has a session."""
        return {key.group_id for key in self._sessions}

    def open(self, key: SessionKey, places: Iterable[Place], connection: Session) -> None:
        """Open a session, in place of the member's last one.

        Raises ApiError SHARE_SESSION_LIMIT_REACHED.
        """
        self.remove(key)
        if len(self._sessions) >= self._max_sessions:
            raise ApiError(
                ErrorCode.SHARE_SESSION_LIMIT_REACHED, f"there are {len(self._sessions)} sessions"
            )
        # The response to the request that opens a session has all of its partitions.
        session = ShareSession(key, dict.fromkeys(places, False), connection)
        self._sessions[key] = session
        self._of_connection.setdefault(connection, set()).add(key)

    def check_epoch(self, key: SessionKey, epoch: int) -> ShareSession:
        """Check the epoch of a request and return the session. Raises as `advance`."""
        session = self.find(key)
        if session.epoch != epoch:
            raise ApiError(
                ErrorCode.INVALID_SHARE_SESSION_EPOCH,
                f"the request has epoch {epoch}, the session expects {session.epoch}",
            )
        return session

    def advance(self, key: SessionKey, epoch: int) -> ShareSession:
        """Check the epoch of a request and return the session, which expects the next one.

        Raises ApiError: SHARE_SESSION_NOT_FOUND, INVALID_SHARE_SESSION_EPOCH.
        """
        session = self.check_epoch(key, epoch)
        session.epoch = next_epoch(epoch)
        return session

    def check_acknowledgement(self, key: SessionKey, epoch: int) -> None:
        """Check the epoch of a ShareAcknowledge. Raises as `advance`."""
        if epoch == INITIAL_EPOCH:
            raise ApiError(
                ErrorCode.INVALID_SHARE_SESSION_EPOCH, "nothing is acknowledged at epoch 0"
            )
        if epoch == FINAL_EPOCH:
            self.find(key)
        else:
            self.advance(key, epoch)

    def remove(self, key: SessionKey) -> None:
        """Remove a session, if there is one."""
        session = self._sessions.pop(key, None)
        if session is not None:
            self._of_connection[session.connection].discard(key)

    def has_opened(self, connection: Session) -> bool:
        """Whether a session was opened on a connection. It may have ended since."""
        return connection in self._of_connection

    def remove_connection(self, connection: Session) -> list[ShareSession]:
        """Remove the sessions of a connection that has closed, and return them."""
        keys = self._of_connection.pop(connection, ())
        return [self._sessions.pop(key) for key in keys]
