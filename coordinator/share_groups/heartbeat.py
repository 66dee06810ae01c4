"""Serves ShareGroupHeartbeat: a member joins, reports its subscription, gets partitions, or leaves.

A heartbeat takes these steps; each may write records:

    the subscription   written if the request changes it
    the group epoch    rises if the subscribed topics have changed, or an initialized partition is
                       not assigned to any member yet
    the targets        computed if the epoch has risen, at most once per assignment interval
    the member         moves to its target at once: partitions are shared, so no other member has to
                       give one up first
    new partitions     subscribed ones without stored state: the caller initializes the state

Kafka: GroupMetadataManager.shareGroupHeartbeat, ShareGroupAssignmentBuilder.
"""

from collections.abc import Collection, Mapping
from functools import partial
from typing import NamedTuple, TypeVar

from msgspec.structs import replace

from odradek.coordinator.any_group.caller import Caller
from odradek.coordinator.any_group.group import Group
from odradek.coordinator.assignors.assignment import NOTHING, Assignment, Assignor
from odradek.coordinator.java.java_hash import utf16_units
from odradek.coordinator.modern_groups.deadlines import MemberDeadlines
from odradek.coordinator.modern_groups.draft import Draft, DraftResult
from odradek.coordinator.modern_groups.heartbeat_fields import check_not_blank, invalid_request
from odradek.coordinator.modern_groups.member import JOINING_EPOCH, LEAVING_EPOCH, MemberState
from odradek.coordinator.modern_groups.target_assignment import (
    NEVER_COMPUTED_MS,
    compute_targets,
    is_due,
    write_targets,
)
from odradek.coordinator.modern_groups.topic_checks import check_topics
from odradek.coordinator.modern_groups.topics_view import ClusterTopics
from odradek.coordinator.runtime.outcome import Outcome
from odradek.coordinator.runtime.steps import Step, no_step, stepping_if_many
from odradek.coordinator.runtime.timers import Now
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatAssignment,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    ShareGroupHeartbeatTopicPartitions,
)

from .group import ShareGroup
from .group_configs import ShareGroupConfigs
from .member import ShareMember
from .records import (
    current_assignment_record,
    epoch_record,
    member_tombstones,
    state_partitions_record,
    subscription_record,
    target_epoch_record,
    target_record,
)
from .state_partitions import TopicOfState, Topics

R = TypeVar("R")

MAX_MEMBER_ID_UNITS = 36  # of UTF-16, which is how Java counts the length of a string


class Initialization(NamedTuple):
    """State to create in `__share_group_state`. The group epoch becomes the state epoch.

    A partition that is not in `start_offsets` gets its start offset when it is first read. Kafka:
    GroupMetadataManager.buildInitializeShareGroupStateRequest.
    """

    group_id: str
    epoch: int
    topics: Topics
    start_offsets: Mapping[tuple[bytes, int], int] = {}
    begun_before: Collection[bytes] = ()
    """Topics of which some state may exist, because an earlier initialization or deletion of their
    state has not ended."""


class HeartbeatReply(NamedTuple):
    """The response, and the state that is to be created after it; None: none."""

    response: ShareGroupHeartbeatResponse
    initialization: Initialization | None = None


Answer = Outcome[DraftResult[HeartbeatReply]]


def check_heartbeat(request: ShareGroupHeartbeatRequest) -> None:
    """Raise ApiError INVALID_REQUEST for a request that is not valid."""
    check_not_blank("a member id", request.member_id)
    check_member_id(request.member_id)
    check_not_blank("a group id", request.group_id)
    check_not_blank("a rack id", request.rack_id)
    if request.member_epoch == JOINING_EPOCH:
        if not request.subscribed_topic_names:
            raise invalid_request("a joining member must subscribe to topics")
    elif request.member_epoch < LEAVING_EPOCH:
        raise invalid_request(f"{request.member_epoch} is not a member epoch")


def check_member_id(member_id: str | None) -> str:
    """Return a member id that is not empty and not too long. Raises ApiError INVALID_REQUEST."""
    if not member_id or utf16_units(member_id) > MAX_MEMBER_ID_UNITS:
        raise invalid_request(f"a member id has 1 to {MAX_MEMBER_ID_UNITS} characters")
    return member_id


class ShareHeartbeats:
    """Serves the heartbeats of all share groups."""

    def __init__(
        self,
        *,
        topics: ClusterTopics,
        configs: ShareGroupConfigs,
        deadlines: MemberDeadlines,
        assignor: Assignor,
    ) -> None:
        self._topics = topics
        self._configs = configs
        self._deadlines = deadlines
        self._assignor = assignor

    def serve(
        self,
        group: Group | None,
        partition: int,
        request: ShareGroupHeartbeatRequest,
        caller: Caller,
        now: Now,
        step: Step,
    ) -> Answer:
        """Serve a request that has passed check_heartbeat; `group` has its group id; None: none.

        `partition` names the shard that has the group, or will have it.

        Raises ApiError: GROUP_ID_NOT_FOUND, GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID,
        FENCED_MEMBER_EPOCH, UNKNOWN_SERVER_ERROR.
        """
        joins = request.member_epoch == JOINING_EPOCH
        if group is None and joins:
            group = ShareGroup(request.group_id, partition)
        if not isinstance(group, ShareGroup):
            raise not_a_share_group(request.group_id)
        if request.member_epoch == LEAVING_EPOCH:
            left = ShareGroupHeartbeatResponse(
                member_id=request.member_id, member_epoch=LEAVING_EPOCH
            )
            member = group.member(request.member_id)
            return self.remove(group, member, now, HeartbeatReply(left), step)
        group.check_size(request.member_id, self._configs.broker.max_size)
        member = (group.member_or_new if joins else group.member)(request.member_id)
        _check_epoch(member, request.member_epoch)
        draft = Draft(group, now, epoch_record, step)
        return self._serve_member(draft, member, request, caller)

    def remove(
        self,
        group: ShareGroup,
        member: ShareMember,
        now: Now,
        reply: R,
        step: Step = no_step,
    ) -> Outcome[DraftResult[R]]:
        """Remove a member that left or was fenced, and raise the group epoch."""
        draft = Draft(group, now, epoch_record, step)
        draft.records += member_tombstones(group.group_id, member.member_id)
        topics = group.subscriptions.topics_without([member], step)
        draft.bump_epoch(self._topics.group_hash(topics, step), f"removed {member.member_id}")
        if len(group.members) == 1:  # the next member to join need not wait for the interval
            draft.records.append(
                target_epoch_record(group.group_id, draft.epoch, NEVER_COMPUTED_MS)
            )
        key = group.key_of(member.member_id)
        draft.then.append(partial(self._deadlines.cancel_all, key))
        return draft.outcome(reply)

    # -- the steps ---------------------------------------------------------------------------------

    def _serve_member(
        self,
        draft: Draft[ShareGroup],
        member: ShareMember,
        request: ShareGroupHeartbeatRequest,
        caller: Caller,
    ) -> Answer:
        updated = _updated_member(member, request, caller)
        if updated != member:
            draft.records.append(subscription_record(draft.group_id, updated, draft.step))
        has_risen = self._bump_epoch(draft, member, updated)
        epoch, target = self._update_target(draft, member, updated)
        reconciled = self._reconcile(updated, epoch, target, draft.step, epoch_has_risen=has_risen)
        if reconciled != updated:
            record = current_assignment_record(draft.group_id, reconciled, draft.step)
            draft.records.append(record)
        until_ms = draft.now.timer_ms + self._configs.session_timeout_ms(draft.group_id)
        key = draft.group.key_of(reconciled.member_id)
        draft.then.append(partial(self._deadlines.sessions.schedule, key, until_ms))
        initialization = self._initialization(draft, member, updated)
        sends_assignment = request.subscribed_topic_names is not None or (
            reconciled.assigned != member.assigned
        )
        response = ShareGroupHeartbeatResponse(
            member_id=reconciled.member_id,
            member_epoch=reconciled.member_epoch,
            heartbeat_interval_ms=self._configs.heartbeat_interval_ms(draft.group_id),
            assignment=_assignment_of(reconciled, draft.step) if sends_assignment else None,
        )
        return draft.outcome(HeartbeatReply(response, initialization))

    def _bump_epoch(
        self, draft: Draft[ShareGroup], member: ShareMember, updated: ShareMember
    ) -> bool:
        """Raise the group epoch if new targets are needed. Returns whether it was raised."""
        group = draft.group
        changed = updated.subscribed_topics != member.subscribed_topics or (
            group.assignment_epoch >= group.epoch
            and group.has_unassigned_partitions(self._topics, draft.step)
        )
        found = check_topics(draft, self._topics, member, updated, changed=changed)
        if found is None or not (changed or found.has_changed):
            return False
        draft.bump_epoch(found.metadata_hash, f"heartbeat of {updated.member_id}")
        return True

    def _update_target(
        self, draft: Draft[ShareGroup], member: ShareMember, updated: ShareMember
    ) -> tuple[int, Assignment]:
        """Return the epoch of the targets and the member's target; compute all if they are due."""
        group = draft.group
        if not is_due(group, draft.epoch, draft.now, self._configs):
            return group.assignment_epoch, group.targets.get(updated.member_id, NOTHING)
        targets = compute_targets(
            draft,
            updated,
            self._assignor,
            self._topics,
            previous_id=updated.member_id,
            topics_of=lambda member: member.subscribed_topics,
            is_homogeneous=group.is_homogeneous_if(member, updated, draft.step),
            assignable=group.state_partitions.assignable(),
        )
        write_targets(draft, targets, target_record, target_epoch_record)
        return draft.epoch, targets[updated.member_id]

    def _reconcile(
        self,
        member: ShareMember,
        epoch: int,
        target: Assignment,
        step: Step,
        *,
        epoch_has_risen: bool,
    ) -> ShareMember:
        """Move the member to its target, without topics that it does not subscribe to.

        `epoch_has_risen`: in this heartbeat. New targets may only be due later, but the member may
        have unsubscribed from topics of its present target.
        """
        is_behind = member.member_epoch != epoch or member.state is not MemberState.STABLE
        if not (is_behind or epoch_has_risen):
            return member
        subscribed = self._topics.ids_of(stepping_if_many(member.subscribed_topics, step))
        assigned = {
            topic_id: partitions
            for topic_id, partitions in stepping_if_many(target.items(), step)
            if topic_id in subscribed
        }
        if member.member_epoch == epoch:
            return replace(member, assigned=assigned)
        return replace(
            member,
            state=MemberState.STABLE,
            assigned=assigned,
            previous_member_epoch=member.member_epoch,
            member_epoch=epoch,
        )

    # -- partitions without stored state -----------------------------------------------------------

    def _initialization(
        self, draft: Draft[ShareGroup], member: ShareMember, updated: ShareMember
    ) -> Initialization | None:
        """Write which subscribed partitions are to be initialized; None if there are none.

        Partitions whose state exists, or whose initialization began less than the retry interval
        ago, are not among them.
        """
        group, now_ms = draft.group, draft.now.wall_ms
        subscribed = group.subscriptions.topics
        if updated.subscribed_topics != member.subscribed_topics:
            subscribed = group.subscriptions.topics_if(member, updated, draft.step)
        new: dict[bytes, TopicOfState] = {}
        for name in stepping_if_many(subscribed, draft.step):
            topic_id = self._topics.id_of(name)
            if topic_id is None:
                continue
            retry_ms = self._configs.broker.initialize_retry_interval_ms
            known = group.state_partitions.recent(topic_id, now_ms, retry_ms)
            count = self._topics.partition_count(topic_id)
            if len(known) < count:
                new[topic_id] = TopicOfState(name, frozenset(range(count)) - known, now_ms)
        if not new:
            return None
        state = group.state_partitions.with_initializing(new, draft.step)
        name_of = self._topics.name_of
        record = state_partitions_record(group.group_id, state, name_of, draft.step)
        draft.records.append(record)
        # A topic with initialized partitions has grown: the new ones are read from their beginning.
        # If an administrator has set the start offsets of some partitions only, the others look the
        # same, and are also read from their beginning, as in Kafka.
        grown = group.state_partitions.initialized.keys() & new.keys()
        starts = {(id_, index): 0 for id_ in grown for index in new[id_].partitions}
        begun = group.state_partitions.deleting.union(group.state_partitions.initializing)
        return Initialization(group.group_id, draft.epoch, new, starts, begun & new.keys())


def not_a_share_group(group_id: str) -> ApiError:
    """Make the error of a group id without a share group."""
    return ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a share group.")


def _check_epoch(member: ShareMember, epoch: int) -> None:
    """Raise ApiError FENCED_MEMBER_EPOCH unless the epoch is the member's, or the one before.

    A member that sends the previous epoch may have missed the response with its new one.
    """
    if epoch not in (JOINING_EPOCH, member.member_epoch, member.previous_member_epoch):
        raise ApiError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"member {member.member_id} is at epoch {member.member_epoch}, not {epoch}: "
            "it must join again",
        )


def _updated_member(
    member: ShareMember, request: ShareGroupHeartbeatRequest, caller: Caller
) -> ShareMember:
    """Return the member with the request's fields; null means unchanged."""
    topics = request.subscribed_topic_names
    return replace(
        member,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        subscribed_topics=member.subscribed_topics if topics is None else frozenset(topics),
        client_id=caller.client_id,
        client_host=caller.client_host,
    )


def _assignment_of(member: ShareMember, step: Step) -> ShareGroupHeartbeatAssignment:
    return ShareGroupHeartbeatAssignment(
        topic_partitions=[
            ShareGroupHeartbeatTopicPartitions(topic_id=topic_id, partitions=sorted(partitions))
            for topic_id, partitions in stepping_if_many(member.assigned.items(), step)
        ]
    )
