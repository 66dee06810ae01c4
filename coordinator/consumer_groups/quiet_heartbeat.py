"""The usual heartbeat: it says nothing, and there is nothing to tell.

Of a group at rest every heartbeat is like that, and it would go through all the steps of
heartbeat.py to find out that none of them has anything to do: five times the work. So it is
asked here at once. Whatever is not plain goes the long way, which is what says how things are: what
counts as quiet here must leave no trace there but a longer session. (A test holds the two against
each other.)
"""

from ...protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ..classic_groups.member import Caller
from .group import ConsumerGroup
from .heartbeat_checks import NO_TIMEOUT
from .member import JOINING_EPOCH, ConsumerMember, MemberState


def is_quiet(
    group: ConsumerGroup,
    request: ConsumerGroupHeartbeatRequest,
    caller: Caller,
    topics_changed_at: int,
) -> bool:
    """Whether a heartbeat of the group only says that a member lives, and may hear the same."""
    member = group.members.get(request.member_id)
    return (
        member is not None
        and _says_nothing(request, member, group)
        and _is_where_it_shall_be(member, group)
        and group.topics_seen_at == topics_changed_at
        and not group.subscriptions.regex_subscribers  # theirs are looked at from time to time
        and member.client_id == caller.client_id
        and member.client_host == caller.client_host
    )


def _says_nothing(
    request: ConsumerGroupHeartbeatRequest, member: ConsumerMember, group: ConsumerGroup
) -> bool:
    return (
        request.member_epoch == member.member_epoch
        and request.topic_partitions is None
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
    """Whether it has reached a target that is up to date."""
    return (
        member.member_epoch == group.assignment_epoch
        and member.member_epoch > JOINING_EPOCH
        and group.assignment_epoch >= group.epoch
        and member.state is MemberState.STABLE
        and member.classic is None
    )
