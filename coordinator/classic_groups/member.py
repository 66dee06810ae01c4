"""A member of a classic group, and the words in which its group speaks with the outside.

A request that must wait (JoinGroup until all have joined, SyncGroup until the leader has assigned)
leaves a Reply with the member: a function that takes the response, called once, now or later. The
group never learns what it is; the async face parks a future behind it, a test appends to a list.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from odradek.coordinator.outcome import Outcome
from odradek.coordinator.timers import Deadline
from odradek.protocol.messages.describe_groups import DescribeGroupsMember
from odradek.protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from odradek.protocol.messages.sync_group import SyncGroupResponse
from odradek.protocol.records.consumer_offsets import GroupMemberMetadata, GroupMetadataValue

JoinReply = Callable[[JoinGroupResponse], None]
SyncReply = Callable[[SyncGroupResponse], None]

Protocols = tuple[tuple[str, bytes], ...]


def names_of(protocols: Protocols) -> tuple[str, ...]:
    """Each protocol once, in the order of preference."""
    return tuple(dict(protocols))


def metadata_of(protocols: Protocols, protocol_name: str | None) -> bytes:
    """What is said under a protocol that is among them; the first entry counts."""
    for name, data in protocols:
        if name == protocol_name:
            return data
    raise ValueError(f"there is no protocol {protocol_name!r}")


NOTHING_TO_WRITE: Outcome[None] = Outcome(reply=None)


class Caller(NamedTuple):
    """Who sent a request, and in which version of its API."""

    client_id: str
    client_host: str
    api_version: int


@dataclass(slots=True, eq=False, kw_only=True)
class ClassicMember:
    """Who it is, what it can do, what it was given, and what it waits for.

    `protocols` are (name, metadata) in the member's order of preference. Kafka: ClassicGroupMember.
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
    # Set by ClassicDeadlines, with the names of group and member.
    session: Deadline[tuple[str, str]] | None = None
    join_reply: JoinReply | None = field(default=None, repr=False)
    sync_reply: SyncReply | None = field(default=None, repr=False)

    @property
    def is_static(self) -> bool:
        return self.group_instance_id is not None

    @property
    def awaits_join(self) -> bool:
        return self.join_reply is not None

    @property
    def may_stay_silent(self) -> bool:
        """Whether the end of the session is no fault: a parked request is as good as a heartbeat.

        Not for a new member: it may have given up without ever learning its id.
        """
        return not self.is_new and (self.join_reply is not None or self.sync_reply is not None)

    def end_session(self) -> None:
        """The member is gone, or has another id: nobody waits for it to be heard from."""
        if self.session is not None:
            self.session.cancel()

    def answer_sync(self, response: SyncGroupResponse) -> bool:
        """Release the parked sync; False when there is none."""
        reply, self.sync_reply = self.sync_reply, None
        if reply is None:
            return False
        reply(response)
        return True

    # -- as others see it ------------------------------------------------------------------------

    def as_joined(self, protocol_name: str | None) -> JoinGroupResponseMember:
        """What the leader is told."""
        return JoinGroupResponseMember(
            member_id=self.member_id,
            group_instance_id=self.group_instance_id,
            metadata=metadata_of(self.protocols, protocol_name),
        )

    def as_described(self, metadata: bytes) -> DescribeGroupsMember:
        """What an admin client is told."""
        return DescribeGroupsMember(
            member_id=self.member_id,
            group_instance_id=self.group_instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            member_metadata=metadata,
            member_assignment=self.assignment,
        )

    def renamed(self, new_id: str) -> "ClassicMember":
        """The same member under another id, waiting for nothing, without a session."""
        return ClassicMember(
            member_id=new_id,
            group_instance_id=self.group_instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            session_timeout_ms=self.session_timeout_ms,
            protocol_type=self.protocol_type,
            protocols=self.protocols,
            assignment=self.assignment,
        )


def restored(
    value: GroupMetadataValue,
    entry: GroupMemberMetadata,
    known: ClassicMember | None,
) -> ClassicMember:
    """The member that a record names, with what is soft about it where we know it.

    Only the elected protocol is written. In life the member has it among all of its own, and keeps
    them; on the way through a log it may come from a generation that had elected another one.
    """
    if known is not None and _is_said_by(known, value, entry):
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
            known.end_session()
    return member


def _is_said_by(
    member: ClassicMember, value: GroupMetadataValue, entry: GroupMemberMetadata
) -> bool:
    """Whether a record says of a member what it says itself, as in life every record does."""
    return (
        member.member_id == entry.member_id
        and member.group_instance_id == entry.group_instance_id
        and member.client_id == entry.client_id
        and member.client_host == entry.client_host
        and member.rebalance_timeout_ms == entry.rebalance_timeout
        and member.session_timeout_ms == entry.session_timeout
        and member.protocol_type == value.protocol_type
        and (value.protocol or "", entry.subscription) in member.protocols
    )
