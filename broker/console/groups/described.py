"""A group of any type with its members, as the request that describes groups of its type sees it.

The members of a classic group exchange subscriptions and assignments through the broker, as bytes.
Those of consumers are decoded here. Those of other programs, such as Kafka Connect, are not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Protocol, TypeVar

from msgspec import Struct, field

from odradek.broker.console.calls import Call
from odradek.broker.console.refusals import check_code
from odradek.broker.console.view import View
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.coordinator.any_group.group import Group, GroupType
from odradek.coordinator.runtime.steps import free
from odradek.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeAssignment,
    ConsumerGroupDescribeMember,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from odradek.protocol.messages.describe_groups import (
    DescribeGroupsMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from odradek.protocol.messages.share_group_describe import (
    ShareGroupDescribeAssignment,
    ShareGroupDescribeMember,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)
from odradek.protocol.messages.streams_group_describe import (
    StreamsGroupDescribeAssignment,
    StreamsGroupDescribeMember,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
    StreamsGroupDescribeSubtopology,
    StreamsGroupDescribeTaskIds,
    StreamsGroupDescribeTaskOffset,
    StreamsGroupDescribeTopicInfo,
)
from odradek.protocol.records.consumer_protocol import (
    PROTOCOL_TYPE,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    decode_versioned,
)
from odradek.protocol.schema import DecodeError, Message

STABLE, RECONCILING = "Stable", "Reconciling"

D = TypeVar("D")
M = TypeVar("M", bound=Message)


class AssignedPartitions(View):
    """Partitions of one topic."""

    topic: str
    partitions: list[int]


class SubtopologyTasks(View):
    """Tasks of one subtopology: one for each of these partitions."""

    subtopology_id: str
    partitions: list[int]


class StreamsTasks(View):
    """The tasks of a member of a streams group."""

    active: list[SubtopologyTasks]
    standby: list[SubtopologyTasks]
    warmup: list[SubtopologyTasks]


class TaskOffset(View):
    """How far a task has restored its state, and where its changelog ends; None: not reported."""

    subtopology_id: str
    partition: int
    offset: int | None
    end_offset: int | None


class GroupMember(View):
    """A member. What its type of group does not have is None, or empty.

    `state`: Stable if it has reached its target assignment, or Reconciling. `process_id` to
    `task_offsets` are those of streams groups. A member of a streams group is assigned tasks;
    `assignment` has the partitions that its active tasks read.
    """

    member_id: str
    client_id: str
    host: str
    instance_id: str | None = None
    rack_id: str | None = None
    member_epoch: int | None = None
    state: str | None = None
    subscribed: list[str] = field(default_factory=list)
    subscribed_pattern: str | None = None
    uses_classic_protocol: bool | None = None
    assignment: list[AssignedPartitions] = field(default_factory=list)
    target_assignment: list[AssignedPartitions] | None = None
    tasks: StreamsTasks | None = None
    target_tasks: StreamsTasks | None = None
    task_offsets: list[TaskOffset] = field(default_factory=list)
    process_id: str | None = None
    endpoint: str | None = None
    client_tags: dict[str, str] = field(default_factory=dict)


class InternalTopicInfo(View):
    """A topic that an application of Kafka Streams makes for itself; 0 partitions: not decided."""

    name: str
    partitions: int


class SubtopologyView(View):
    """A part of a topology whose tasks need nothing of other parts but topics."""

    subtopology_id: str
    source_topics: list[str]
    repartition_source_topics: list[InternalTopicInfo]
    repartition_sink_topics: list[str]
    state_changelog_topics: list[InternalTopicInfo]


class TopologyView(View):
    """The topology of a streams group."""

    epoch: int
    subtopologies: list[SubtopologyView]


class DescribedGroup(Struct):
    """A group. `assignor` chooses the partitions of members; in classic groups a member does it."""

    state: str
    protocol: str
    members: list[GroupMember]
    assignor: str | None = None
    group_epoch: int | None = None
    assignment_epoch: int | None = None
    topology: TopologyView | None = None


async def described(call: Call, group: Group) -> DescribedGroup:
    """Describe a group. Raises ApiError, also if the client may not see one of its topics."""
    return await _DESCRIBE[group.group_type](call, group.group_id)


# -- classic groups --------------------------------------------------------------------------------


async def _classic(call: Call, group_id: str) -> DescribedGroup:
    answer = await call.ask(DescribeGroupsRequest(groups=[group_id]), DescribeGroupsResponse)
    [group] = answer.groups
    check_code(group.error_code, group.error_message)
    is_of_consumers = group.protocol_type == PROTOCOL_TYPE
    # Kafka shows what members have written to whoever may describe the group. We read it, and show
    # no topics that the client may not describe.
    may_see = partial(call.may, AclOperation.DESCRIBE, ResourceType.TOPIC)
    return DescribedGroup(
        state=group.group_state,
        protocol=group.protocol_type,
        assignor=group.protocol_data or None,
        members=_members(
            call, group.members, lambda each: _classic_member(each, is_of_consumers, may_see)
        ),
    )


def _classic_member(
    member: DescribeGroupsMember, is_consumer: bool, may_see: Callable[[str], bool]
) -> GroupMember:
    view = GroupMember(
        member_id=member.member_id,
        client_id=member.client_id,
        host=_host(member.client_host),
        instance_id=member.group_instance_id,
    )
    if is_consumer:
        subscription = _decoded(ConsumerProtocolSubscription, member.member_metadata)
        assignment = _decoded(ConsumerProtocolAssignment, member.member_assignment)
        if subscription is not None:
            view.subscribed = sorted(filter(may_see, subscription.topics))
            view.rack_id = subscription.rack_id
        if assignment is not None:
            view.assignment = [
                AssignedPartitions(topic=each.topic, partitions=sorted(each.partitions))
                for each in assignment.assigned_partitions
                if may_see(each.topic)
            ]
    return view


def _decoded(message: type[M], data: bytes) -> M | None:
    """Decode what a member has written; None if it has written nothing, or something else."""
    try:
        return decode_versioned(message, data) if data else None
    except DecodeError:
        return None


# -- consumer and share groups ---------------------------------------------------------------------


async def _consumer(call: Call, group_id: str) -> DescribedGroup:
    request = ConsumerGroupDescribeRequest(
        group_ids=[group_id], include_authorized_operations=False
    )
    [group] = (await call.ask(request, ConsumerGroupDescribeResponse)).groups
    check_code(group.error_code, group.error_message)
    return DescribedGroup(
        state=group.group_state,
        protocol=GroupType.CONSUMER,
        assignor=group.assignor_name,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        members=_members(
            call, group.members, lambda each: _consumer_member(each, group.group_epoch)
        ),
    )


def _consumer_member(member: ConsumerGroupDescribeMember, group_epoch: int) -> GroupMember:
    assignment, target = _assigned(member.assignment), _assigned(member.target_assignment)
    return GroupMember(
        member_id=member.member_id,
        client_id=member.client_id,
        host=_host(member.client_host),
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        state=_state(member.member_epoch == group_epoch and assignment == target),
        subscribed=list(member.subscribed_topic_names),
        subscribed_pattern=member.subscribed_topic_regex or None,
        uses_classic_protocol=member.member_type == 0,
        assignment=assignment,
        target_assignment=target,
    )


async def _share(call: Call, group_id: str) -> DescribedGroup:
    request = ShareGroupDescribeRequest(group_ids=[group_id], include_authorized_operations=False)
    [group] = (await call.ask(request, ShareGroupDescribeResponse)).groups
    check_code(group.error_code, group.error_message)
    return DescribedGroup(
        state=group.group_state,
        protocol=GroupType.SHARE,
        assignor=group.assignor_name,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        members=_members(call, group.members, lambda each: _share_member(each, group.group_epoch)),
    )


def _share_member(member: ShareGroupDescribeMember, group_epoch: int) -> GroupMember:
    return GroupMember(
        member_id=member.member_id,
        client_id=member.client_id,
        host=_host(member.client_host),
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        state=_state(member.member_epoch == group_epoch),
        subscribed=list(member.subscribed_topic_names),
        assignment=_assigned(member.assignment),
    )


def _assigned(
    assignment: ConsumerGroupDescribeAssignment | ShareGroupDescribeAssignment,
) -> list[AssignedPartitions]:
    return sorted(
        (
            AssignedPartitions(topic=each.topic_name, partitions=list(each.partitions))
            for each in assignment.topic_partitions
        ),
        key=lambda each: each.topic,
    )


# -- streams groups --------------------------------------------------------------------------------


async def _streams(call: Call, group_id: str) -> DescribedGroup:
    request = StreamsGroupDescribeRequest(group_ids=[group_id], include_authorized_operations=False)
    [group] = (await call.ask(request, StreamsGroupDescribeResponse)).groups
    check_code(group.error_code, group.error_message)
    subtopologies = (group.topology.subtopologies if group.topology is not None else None) or []
    read_by = {each.subtopology_id: _topics_read(each) for each in subtopologies}
    return DescribedGroup(
        state=group.group_state,
        protocol=GroupType.STREAMS,
        assignor=group.assignor_name,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        members=_members(
            call,
            group.members,
            lambda each: _streams_member(call, each, group.group_epoch, read_by),
        ),
        topology=None
        if group.topology is None
        else TopologyView(
            epoch=group.topology.epoch,
            subtopologies=[_subtopology(each) for each in call.sliced(subtopologies)],
        ),
    )


def _topics_read(subtopology: StreamsGroupDescribeSubtopology) -> list[str]:
    repartitioned = (topic.name for topic in subtopology.repartition_source_topics)
    return sorted({*subtopology.source_topics, *repartitioned})


def _streams_member(
    call: Call,
    member: StreamsGroupDescribeMember,
    group_epoch: int,
    read_by: Mapping[str, list[str]],
) -> GroupMember:
    tasks, target = _tasks(member.assignment), _tasks(member.target_assignment)
    endpoint = member.user_endpoint
    return GroupMember(
        member_id=member.member_id,
        client_id=member.client_id,
        host=_host(member.client_host),
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        state=_state(member.member_epoch == group_epoch and tasks == target),
        assignment=_read_by_tasks(call, tasks.active, read_by),
        tasks=tasks,
        target_tasks=target,
        task_offsets=_task_offsets(member.task_offsets, member.task_end_offsets),
        process_id=member.process_id,
        endpoint=None if endpoint is None else f"{endpoint.host}:{endpoint.port}",
        client_tags={tag.key: tag.value for tag in member.client_tags},
    )


def _tasks(assignment: StreamsGroupDescribeAssignment) -> StreamsTasks:
    def of(tasks: Iterable[StreamsGroupDescribeTaskIds]) -> list[SubtopologyTasks]:
        return [
            SubtopologyTasks(subtopology_id=each.subtopology_id, partitions=list(each.partitions))
            for each in tasks
        ]

    return StreamsTasks(
        active=of(assignment.active_tasks),
        standby=of(assignment.standby_tasks),
        warmup=of(assignment.warmup_tasks),
    )


def _read_by_tasks(
    call: Call, tasks: Iterable[SubtopologyTasks], read_by: Mapping[str, list[str]]
) -> list[AssignedPartitions]:
    """The partitions that tasks read: of each topic that has the partition."""
    topics = call.observed.broker.metadata.topics
    assigned: list[AssignedPartitions] = []
    for task in tasks:
        for name in read_by.get(task.subtopology_id, ()):
            topic = topics.get(name)
            existing = () if topic is None else topic.partitions
            partitions = [each for each in task.partitions if each in existing]
            if partitions:
                assigned.append(AssignedPartitions(topic=name, partitions=partitions))
    return sorted(assigned, key=lambda each: each.topic)


def _task_offsets(
    restored: Iterable[StreamsGroupDescribeTaskOffset],
    ends: Iterable[StreamsGroupDescribeTaskOffset],
) -> list[TaskOffset]:
    restored_to = {(each.subtopology_id, each.partition): each.offset for each in restored}
    end_offsets = {(each.subtopology_id, each.partition): each.offset for each in ends}
    return [
        TaskOffset(
            subtopology_id=task[0],
            partition=task[1],
            offset=restored_to.get(task),
            end_offset=end_offsets.get(task),
        )
        for task in sorted({*restored_to, *end_offsets})
    ]


def _subtopology(found: StreamsGroupDescribeSubtopology) -> SubtopologyView:
    return SubtopologyView(
        subtopology_id=found.subtopology_id,
        source_topics=list(found.source_topics),
        repartition_source_topics=_internal_topics(found.repartition_source_topics),
        repartition_sink_topics=list(found.repartition_sink_topics),
        state_changelog_topics=_internal_topics(found.state_changelog_topics),
    )


def _internal_topics(topics: Iterable[StreamsGroupDescribeTopicInfo]) -> list[InternalTopicInfo]:
    return [InternalTopicInfo(name=each.name, partitions=each.partitions) for each in topics]


# -- all -------------------------------------------------------------------------------------------


def _members(
    call: Call, described_members: list[D], view_of: Callable[[D], GroupMember]
) -> list[GroupMember]:
    """Make the views of members, and free the descriptions: there may be thousands."""
    views = [view_of(member) for member in call.sliced(described_members)]
    free(call.slices.step, described_members)
    return views


def _host(client_host: str) -> str:
    """An address without the slash that Kafka prints before it."""
    return client_host.removeprefix("/")


def _state(has_reached_target: bool) -> str:
    return STABLE if has_reached_target else RECONCILING


class _Describe(Protocol):
    async def __call__(self, call: Call, group_id: str, /) -> DescribedGroup: ...


_DESCRIBE: Mapping[GroupType, _Describe] = {
    GroupType.CLASSIC: _classic,
    GroupType.CONSUMER: _consumer,
    GroupType.SHARE: _share,
    GroupType.STREAMS: _streams,
}
