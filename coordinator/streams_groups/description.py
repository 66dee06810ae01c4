"""The response of StreamsGroupDescribe for one streams group.

While the topology is ready, internal topics have the numbers of partitions that were decided;
else those in the topology, where 0 means undecided. Kafka: StreamsGroup.asDescribedGroup,
StreamsGroupMember.asStreamsGroupDescribeMember.
"""

from collections.abc import Callable, Iterable, Mapping, Set
from typing import TypeVar

from odradek.coordinator.runtime.steps import Step, in_order, no_step, sorted_in_steps, stepping
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.streams_group_describe import (
    StreamsGroupDescribeAssignment,
    StreamsGroupDescribeEndpoint,
    StreamsGroupDescribeGroup,
    StreamsGroupDescribeKeyValue,
    StreamsGroupDescribeMember,
    StreamsGroupDescribeSubtopology,
    StreamsGroupDescribeTaskIds,
    StreamsGroupDescribeTaskOffset,
    StreamsGroupDescribeTopicInfo,
    StreamsGroupDescribeTopology,
)
from odradek.protocol.records.streams_group import Endpoint, Subtopology, TopicInfo

from .configuration import ConfiguredSubtopology, InternalTopic
from .group import StreamsGroup
from .member import StreamsMember
from .sticky_assignor import ASSIGNOR_NAME
from .task_offsets import Offsets
from .tasks import NOTHING, Tasks

# On the wire: never renumber. A readable topology was not asked for, or is not stored.
NOT_REQUESTED = 0
NOT_STORED = 1

T = TypeVar("T", InternalTopic, TopicInfo)


def described(
    group: StreamsGroup,
    authorized_operations: int,
    step: Step = no_step,
    *,
    wants_readable_topology: bool,
) -> StreamsGroupDescribeGroup:
    """Describe the group and all its members as they are now, in steps.

    Raises ApiError UNKNOWN_SERVER_ERROR if the group has no topology.
    """
    targets, members = dict(group.targets), list(group.members.values())
    return StreamsGroupDescribeGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        topology=_topology(group, step),
        members=[
            _member(group, member, targets.get(member.member_id, NOTHING), step)
            for member in stepping(members, step)
        ],
        authorized_operations=authorized_operations,
        topology_description_status=NOT_STORED if wants_readable_topology else NOT_REQUESTED,
        assignor_name=ASSIGNOR_NAME,
    )


# -- the topology ----------------------------------------------------------------------------------


def _topology(group: StreamsGroup, step: Step) -> StreamsGroupDescribeTopology:
    configured, topology = group.configured, group.topology
    if topology is None:
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "the group has no topology")
    if configured is not None and configured.is_ready and configured.subtopologies is not None:
        subtopologies = [
            _describe_configured(*item, step)
            for item in stepping(configured.subtopologies.items(), step)
        ]
    else:
        names = sorted_in_steps(topology.subtopologies, step)
        subtopologies = [
            _describe_stored(topology.subtopologies[name], step) for name in stepping(names, step)
        ]
    return StreamsGroupDescribeTopology(epoch=topology.epoch, subtopologies=subtopologies)


def _describe_configured(
    subtopology_id: str, found: ConfiguredSubtopology, step: Step
) -> StreamsGroupDescribeSubtopology:
    return StreamsGroupDescribeSubtopology(
        subtopology_id=subtopology_id,
        source_topics=sorted_in_steps(found.source_topics, step),
        repartition_sink_topics=sorted_in_steps(found.repartition_sinks, step),
        state_changelog_topics=_topics(found.changelogs.values(), _configured_topic, step),
        repartition_source_topics=_topics(
            found.repartition_sources.values(), _configured_topic, step
        ),
    )


def _describe_stored(found: Subtopology, step: Step) -> StreamsGroupDescribeSubtopology:
    return StreamsGroupDescribeSubtopology(
        subtopology_id=found.subtopology_id,
        source_topics=sorted_in_steps(found.source_topics, step),
        repartition_sink_topics=sorted_in_steps(found.repartition_sink_topics, step),
        state_changelog_topics=_topics(found.state_changelog_topics, _stored_topic, step),
        repartition_source_topics=_topics(found.repartition_source_topics, _stored_topic, step),
    )


def _configured_topic(topic: InternalTopic) -> StreamsGroupDescribeTopicInfo:
    return StreamsGroupDescribeTopicInfo(
        name=topic.name,
        partitions=topic.partition_count,
        replication_factor=topic.replication_factor,
        topic_configs=_pairs(topic.configs),
    )


def _stored_topic(topic: TopicInfo) -> StreamsGroupDescribeTopicInfo:
    return StreamsGroupDescribeTopicInfo(
        name=topic.name,
        partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        topic_configs=_pairs({config.key: config.value for config in topic.topic_configs}),
    )


def _topics(
    topics: Iterable[T], describe: Callable[[T], StreamsGroupDescribeTopicInfo], step: Step
) -> list[StreamsGroupDescribeTopicInfo]:
    by_name = in_order(list(topics), step, key=lambda topic: topic.name)
    return [describe(topic) for topic in by_name]


def _pairs(found: Mapping[str, str]) -> list[StreamsGroupDescribeKeyValue]:
    return [StreamsGroupDescribeKeyValue(key=key, value=value) for key, value in found.items()]


# -- the members -----------------------------------------------------------------------------------


def _member(
    group: StreamsGroup, member: StreamsMember, target: Tasks, step: Step
) -> StreamsGroupDescribeMember:
    assigned, offsets = member.assigned, group.task_offsets_of(member.member_id)
    active = {name: epochs.keys() for name, epochs in assigned.active.items()}
    return StreamsGroupDescribeMember(
        member_id=member.member_id,
        member_epoch=member.member_epoch,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=_endpoint(member.user_endpoint),
        client_tags=_pairs(member.client_tags),
        task_offsets=_offsets(offsets.restored, step),
        task_end_offsets=_offsets(offsets.ends, step),
        assignment=_assignment(step, active, assigned.standby, assigned.warmup),
        target_assignment=_assignment(step, target.active, target.standby, target.warmup),
        is_classic=False,
    )


def _endpoint(found: Endpoint | None) -> StreamsGroupDescribeEndpoint | None:
    return None if found is None else StreamsGroupDescribeEndpoint(host=found.host, port=found.port)


def _assignment(step: Step, *kinds: Mapping[str, Set[int]]) -> StreamsGroupDescribeAssignment:
    active, standby, warmup = (
        [
            StreamsGroupDescribeTaskIds(subtopology_id=name, partitions=sorted(partitions))
            for name, partitions in stepping(sorted(tasks.items()), step)
        ]
        for tasks in kinds
    )
    return StreamsGroupDescribeAssignment(
        active_tasks=active, standby_tasks=standby, warmup_tasks=warmup
    )


def _offsets(offsets: Offsets, step: Step) -> list[StreamsGroupDescribeTaskOffset]:
    return [
        StreamsGroupDescribeTaskOffset(subtopology_id=name, partition=partition, offset=offset)
        for (name, partition), offset in in_order(list(offsets.items()), step)
    ]
