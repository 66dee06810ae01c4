"""ConsumerGroupHeartbeat: a member joins, reports, is told what it shall have, leaves.

    who speaks        membership.py     a member, a new one, one in a static member's place
    what it asks for  rebalance.change  written if it is news; regex_updates.py for expressions
    what all get      rebalance.py      the group's epoch, the targets
    what it gets now  rebalance.reconcile   a step of reconciliation
    good-bye          leave.py

A request says only what has changed since the last one; null means "as before". One that says it
all (a join, or a client that had an error) is told its whole assignment again.

Kafka: GroupMetadataManager.consumerGroupHeartbeat.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from msgspec.structs import replace

from odradek.coordinator.classic_groups.group import ClassicGroup
from odradek.coordinator.classic_groups.member import Caller
from odradek.coordinator.group import Group
from odradek.coordinator.timers import Now
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatAssignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatTopicPartitions,
)

from .deadlines import MemberDeadlines, MemberKey
from .draft import Draft
from .group import ConsumerGroup
from .group_configs import ConsumerGroupConfigs
from .heartbeat_checks import NO_TIMEOUT
from .leave import Answer, Departures
from .member import JOINING_EPOCH, LEAVING_EPOCH, LEAVING_STATIC_EPOCH, ConsumerMember
from .membership import check_epoch, check_group_size, dynamic_member, static_member
from .rebalance import Rebalance, write_subscription
from .reconciliation import partitions_by_topic
from .regex_updates import RegexChange, RegexUpdates

# Turns a classic group that has members into a consumer group: a draft about that one, in which the
# records are that make it. Raises ApiError GROUP_ID_NOT_FOUND.
Upgrade = Callable[[ClassicGroup, Now], Draft]


class Steps(NamedTuple):
    """The parts of which a heartbeat is made."""

    configs: ConsumerGroupConfigs
    deadlines: MemberDeadlines
    regexes: RegexUpdates
    rebalance: Rebalance
    departures: Departures


class ConsumerHeartbeats:
    """Serves heartbeats, of all groups."""

    def __init__(self, steps: Steps, *, new_member_id: Callable[[], str], upgrade: Upgrade) -> None:
        self._steps = steps
        self._new_member_id = new_member_id
        self._upgrade = upgrade

    def serve(
        self,
        group: Group | None,
        request: ConsumerGroupHeartbeatRequest,
        caller: Caller,
        now: Now,
    ) -> Answer:
        """Decide about a request that passed the checks; `group` has its name, if there is one.

        Raises ApiError: GROUP_ID_NOT_FOUND, GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID,
        FENCED_MEMBER_EPOCH, FENCED_INSTANCE_ID, UNRELEASED_INSTANCE_ID,
        INVALID_REGULAR_EXPRESSION, UNKNOWN_SERVER_ERROR.
        """
        if request.member_epoch in (LEAVING_EPOCH, LEAVING_STATIC_EPOCH):
            if not isinstance(group, ConsumerGroup):
                raise _no_group(request.group_id)
            return self._steps.departures.leave(group, request, now)
        draft = self._open_draft(group, request, now)
        return self._serve_member(draft, self._find_member(draft, request), request, caller)

    # -- who speaks --------------------------------------------------------------------------------

    def _open_draft(
        self, group: Group | None, request: ConsumerGroupHeartbeatRequest, now: Now
    ) -> Draft:
        """A draft about the group; whoever joins may make it, or take over a classic one."""
        if isinstance(group, ConsumerGroup):
            return Draft(group, now)
        if request.member_epoch != JOINING_EPOCH:
            raise _no_group(request.group_id)
        if group is None:
            return Draft(ConsumerGroup(request.group_id), now)
        if not isinstance(group, ClassicGroup):
            raise _no_group(request.group_id)
        if not group.is_empty:
            return self._upgrade(group, now)
        draft = Draft(ConsumerGroup(request.group_id), now)
        draft.records += group.tombstones()
        return draft

    def _find_member(self, draft: Draft, request: ConsumerGroupHeartbeatRequest) -> ConsumerMember:
        """The member before this heartbeat has changed anything about it."""
        joins = request.member_epoch == JOINING_EPOCH
        check_group_size(draft.group, request.member_id, self._steps.configs.broker.max_size)
        member_id = request.member_id or self._new_member_id()
        if request.instance_id is None:
            member = dynamic_member(draft.group, member_id, joins=joins)
        else:
            member = static_member(
                draft, member_id, request.instance_id, self._steps.deadlines, joins=joins
            )
        check_epoch(member, request.member_epoch, request.topic_partitions)
        return member

    # -- what becomes of it ------------------------------------------------------------------------

    def _serve_member(
        self,
        draft: Draft,
        member: ConsumerMember,
        request: ConsumerGroupHeartbeatRequest,
        caller: Caller,
    ) -> Answer:
        _, deadlines, regexes, rebalance, _ = self._steps
        updated = _updated_member(member, request, caller)
        names_changed = write_subscription(draft, member, updated)
        regex = regexes.update(draft, member, updated)
        rebalance.bump_epoch(
            draft, member, updated, changed=names_changed or regex is RegexChange.RESOLVED
        )
        target = rebalance.update_target(draft, member, updated)
        moved = rebalance.reconcile(
            draft,
            updated,
            target,
            changed=names_changed or regex is not RegexChange.NONE,
            owned=partitions_by_topic(request.topic_partitions),
        )
        key = MemberKey(draft.group_id, moved.member_id)
        until_ms = draft.now.timer_ms + self._steps.configs.session_timeout_ms(draft.group_id)
        draft.then.append(partial(deadlines.sessions.schedule, key, until_ms))
        return draft.outcome(self._answer(request, member, moved))

    def _answer(
        self,
        request: ConsumerGroupHeartbeatRequest,
        before: ConsumerMember,
        member: ConsumerMember,
    ) -> ConsumerGroupHeartbeatResponse:
        tells = _is_full_report(request) or member.assigned != before.assigned
        return ConsumerGroupHeartbeatResponse(
            member_id=member.member_id,
            member_epoch=member.member_epoch,
            heartbeat_interval_ms=self._steps.configs.heartbeat_interval_ms(request.group_id),
            assignment=_assignment_of(member) if tells else None,
        )


def _no_group(group_id: str) -> ApiError:
    return ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no consumer group {group_id}")


def _updated_member(
    member: ConsumerMember, request: ConsumerGroupHeartbeatRequest, caller: Caller
) -> ConsumerMember:
    """The member with what the request says about it; the same object where that is no news."""
    timeout_ms, topics = request.rebalance_timeout_ms, request.subscribed_topic_names
    told = {
        "instance_id": request.instance_id,
        "rack_id": request.rack_id,
        "rebalance_timeout_ms": None if timeout_ms == NO_TIMEOUT else timeout_ms,
        "server_assignor": request.server_assignor,
        "subscribed_topics": None if topics is None else frozenset(topics),
        "subscribed_regex": request.subscribed_topic_regex,
        "client_id": caller.client_id,
        "client_host": caller.client_host,
    }
    news: dict[str, Any] = {
        name: value
        for name, value in told.items()
        if value is not None and value != getattr(member, name)
    }
    if member.classic is not None:
        news["classic"] = None  # it speaks the consumer protocol now
    return replace(member, **news) if news else member


def _is_full_report(request: ConsumerGroupHeartbeatRequest) -> bool:
    """Whether the client may have lost track of its assignment."""
    if request.member_epoch == JOINING_EPOCH:
        return True
    subscribes = (
        request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    )
    return (
        subscribes
        and request.rebalance_timeout_ms != NO_TIMEOUT
        and request.topic_partitions is not None
    )


def _assignment_of(member: ConsumerMember) -> ConsumerGroupHeartbeatAssignment:
    return ConsumerGroupHeartbeatAssignment(
        topic_partitions=[
            ConsumerGroupHeartbeatTopicPartitions(topic_id=topic_id, partitions=sorted(partitions))
            for topic_id, partitions in member.assigned.items()
        ]
    )
