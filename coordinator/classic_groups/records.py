"""A classic group's record: the end of a rebalance, made from the group and read back into it.

One record holds the whole generation: the elected protocol, the leader, and of each member what it
said under that protocol and what it was given. Kafka: GroupCoordinatorRecordHelpers, ClassicGroup.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ...protocol.records.consumer_offsets import (
    GroupMemberMetadata,
    GroupMetadataKey,
    GroupMetadataValue,
)
from ..outcome import JournalRecord
from .member import ClassicMember, metadata_of, session_deadline

if TYPE_CHECKING:
    from .group import ClassicGroup

GROUP_METADATA_VERSION = 3


def group_record(group_id: str, value: GroupMetadataValue) -> JournalRecord:
    """A value as the record of a group."""
    return JournalRecord(value, GROUP_METADATA_VERSION, GroupMetadataKey(group=group_id))


def generation_value(group: "ClassicGroup", assignments: Mapping[str, bytes]) -> GroupMetadataValue:
    """The generation that has joined, with what each member is to do."""
    members = [
        _entry(member, group.protocol_name, assignments.get(member.member_id, b""))
        for member in group.members.values()
    ]
    return _value(group, members, group.leader_id)


def replaced_value(
    group: "ClassicGroup", old_id: str, successor: ClassicMember
) -> GroupMetadataValue:
    """The generation with a static member under a new id, doing what it did as the old one."""
    members = (
        successor if member.member_id == old_id else member for member in group.members.values()
    )
    return _value(
        group,
        [_entry(member, group.protocol_name, member.assignment) for member in members],
        successor.member_id if group.is_leader(old_id) else group.leader_id,
    )


def empty_value(group: "ClassicGroup", now_ms: int) -> GroupMetadataValue:
    """The next generation, which nobody has joined."""
    return GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation_id + 1,
        protocol=None,
        leader=None,
        current_state_timestamp=now_ms,
        members=[],
    )


def _value(
    group: "ClassicGroup", members: list[GroupMemberMetadata], leader_id: str | None
) -> GroupMetadataValue:
    return GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation_id,
        protocol=group.protocol_name,
        leader=leader_id,
        current_state_timestamp=-1 if group.state_since_ms is None else group.state_since_ms,
        members=members,
    )


def _entry(
    member: ClassicMember, protocol_name: str | None, assignment: bytes
) -> GroupMemberMetadata:
    return GroupMemberMetadata(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout=member.rebalance_timeout_ms,
        session_timeout=member.session_timeout_ms,
        subscription=metadata_of(member.protocols, protocol_name),
        assignment=assignment,
    )


def restored(
    group_id: str,
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
        session=session_deadline(group_id, entry.member_id),
        assignment=entry.assignment,
    )
    if known is not None:
        if member.protocols[0] in known.protocols:
            member.protocols = known.protocols
        if known.member_id == member.member_id:
            member.session, member.is_new = known.session, known.is_new
            member.join_reply, member.sync_reply = known.join_reply, known.sync_reply
        else:
            known.session.at_ms = None
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
