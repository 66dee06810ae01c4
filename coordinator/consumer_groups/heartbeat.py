"""Serves ConsumerGroupHeartbeat: a member joins, reports, gets its assignment, or leaves.

    find the member      membership.py   a known member, a new one, or one that
                                         replaces a static member
    its subscription     GroupServices.update_subscription: the subscription is written, new regular
                         expressions are resolved (regex_updates.py), and the group epoch may rise
    the targets          rebalance.py    update_target
    its assignment       rebalance.py    reconcile: one step towards the target
    leaving              leave.py

A request contains only what has changed since the last one; null means "unchanged". The response
contains the assignment if it has changed, or if the request is a full report (a join, or a client
that recovers from an error).

Kafka: GroupMetadataManager.consumerGroupHeartbeat.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from msgspec.structs import replace

from odradek.coordinator.any_group.caller import Caller
from odradek.coordinator.any_group.group import Group
from odradek.coordinator.assignors.assignment import Assignment
from odradek.coordinator.classic_groups.group import ClassicGroup
from odradek.coordinator.modern_groups.group_configs import ConsumerGroupConfigs
from odradek.coordinator.modern_groups.heartbeat_fields import NO_TIMEOUT
from odradek.coordinator.modern_groups.member import (
    JOINING_EPOCH,
    LEAVING_EPOCH,
    LEAVING_STATIC_EPOCH,
)
from odradek.coordinator.modern_groups.topics_view import ClusterTopics
from odradek.coordinator.runtime.steps import Step, stepping_if_many
from odradek.coordinator.runtime.timers import Now
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatAssignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatTopicPartitions,
)

from .deadlines import ConsumerDeadlines
from .draft import ConsumerDraft
from .group import ConsumerGroup
from .leave import Answer, Departures
from .member import ConsumerMember
from .membership import check_epoch, joining_member
from .rebalance import Rebalance, write_subscription
from .reconciliation import partitions_by_topic
from .regex_updates import RegexChange, RegexUpdates

# Turns a classic group with members into a consumer group. Returns a draft about the new group,
# with the records that create it. Raises ApiError GROUP_ID_NOT_FOUND.
Upgrade = Callable[[ClassicGroup, Now, Step], ConsumerDraft]


class GroupServices(NamedTuple):
    """What requests of members are served with, shared by all consumer groups."""

    topics: ClusterTopics
    configs: ConsumerGroupConfigs
    deadlines: ConsumerDeadlines
    regexes: RegexUpdates
    rebalance: Rebalance
    departures: Departures

    def update_subscription(
        self,
        draft: ConsumerDraft,
        member: ConsumerMember,
        updated: ConsumerMember,
        caller: Caller,
    ) -> bool:
        """Write a changed subscription, and raise the group epoch if the targets must change.

        Returns whether the subscription has changed. Raises ApiError INVALID_REGULAR_EXPRESSION.
        """
        names_changed = write_subscription(draft, member, updated)
        regex = self.regexes.update(draft, member, updated, caller.may_describe)
        # An expression that is not resolved yet matches no topic, so the targets stay as they are.
        changed = (
            names_changed
            or regex is RegexChange.RESOLVED
            or self.rebalance.changes_assignor(draft.group, member, updated)
        )
        self.rebalance.bump_epoch(draft, member, updated, changed=changed)
        return names_changed or regex is not RegexChange.NONE


class ConsumerHeartbeats:
    """Serves the heartbeats of all consumer groups."""

    def __init__(
        self, services: GroupServices, *, new_member_id: Callable[[], str], upgrade: Upgrade
    ) -> None:
        self._services = services
        self._new_member_id = new_member_id
        self._upgrade = upgrade

    def serve(
        self,
        group: Group | None,
        partition: int,
        request: ConsumerGroupHeartbeatRequest,
        caller: Caller,
        now: Now,
        step: Step,
    ) -> Answer:
        """Decide about a checked request; `group` is the group of that id, or None.

        `partition` names the shard that has the group, or will have it.

        Raises ApiError: GROUP_ID_NOT_FOUND, GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID,
        FENCED_MEMBER_EPOCH, FENCED_INSTANCE_ID, UNRELEASED_INSTANCE_ID,
        INVALID_REGULAR_EXPRESSION, UNKNOWN_SERVER_ERROR.
        """
        if request.member_epoch in (LEAVING_EPOCH, LEAVING_STATIC_EPOCH):
            if not isinstance(group, ConsumerGroup):
                raise _no_group(request.group_id)
            return self._services.departures.leave(group, request, now, step)
        draft = self._open_draft(group, partition, request, now, step)
        owned = partitions_by_topic(request.topic_partitions, step)
        member = self._find_member(draft, request)
        check_epoch(member, request.member_epoch, owned)
        return self._serve_member(draft, member, request, caller, owned)

    # -- the group and the member ------------------------------------------------------------------

    def _open_draft(
        self,
        group: Group | None,
        partition: int,
        request: ConsumerGroupHeartbeatRequest,
        now: Now,
        step: Step,
    ) -> ConsumerDraft:
        """Open a draft. A joining member may create the group, or convert a classic one."""
        if isinstance(group, ConsumerGroup):
            return ConsumerDraft(group, now, step)
        if request.member_epoch != JOINING_EPOCH:
            raise _no_group(request.group_id)
        if group is None:
            return ConsumerDraft(ConsumerGroup(request.group_id, partition), now, step)
        if not isinstance(group, ClassicGroup):
            raise _no_group(request.group_id)
        if not group.is_empty:
            return self._upgrade(group, now, step)
        draft = ConsumerDraft(ConsumerGroup(request.group_id, partition), now, step)
        draft.records += group.tombstones()
        return draft

    def _find_member(
        self, draft: ConsumerDraft, request: ConsumerGroupHeartbeatRequest
    ) -> ConsumerMember:
        """Return the member as it is before this heartbeat."""
        returns = request.instance_id in draft.group.static_member_ids
        max_size = self._services.configs.broker.max_size
        draft.group.check_size(request.member_id, max_size, returns=returns)
        member_id = request.member_id or self._new_member_id()
        if request.member_epoch == JOINING_EPOCH:
            return joining_member(draft, member_id, request.instance_id, self._services.deadlines)
        return draft.group.requesting_member(member_id, request.instance_id)

    # -- the steps ---------------------------------------------------------------------------------

    def _serve_member(
        self,
        draft: ConsumerDraft,
        member: ConsumerMember,
        request: ConsumerGroupHeartbeatRequest,
        caller: Caller,
        owned: Assignment | None,
    ) -> Answer:
        services, rebalance = self._services, self._services.rebalance
        updated = _updated_member(member, request, caller, draft.step)
        changed = services.update_subscription(draft, member, updated, caller)
        reconciled = rebalance.reconcile(
            draft,
            updated,
            rebalance.update_target(draft, member, updated),
            changed=changed,
            owned=owned,
        )
        key = draft.group.key_of(reconciled.member_id)
        until_ms = draft.now.timer_ms + services.configs.session_timeout_ms(draft.group_id)
        draft.then.append(partial(services.deadlines.sessions.schedule, key, until_ms))
        return draft.outcome(self._answer(request, member, reconciled, draft.step))

    def _answer(
        self,
        request: ConsumerGroupHeartbeatRequest,
        before: ConsumerMember,
        member: ConsumerMember,
        step: Step,
    ) -> ConsumerGroupHeartbeatResponse:
        sends_assignment = _is_full_report(request) or member.assigned != before.assigned
        return ConsumerGroupHeartbeatResponse(
            member_id=member.member_id,
            member_epoch=member.member_epoch,
            heartbeat_interval_ms=self._services.configs.heartbeat_interval_ms(request.group_id),
            assignment=_assignment_of(member, step) if sends_assignment else None,
        )


def _no_group(group_id: str) -> ApiError:
    return ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no consumer group {group_id}")


def _updated_member(
    member: ConsumerMember, request: ConsumerGroupHeartbeatRequest, caller: Caller, step: Step
) -> ConsumerMember:
    """Return the member with the request's fields; the same object if nothing changes."""
    timeout_ms, topics = request.rebalance_timeout_ms, request.subscribed_topic_names
    reported = {
        "instance_id": request.instance_id,
        "rack_id": request.rack_id,
        "rebalance_timeout_ms": None if timeout_ms == NO_TIMEOUT else timeout_ms,
        "server_assignor": request.server_assignor,
        "subscribed_topics": None if topics is None else frozenset(stepping_if_many(topics, step)),
        "subscribed_regex": request.subscribed_topic_regex,
        "client_id": caller.client_id,
        "client_host": caller.client_host,
    }
    changes: dict[str, Any] = {
        name: value
        for name, value in reported.items()
        if value is not None and value != getattr(member, name)
    }
    if member.classic is not None:
        changes["classic"] = None  # the member uses the consumer protocol now
    return replace(member, **changes) if changes else member


def _is_full_report(request: ConsumerGroupHeartbeatRequest) -> bool:
    """Whether the request sets all fields, as clients do when they need their assignment."""
    names, regex = request.subscribed_topic_names, request.subscribed_topic_regex
    return request.member_epoch == JOINING_EPOCH or (
        (names is not None or regex is not None)
        and request.rebalance_timeout_ms != NO_TIMEOUT
        and request.topic_partitions is not None
    )


def _assignment_of(member: ConsumerMember, step: Step) -> ConsumerGroupHeartbeatAssignment:
    return ConsumerGroupHeartbeatAssignment(
        topic_partitions=[
            ConsumerGroupHeartbeatTopicPartitions(topic_id=topic_id, partitions=sorted(partitions))
            for topic_id, partitions in stepping_if_many(member.assigned.items(), step)
        ]
    )
