"""The response of ConsumerGroupDescribe for one consumer group.

Deleted topics have no name and are left out. `assignment` includes the partitions that a member
must give up, because it still owns them. Kafka: ConsumerGroup.asDescribedGroup,
ConsumerGroupMember.asConsumerGroupDescribeMember.
"""

from collections.abc import Callable, Iterable, Mapping

from odradek.coordinator.assignors.assignment import NOTHING as NO_TARGET
from odradek.coordinator.assignors.assignment import Assignment
from odradek.coordinator.runtime.steps import (
    Step,
    no_step,
    sorted_in_steps,
    stepping,
    stepping_if_many,
)
from odradek.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeAssignment,
    ConsumerGroupDescribeGroup,
    ConsumerGroupDescribeMember,
    ConsumerGroupDescribeTopicPartitions,
)

from .group import ConsumerGroup
from .member import ConsumerMember

# Returns the name of the topic with this id, or None.
NameOf = Callable[[bytes], str | None]

# `member_type`. On the wire: never renumber.
CLASSIC_MEMBER = 0
CONSUMER_MEMBER = 1


def described(
    group: ConsumerGroup,
    default_assignor: str,
    name_of: NameOf,
    authorized_operations: int,
    step: Step = no_step,
) -> ConsumerGroupDescribeGroup:
    """Describe the group and all its members as they are now, in steps."""
    targets = dict(group.targets)
    return ConsumerGroupDescribeGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.preferred_assignor or default_assignor,
        members=[
            _member(member, targets.get(member.member_id, NO_TARGET), name_of, step)
            for member in stepping(group.members.values(), step)
        ],
        authorized_operations=authorized_operations,
    )


def _member(
    member: ConsumerMember, target: Assignment, name_of: NameOf, step: Step
) -> ConsumerGroupDescribeMember:
    return ConsumerGroupDescribeMember(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted_in_steps(member.subscribed_topics, step),
        subscribed_topic_regex=member.subscribed_regex,
        assignment=_assignment(_owned(member, step), name_of, step),
        target_assignment=_assignment(target, name_of, step),
        member_type=CLASSIC_MEMBER if member.uses_classic_protocol else CONSUMER_MEMBER,
    )


def _owned(member: ConsumerMember, step: Step) -> Mapping[bytes, Iterable[int]]:
    assigned, pending = member.assigned, member.pending_revocation
    topic_ids = dict.fromkeys((*assigned, *pending))
    return {
        id_: {**assigned.get(id_, {}), **pending.get(id_, {})}
        for id_ in stepping_if_many(topic_ids, step)
    }


def _assignment(
    partitions: Mapping[bytes, Iterable[int]], name_of: NameOf, step: Step
) -> ConsumerGroupDescribeAssignment:
    named = ((topic_id, name_of(topic_id)) for topic_id in stepping_if_many(partitions, step))
    return ConsumerGroupDescribeAssignment(
        topic_partitions=[
            ConsumerGroupDescribeTopicPartitions(
                topic_id=topic_id, topic_name=name, partitions=sorted(partitions[topic_id])
            )
            for topic_id, name in named
            if name is not None
        ]
    )
