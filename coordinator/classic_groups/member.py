"""A member of a classic group, and the functions that answer its parked requests.

A request that must wait (JoinGroup until all have joined, SyncGroup until the leader has sent the
assignment) leaves a reply with the member: a function that takes the response and is called once,
now or later. The group coordinator passes a function that resolves a future, a test one that
appends to a list.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from odradek.coordinator.runtime.timers import Deadline
from odradek.protocol.messages.describe_groups import DescribeGroupsMember
from odradek.protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from odradek.protocol.messages.sync_group import SyncGroupResponse
from odradek.protocol.records.consumer_offsets import GroupMemberMetadata, GroupMetadataValue

from .protocols import Protocols, metadata_of

JoinReply = Callable[[JoinGroupResponse], None]
SyncReply = Callable[[SyncGroupResponse], None]


@dataclass(slots=True, eq=False, kw_only=True)
class ClassicMember:
    """A member: its identity, protocols, assignment, deadline and parked replies.

    `protocols` are (name, metadata) in the member's order of preference. `is_new`: it has not taken
    part in a generation yet. Kafka: ClassicGroupMember.
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    assignment: bytes = b""
    is_new: bool = False
    # Set by ClassicDeadlines; its subject is (group, member id).
    session: Deadline[Any] | None = None
    join_reply: JoinReply | None = field(default=None, repr=False)
    sync_reply: SyncReply | None = field(default=None, repr=False)

    @property
    def is_static(self) -> bool:
        return self.group_instance_id is not None

    @property
    def awaits_join(self) -> bool:
        return self.join_reply is not None

    @property
    def survives_session_timeout(self) -> bool:
        """Whether the member stays when its session ends: it has a parked request.

        A new member does not: its client may have disconnected without learning the member id.
        """
        return not self.is_new and (self.join_reply is not None or self.sync_reply is not None)

    def cancel_session(self) -> None:
        """Cancel the session's deadline: the member was removed or has another id."""
        if self.session is not None:
            self.session.cancel()

    def take_sync(self) -> SyncReply | None:
        """Return the parked sync, which the caller answers; None if there is none."""
        reply, self.sync_reply = self.sync_reply, None
        return reply

    def answer_sync(self, response: SyncGroupResponse) -> None:
        """Answer the parked sync, if there is one."""
        reply = self.take_sync()
        if reply is not None:
            reply(response)

    # -- in records and responses ----------------------------------------------------------------

    def as_stored(self, subscription: bytes, assignment: bytes) -> GroupMemberMetadata:
        """Return the member's entry in the record of a generation.

        `subscription` is its metadata for the elected protocol.
        """
        return GroupMemberMetadata(
            member_id=self.member_id,
            group_instance_id=self.group_instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            rebalance_timeout=self.rebalance_timeout_ms,
            session_timeout=self.session_timeout_ms,
            subscription=subscription,
            assignment=assignment,
        )

    def as_joined(self, protocol_name: str | None) -> JoinGroupResponseMember:
        """Return the member's entry in the leader's JoinGroup response."""
        return JoinGroupResponseMember(
            member_id=self.member_id,
            group_instance_id=self.group_instance_id,
            metadata=metadata_of(self.protocols, protocol_name),
        )

    def as_described(self, metadata: bytes) -> DescribeGroupsMember:
        """Return the member's entry in a DescribeGroups response."""
        return DescribeGroupsMember(
            member_id=self.member_id,
            group_instance_id=self.group_instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            member_metadata=metadata,
            member_assignment=self.assignment,
        )

    def renamed(self, new_id: str) -> "ClassicMember":
        """Return a copy with another member id, without parked replies and session."""
        return replace(
            self, member_id=new_id, is_new=False, session=None, join_reply=None, sync_reply=None
        )


def restored(
    value: GroupMetadataValue,
    entry: GroupMemberMetadata,
    known: ClassicMember | None,
) -> ClassicMember:
    """Return the member that a record's entry describes; keep the soft state of a known one.

    A record has only the elected protocol. A known member keeps all its protocols if that one is
    among them. While a log is replayed at start, it may not be: the member may come from a
    generation that had elected another protocol.
    """
    if known is not None and _matches_record(known, value, entry):
        known.assignment = entry.assignment
        return known
    timeout_ms = entry.rebalance_timeout
    member = ClassicMember(
        member_id=entry.member_id,
        group_instance_id=entry.group_instance_id,
        client_id=entry.client_id,
        client_host=entry.client_host,
        rebalance_timeout_ms=entry.session_timeout if timeout_ms == -1 else timeout_ms,
        session_timeout_ms=entry.session_timeout,
        protocol_type=value.protocol_type,
        protocols=((value.protocol or "", entry.subscription),),
        assignment=entry.assignment,
    )
    if known is not None:
        if member.protocols[0] in known.protocols:
            member.protocols = known.protocols
        if known.member_id == member.member_id:
            member.session, member.is_new = known.session, known.is_new
            member.join_reply, member.sync_reply = known.join_reply, known.sync_reply
        else:
            known.cancel_session()
    return member


def _matches_record(
    member: ClassicMember, value: GroupMetadataValue, entry: GroupMemberMetadata
) -> bool:
    """Whether the entry equals the member, as it does for records that this broker has written."""
    return (
        member.protocol_type == value.protocol_type
        and (value.protocol or "", entry.subscription) in member.protocols
        and member.as_stored(entry.subscription, entry.assignment) == entry
    )
