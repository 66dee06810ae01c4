"""The usual heartbeat: it says nothing new, and there is nothing to tell.

Of a group at rest every heartbeat is like that, and most are while it waits for its next targets;
each would go through all the steps of heartbeat.py to find out that none of them has anything to
do: five times the work. So it is asked here at once. A member that has all it shall have may also
say what that is, as it does once when it was told. Whatever is not plain goes the long way, which
is what says how things are: what counts as quiet here must leave no trace there but a longer
session. (A test holds the two against each other.)
"""

from odradek.coordinator.classic_groups.member import Caller
from odradek.coordinator.timers import Now
from odradek.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

from .group import ConsumerGroup
from .heartbeat_checks import NO_TIMEOUT
from .member import JOINING_EPOCH, ConsumerMember, MemberState
from .rebalance import Rebalance


def is_quiet(
    group: ConsumerGroup,
    request: ConsumerGroupHeartbeatRequest,
    caller: Caller,
    rebalance: Rebalance,
    now: Now,
) -> bool:
    """Whether a heartbeat of the group only says that a member lives, and may hear the same."""
    member = group.members.get(request.member_id)
    return (
        member is not None
        and _says_nothing(request, member, group)
        and _is_where_it_shall_be(member, group)
        and rebalance.has_seen_its_topics(group)
        and not rebalance.is_due(group, group.epoch, now)
        and not group.subscriptions.regex_subscribers  # theirs are looked at from time to time
        and member.client_id == caller.client_id
        and member.client_host == caller.client_host
    )


def _says_nothing(
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


def _is_where_it_shall_be(member: ConsumerMember, group: ConsumerGroup) -> bool:
    """Whether it has reached its target."""
    return (
        member.member_epoch == group.assignment_epoch
        and member.member_epoch > JOINING_EPOCH
        and member.state is MemberState.STABLE
        and member.classic is None
    )
