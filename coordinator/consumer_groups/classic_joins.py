"""Serves JoinGroup of a classic member in a consumer group. The steps are those of a heartbeat.

    find the member      membership.py   a static member that joins without its member id replaces
                                         the present member of its instance id
    its subscription     GroupServices.update_subscription; the coordinator decodes it from the
                         protocol metadata, which in a classic group only the leader reads
    the targets          rebalance.py    not if the join removes the last member of the consumer
                                         protocol: then the group is downgraded (downgrade.py)
    its assignment       rebalance.py    reconcile; the member gets the assignment with SyncGroup

Kafka: GroupMetadataManager.classicGroupJoinToConsumerGroup.
"""

from collections.abc import Callable
from functools import partial

from msgspec.structs import replace

from odradek.coordinator.any_group.group_settings import MigrationPolicy
from odradek.coordinator.classic_groups.join import FIRST_WITH_REQUIRED_ID, JoinCall
from odradek.coordinator.classic_groups.protocols import names_of
from odradek.coordinator.modern_groups.draft import DraftResult
from odradek.coordinator.modern_groups.member import MemberState
from odradek.coordinator.runtime.outcome import Outcome
from odradek.coordinator.runtime.steps import Step, stepping
from odradek.coordinator.runtime.timers import Now
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.join_group import JoinGroupResponse
from odradek.protocol.records.consumer_protocol import PROTOCOL_TYPE, ConsumerProtocolSubscription
from odradek.protocol.schema import DecodeError

from .client_protocol import by_topic_id, subscription_of
from .downgrade import Downgrades
from .draft import ConsumerDraft
from .group import ConsumerGroup
from .heartbeat import GroupServices
from .member import ConsumerMember
from .membership import joining_member
from .rebalance import Target
from .upgrade import classic_metadata


class ClassicJoins:
    """Serves the JoinGroup requests of all consumer groups."""

    def __init__(
        self,
        services: GroupServices,
        *,
        downgrades: Downgrades,
        new_member_id: Callable[[], str],
    ) -> None:
        self._services = services
        self._downgrades = downgrades
        self._new_member_id = new_member_id

    def join(
        self, group: ConsumerGroup, call: JoinCall, now: Now, step: Step
    ) -> Outcome[DraftResult[JoinGroupResponse]]:
        """Serve a JoinGroup to a group that is not empty.

        Raises ApiError: GROUP_MAX_SIZE_REACHED, INCONSISTENT_GROUP_PROTOCOL, UNKNOWN_MEMBER_ID,
        FENCED_INSTANCE_ID, UNKNOWN_SERVER_ERROR (the assignor fails).
        """
        draft = ConsumerDraft(group, now, step)
        request = call.request
        member_id = request.member_id or self._new_member_id()
        settings = self._services.configs.broker
        if settings.migration_policy is MigrationPolicy.DISABLED:
            raise ApiError(
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
                f"Cannot join the consumer group {group.group_id} with the classic protocol because"
                " the group migration is disabled.",
            )
        returns = request.group_instance_id in group.static_member_ids
        group.check_size(member_id, settings.max_size, returns=returns)
        _check_protocols(group, call)
        if _requires_member_id(call):
            required = ErrorCode.MEMBER_ID_REQUIRED
            return draft.outcome(JoinGroupResponse(member_id=member_id, error_code=required))
        instance_id = request.group_instance_id
        if request.member_id and instance_id is not None:
            member = group.requesting_member(member_id, instance_id)
        else:
            deadlines = self._services.deadlines
            member = joining_member(draft, member_id, instance_id, deadlines, by_classic=True)
        return draft.outcome(self._join(draft, member, call))

    def _join(
        self, draft: ConsumerDraft, member: ConsumerMember, call: JoinCall
    ) -> JoinGroupResponse:
        """Take the steps for the member and the group, and return the response."""
        rebalance = self._services.rebalance
        subscription = _subscription(call, draft.step)
        updated = _updated_member(member, call, subscription)
        changed = self._services.update_subscription(draft, member, updated, call.caller)
        reconcile = partial(
            rebalance.reconcile,
            draft,
            updated,
            changed=changed,
            owned=by_topic_id(subscription.owned_partitions, self._services.topics, draft.step),
        )
        reconciled = self._downgrade_if_last(draft, updated, reconcile)
        if reconciled is None:
            reconciled = reconcile(rebalance.update_target(draft, member, updated))
            draft.then.append(partial(self._schedule_sync_deadline, draft, reconciled, call))
        return JoinGroupResponse(
            member_id=reconciled.member_id,
            generation_id=reconciled.member_epoch,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=call.protocols[0][0],
        )

    def _downgrade_if_last(
        self,
        draft: ConsumerDraft,
        updated: ConsumerMember,
        reconcile: Callable[[Target], ConsumerMember],
    ) -> ConsumerMember | None:
        """Downgrade the group if `updated` replaces its last member of the consumer protocol.

        `reconcile` moves `updated` one step towards a target. Returns the member after the
        downgrade, or None if the group was not downgraded.
        """
        group = draft.group
        replaced = group.static_member(updated.instance_id)
        if replaced is None or not self._downgrades.can_convert_without(draft, replaced):
            return None
        needs_new_target = group.assignment_epoch < draft.epoch
        if not needs_new_target:
            target = Target(group.assignment_epoch, group.target(replaced.member_id))
            updated = reconcile(target)
        # A classic member that waits for partitions has synced without them. In a stable classic
        # group it would not sync again; in Kafka these partitions then stay unread.
        waits = any(
            member.state is MemberState.UNRELEASED_PARTITIONS
            for member in stepping(group.members.values(), draft.step)
            if member is not replaced
        )
        converted = self._downgrades.convert_on_replacement(
            draft, replaced, updated, rebalance=needs_new_target or waits
        )
        return updated if converted else None

    def _schedule_sync_deadline(
        self, draft: ConsumerDraft, member: ConsumerMember, call: JoinCall
    ) -> None:
        key = draft.group.key_of(member.member_id)
        deadlines, now_ms = self._services.deadlines, draft.now.timer_ms
        deadlines.joins.cancel(key)
        deadlines.sessions.schedule(key, now_ms + call.request.session_timeout_ms)
        deadlines.syncs.schedule(key, now_ms + call.rebalance_timeout_ms)


def _check_protocols(group: ConsumerGroup, call: JoinCall) -> None:
    protocol_type, names = call.request.protocol_type, names_of(call.protocols)
    if not group.supports_classic_protocols(protocol_type, names):
        raise ApiError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"consumer group {group.group_id} has no protocol in common with "
            f"{protocol_type!r} {names}",
        )


def _requires_member_id(call: JoinCall) -> bool:
    """Whether a new dynamic member only gets an id, with which it must join again (KIP-394)."""
    request = call.request
    is_dynamic = not request.member_id and request.group_instance_id is None
    return is_dynamic and call.caller.api_version >= FIRST_WITH_REQUIRED_ID


def _subscription(call: JoinCall, step: Step) -> ConsumerProtocolSubscription:
    """Decode the subscription of the first protocol; a consumer sends the same with each.

    Raises ApiError INCONSISTENT_GROUP_PROTOCOL.
    """
    try:
        return subscription_of(call.protocols[0][1], step)
    except DecodeError as error:
        raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"{error}") from error


def _updated_member(
    member: ConsumerMember, call: JoinCall, subscription: ConsumerProtocolSubscription
) -> ConsumerMember:
    """Return the member with the request's fields; the same object if nothing changes."""
    instance_id = call.request.group_instance_id
    updated = replace(
        member,
        instance_id=member.instance_id if instance_id is None else instance_id,
        rack_id=subscription.rack_id or member.rack_id,
        rebalance_timeout_ms=call.rebalance_timeout_ms,
        subscribed_topics=frozenset(subscription.topics),
        subscribed_regex="",
        client_id=call.caller.client_id,
        client_host=call.caller.client_host,
        classic=classic_metadata(call.request.session_timeout_ms, call.protocols),
    )
    return member if updated == member else updated
