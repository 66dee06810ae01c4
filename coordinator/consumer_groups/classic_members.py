"""Serves members of a consumer group that use the classic protocol.

In a consumer group the coordinator computes a target assignment: which partitions each member is to
own. Every member moves from the partitions that it owns to its target in steps, independently of
the other members. A classic member sees each of its steps as a rebalance of a classic group with
another leader. The generation that it is told is its member epoch.

    JoinGroup      brings the member's subscription and the partitions that it owns. The member
                   takes a step towards its target and is answered at once (classic_joins.py)
    SyncGroup      returns the partitions that the member owns after the step: those of its target
                   that no other member still owns
    Heartbeat      returns REBALANCE_IN_PROGRESS if the member must join again, for its next step:
                   there is a newer target, it must give up partitions, or partitions of its target
                   have become free. Also if topics have changed, and the group has no member of the
                   consumer protocol to detect it
    LeaveGroup     removes members; the group may become a classic group (downgrade.py)

A member that got REBALANCE_IN_PROGRESS must join within its rebalance timeout. After the join it
must sync within the same time. Otherwise it is removed.

Kafka: the classicGroup…ToConsumerGroup methods of GroupMetadataManager.
"""

from collections.abc import Sequence
from functools import partial

from odradek.coordinator.classic_groups.sync import check_protocol, leave_result
from odradek.coordinator.modern_groups.draft import DraftResult
from odradek.coordinator.modern_groups.member import MemberKey, MemberState
from odradek.coordinator.runtime.outcome import Outcome
from odradek.coordinator.runtime.steps import Step, stepping
from odradek.coordinator.runtime.timers import Now
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.heartbeat import HeartbeatRequest
from odradek.protocol.messages.leave_group import LeaveGroupMemberIdentity, LeaveGroupResponse
from odradek.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from odradek.protocol.records.consumer_group import ClassicMemberMetadata
from odradek.protocol.records.consumer_protocol import PROTOCOL_TYPE

from .client_protocol import assignment_bytes
from .group import ConsumerGroup
from .heartbeat import GroupServices
from .member import ConsumerMember


class ClassicMembers:
    """Serves SyncGroup, Heartbeat and LeaveGroup of all consumer groups."""

    def __init__(self, services: GroupServices) -> None:
        self._services = services

    # -- sync and heartbeat ------------------------------------------------------------------------

    def sync(
        self, group: ConsumerGroup, request: SyncGroupRequest, now: Now, step: Step
    ) -> Outcome[DraftResult[SyncGroupResponse]]:
        """Decide about a SyncGroup. It writes no records.

        The member's deadlines change in the outcome's `then`, because this decision may be made
        again: a long assignment is encoded in steps, and the group may change between them.
        Raises ApiError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION,
        INCONSISTENT_GROUP_PROTOCOL.
        """
        member, classic = _find_member(group, request)
        # The protocol that the response to the member's JoinGroup named.
        preferred = classic.supported_protocols[0]
        check_protocol(request.protocol_type, PROTOCOL_TYPE)
        check_protocol(request.protocol_name, preferred.name)
        key = group.key_of(member.member_id)
        has_newer_target = group.assignment_epoch > member.member_epoch
        # A member that must revoke partitions is not sent back to JoinGroup. It needs this response
        # to know which partitions it keeps. After it has revoked the others, it joins again.
        must_revoke = member.state is MemberState.UNREVOKED_PARTITIONS
        if has_newer_target and not must_revoke:
            refusal = SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
            return Outcome(
                reply=DraftResult(group.group_id, refusal),
                then=(partial(self._schedule_join_deadline, key, member, now),),
            )
        topics = self._services.topics
        response = SyncGroupResponse(
            protocol_type=request.protocol_type,
            protocol_name=request.protocol_name,
            assignment=assignment_bytes(member.assigned, preferred.metadata, topics, step),
        )
        return Outcome(
            reply=DraftResult(group.group_id, response),
            then=(
                partial(self._services.deadlines.syncs.cancel, key),
                partial(self._extend_session, key, classic, now),
            ),
        )

    def heartbeat(self, group: ConsumerGroup, request: HeartbeatRequest, now: Now) -> ErrorCode:
        """Extend the member's session; return REBALANCE_IN_PROGRESS if it must join again.

        Raises ApiError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION.
        """
        member, classic = _find_member(group, request)
        key = group.key_of(member.member_id)
        self._extend_session(key, classic, now)
        if not _needs_rejoin(group, member) and not self._topics_changed(group):
            return ErrorCode.NONE
        self._schedule_join_deadline(key, member, now)
        return ErrorCode.REBALANCE_IN_PROGRESS

    def _topics_changed(self, group: ConsumerGroup) -> bool:
        """Whether the topics of a group with only classic members have changed.

        In other groups a heartbeat of the consumer protocol detects the change. In Kafka a group
        with only classic members waits until a member joins; until then no member reads the new
        partitions.
        """
        topics = self._services.topics
        if self._services.rebalance.has_checked_topics(group):
            return False
        if not _has_only_classic_members(group):
            return False
        if topics.group_hash(group.subscriptions.topics) != group.metadata_hash:
            return True
        group.topics_checked_offset = topics.last_change_offset
        return False

    def _extend_session(self, key: MemberKey, classic: ClassicMemberMetadata, now: Now) -> None:
        at_ms = now.timer_ms + classic.session_timeout_ms
        self._services.deadlines.sessions.schedule(key, at_ms)

    def _schedule_join_deadline(self, key: MemberKey, member: ConsumerMember, now: Now) -> None:
        at_ms = now.timer_ms + member.rebalance_timeout_ms
        self._services.deadlines.joins.schedule_if_absent(key, at_ms)

    # -- leave -------------------------------------------------------------------------------------

    def leave(
        self,
        group: ConsumerGroup,
        leaving: Sequence[LeaveGroupMemberIdentity],
        now: Now,
        step: Step,
    ) -> Outcome[DraftResult[LeaveGroupResponse]]:
        """Remove members of either protocol; the response has one entry for each identity."""
        members: dict[str, ConsumerMember] = {}
        answers = []
        for identity in stepping(leaving, step):
            try:
                member = _leaving_member(group, identity)
            except ApiError as refusal:
                answers.append(leave_result(identity, refusal.code))
            else:
                members[member.member_id] = member
                answers.append(leave_result(identity))
        response = LeaveGroupResponse(members=answers)
        return self._services.departures.remove(group, list(members.values()), now, response, step)


def _find_member(
    group: ConsumerGroup, request: SyncGroupRequest | HeartbeatRequest
) -> tuple[ConsumerMember, ClassicMemberMetadata]:
    """Return the classic member that sent a request.

    Raises ApiError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION.
    """
    member_id, generation_id = request.member_id, request.generation_id
    member = group.requesting_member(member_id, request.group_instance_id)
    if member.classic is None or not member.classic.supported_protocols:
        raise ApiError(
            ErrorCode.UNKNOWN_MEMBER_ID, f"member {member_id} uses the consumer protocol"
        )
    if member.member_epoch != generation_id:
        raise ApiError(
            ErrorCode.ILLEGAL_GENERATION,
            f"member {member_id} is at epoch {member.member_epoch}, not {generation_id}",
        )
    return member, member.classic


def _needs_rejoin(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Whether a join would move the member towards its target.

    In a group with only classic members a join must also update the targets when they are out of
    date. In Kafka it does not: after the last member of the consumer protocol has left, its
    partitions stay unassigned.
    """
    if member.member_epoch < group.assignment_epoch:
        return True
    if _has_only_classic_members(group) and group.assignment_epoch < group.epoch:
        return True
    match member.state:
        case MemberState.UNREVOKED_PARTITIONS:
            return True
        case MemberState.UNRELEASED_PARTITIONS:
            return not group.waits_for_release(member)
        case _:
            return False


def _has_only_classic_members(group: ConsumerGroup) -> bool:
    """Whether all members use the classic protocol.

    Such a group is usually converted to a classic group when the last other member leaves. It
    remains a consumer group if a setting or a member's protocols prevent that (downgrade.py).
    """
    return group.classic_member_count == len(group.members)


def _leaving_member(group: ConsumerGroup, identity: LeaveGroupMemberIdentity) -> ConsumerMember:
    """Find a member by member id, or by instance id alone, as administrators do (KIP-345).

    Raises ApiError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID.
    """
    member_id, instance_id = identity.member_id, identity.group_instance_id
    if instance_id is not None and not member_id:
        member_id = group.static_member_ids.get(instance_id, "")
    return group.requesting_member(member_id, instance_id)
