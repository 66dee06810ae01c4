"""The response of ShareGroupDescribe for one share group.

Deleted topics have no name and are left out. Kafka: ShareGroup.asDescribedGroup.
"""

from collections.abc import Callable

from odradek.coordinator.runtime.steps import Step, no_step, sorted_in_steps, stepping
from odradek.protocol.messages.share_group_describe import (
    ShareGroupDescribeAssignment,
    ShareGroupDescribeGroup,
    ShareGroupDescribeMember,
    ShareGroupDescribeTopicPartitions,
)

from .group import ShareGroup
from .member import ShareMember

# Returns the name of the topic with this id, or None.
NameOf = Callable[[bytes], str | None]


def described(
    group: ShareGroup,
    assignor: str,
    name_of: NameOf,
    authorized_operations: int,
    step: Step = no_step,
) -> ShareGroupDescribeGroup:
    """Describe the group and all its members as they are now, in steps."""
    return ShareGroupDescribeGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=assignor,
        members=[
            _member(member, name_of, step) for member in stepping(group.members.values(), step)
        ],
        authorized_operations=authorized_operations,
    )


def _member(member: ShareMember, name_of: NameOf, step: Step) -> ShareGroupDescribeMember:
    named = ((topic_id, name_of(topic_id)) for topic_id in stepping(member.assigned, step))
    assignment = ShareGroupDescribeAssignment(
        topic_partitions=[
            ShareGroupDescribeTopicPartitions(
                topic_id=topic_id, topic_name=name, partitions=sorted(member.assigned[topic_id])
            )
            for topic_id, name in named
            if name is not None
        ]
    )
    return ShareGroupDescribeMember(
        member_id=member.member_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted_in_steps(member.subscribed_topics, step),
        assignment=assignment,
    )
