"""The fast path for a quiet heartbeat: the member reports no change, and the group has none for it.

In a stable group every heartbeat is quiet. While a group waits for its next targets, most are. The
steps of heartbeat.py would find nothing to do, at five times the cost. A quiet heartbeat may list
the partitions that the member owns, as clients do once after a new assignment.

All other heartbeats take the full path (heartbeat.py). For a quiet heartbeat, the full path must
change nothing but the session deadline. A test compares the two.
"""

from odradek.coordinator.any_group.caller import Caller
from odradek.coordinator.modern_groups.heartbeat_fields import NO_TIMEOUT
from odradek.coordinator.modern_groups.member import JOINING_EPOCH, MemberState
from odradek.coordinator.runtime.timers import Now
from odradek.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

from .group import ConsumerGroup
from .member import ConsumerMember
from .rebalance import Rebalance


def is_quiet(
    group: ConsumerGroup,
    request: ConsumerGroupHeartbeatRequest,
    caller: Caller,
    rebalance: Rebalance,
    now: Now,
) -> bool:
    """Whether a heartbeat only renews the member's session."""
    member = group.members.get(request.member_id)
    return (
        member is not None
        and _reports_no_change(request, member, group)
        and _has_reached_target(member, group)
        and rebalance.has_checked_topics(group)
        and not rebalance.is_due(group, group.epoch, now)
        and not group.subscriptions.regex_subscribers  # regexes are resolved again at intervals
        and member.client_id == caller.client_id
        and member.client_host == caller.client_host
    )


def _reports_no_change(
    request: ConsumerGroupHeartbeatRequest, member: ConsumerMember, group: ConsumerGroup
) -> bool:
    return (
        request.member_epoch == member.member_epoch
        and request.subscribed_topic_names is None
        and request.subscribed_topic_regex is None
        and request.server_assignor is None
        and request.rebalance_timeout_ms == NO_TIMEOUT
        and request.rack_id is None
        and (
            request.instance_id is None
            or group.static_member_ids.get(request.instance_id) == member.member_id
        )
    )


def _has_reached_target(member: ConsumerMember, group: ConsumerGroup) -> bool:
    """Whether the member owns its target, as a member of the consumer protocol."""
    return (
        member.member_epoch == group.assignment_epoch
        and member.member_epoch > JOINING_EPOCH
        and member.state is MemberState.STABLE
        and member.classic is None
    )
