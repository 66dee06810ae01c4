"""Serves members of a consumer group that use the classic protocol.

To such a member the group looks like a classic group with another leader. Its generation is its
member epoch, and it rebalances independently of the other members:

    JoinGroup      sends its subscription and owned partitions; the member takes one step towards
                   its target, and is answered at once (classic_joins.py)
    SyncGroup      returns the partitions assigned now: those of the target that others have
                   given up
    Heartbeat      returns REBALANCE_IN_PROGRESS if the member must join again: it has a new
                   target, partitions to give up, or partitions that have become free; or topics
                   have changed, and no member of the consumer protocol is left to detect it
    LeaveGroup     removes the member; the group may become a classic group (downgrade.py)

After REBALANCE_IN_PROGRESS a member has its rebalance timeout to join, and after the join the same
time to sync. Then it is removed.

Kafka: the classicGroup…ToConsumerGroup methods of GroupMetadataManager.
"""

from collections.abc import Sequence

from odradek.coordinator.classic_groups.sync import check_protocol
from odradek.coordinator.modern_groups.deadlines import MemberKey
from odradek.coordinator.modern_groups.draft import Decision
from odradek.coordinator.modern_groups.member import MemberState
from odradek.coordinator.modern_groups.topics_view import ClusterTopics
from odradek.coordinator.outcome import Outcome
from odradek.coordinator.timers import Now
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.heartbeat import HeartbeatRequest
from odradek.protocol.messages.leave_group import (
    LeaveGroupMemberIdentity,
    LeaveGroupMemberResponse,
    LeaveGroupResponse,
)
from odradek.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from odradek.protocol.records.consumer_group import ClassicMemberMetadata
from odradek.protocol.records.consumer_protocol import PROTOCOL_TYPE

from .client_protocol import assignment_bytes
from .downgrade import protocols_of
from .group import ConsumerGroup
from .heartbeat import Steps
from .member import ConsumerMember
from .membership import requesting_member


class ClassicMembers:
    """Serves SyncGroup, Heartbeat and LeaveGroup of all consumer groups."""

    def __init__(self, steps: Steps, topics: ClusterTopics) -> None:
        self._steps = steps
        self._topics = topics

    # -- sync and heartbeat ------------------------------------------------------------------------

    def sync(self, group: ConsumerGroup, request: SyncGroupRequest, now: Now) -> SyncGroupResponse:
        """Serve a SyncGroup.

        Raises ApiError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION,
        INCONSISTENT_GROUP_PROTOCOL, REBALANCE_IN_PROGRESS.
        """
        member, classic = _find_member(
            group, request.member_id, request.group_instance_id, request.generation_id
        )
        name, metadata = protocols_of(member)[0]
        check_protocol(request.protocol_type, PROTOCOL_TYPE)
        check_protocol(request.protocol_name, name)
        key = MemberKey(group.group_id, member.member_id)
        # A member that must give up partitions has joined for that; it finishes this step first.
        revokes = member.state is MemberState.UNREVOKED_PARTITIONS
        if group.assignment_epoch > member.member_epoch and not revokes:
            self._schedule_join_deadline(key, member, now)
            raise ApiError(
                ErrorCode.REBALANCE_IN_PROGRESS, f"there is a new target for {member.member_id}"
            )
        assignment = assignment_bytes(member.assigned, metadata, self._topics)
        self._steps.deadlines.syncs.cancel(key)
        self._steps.deadlines.sessions.schedule(key, now.timer_ms + classic.session_timeout_ms)
        return SyncGroupResponse(
            protocol_type=request.protocol_type,
            protocol_name=request.protocol_name,
            assignment=assignment,
        )

    def heartbeat(self, group: ConsumerGroup, request: HeartbeatRequest, now: Now) -> ErrorCode:
        """Extend the member's session; return REBALANCE_IN_PROGRESS if it must join again.

        Raises ApiError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION.
        """
        member, classic = _find_member(
            group, request.member_id, request.group_instance_id, request.generation_id
        )
        key = MemberKey(group.group_id, member.member_id)
        self._steps.deadlines.sessions.schedule(key, now.timer_ms + classic.session_timeout_ms)
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
        if self._steps.rebalance.has_seen_topics(group) or not _has_only_classic_members(group):
            return False
        if self._topics.group_hash(group.subscriptions.topics) != group.metadata_hash:
            return True
        group.topics_seen_offset = self._topics.last_change_offset
        return False

    def _schedule_join_deadline(self, key: MemberKey, member: ConsumerMember, now: Now) -> None:
        at_ms = now.timer_ms + member.rebalance_timeout_ms
        self._steps.deadlines.joins.schedule_if_absent(key, at_ms)

    # -- leave -------------------------------------------------------------------------------------

    def leave(
        self, group: ConsumerGroup, leaving: Sequence[LeaveGroupMemberIdentity], now: Now
    ) -> Outcome[Decision[LeaveGroupResponse]]:
        """Remove members of either protocol; the response has one entry for each."""
        gone: dict[str, ConsumerMember] = {}
        answers = []
        for identity in leaving:
            error = ErrorCode.NONE
            try:
                member = _leaving(group, identity)
                gone[member.member_id] = member
            except ApiError as refusal:
                error = refusal.code
            answers.append(
                LeaveGroupMemberResponse(
                    member_id=identity.member_id,
                    group_instance_id=identity.group_instance_id,
                    error_code=error,
                )
            )
        members = list(gone.values())
        answer = LeaveGroupResponse(members=answers)
        return self._steps.departures.remove(group, members, now, answer)


def _find_member(
    group: ConsumerGroup, member_id: str, instance_id: str | None, generation_id: int
) -> tuple[ConsumerMember, ClassicMemberMetadata]:
    """Return the classic member that sent a request.

    Raises ApiError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION.
    """
    member = requesting_member(group, member_id, instance_id)
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

    If all members are classic (the group may not be downgraded), a join must also update the
    target. In Kafka the partitions of the last consumer-protocol member then stay unassigned.
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
    """Whether all members are classic. The group was not downgraded because it may not be."""
    return group.classic_member_count == len(group.members)


def _leaving(group: ConsumerGroup, identity: LeaveGroupMemberIdentity) -> ConsumerMember:
    """Find a member by member id, or by instance id alone, as administrators do (KIP-345).

    Raises ApiError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID.
    """
    member_id, instance_id = identity.member_id, identity.group_instance_id
    if instance_id is not None and not member_id:
        member_id = group.static_member_ids.get(instance_id, "")
    return requesting_member(group, member_id, instance_id)
