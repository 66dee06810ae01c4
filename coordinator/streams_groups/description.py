"""The response of StreamsGroupDescribe for one streams group.

While the topology is ready, internal topics have the numbers of partitions that were decided;
else those in the topology, where 0 means undecided. Kafka: StreamsGroup.asDescribedGroup,
StreamsGroupMember.asStreamsGroupDescribeMember.
"""

from collections.abc import Iterable, Mapping, Set

from odradek.coordinator.runtime.steps import Step, no_step, stepping
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
    targets = dict(group.targets)
    return StreamsGroupDescribeGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        topology=_topology(group),
        members=[
            _member(group, member, targets.get(member.member_id, NOTHING))
            for member in stepping(group.members.values(), step)
        ],
        authorized_operations=authorized_operations,
        topology_description_status=NOT_STORED if wants_readable_topology else NOT_REQUESTED,
        assignor_name=ASSIGNOR_NAME,
    )


# -- the topology ----------------------------------------------------------------------------------


def _topology(group: StreamsGroup) -> StreamsGroupDescribeTopology:
    configured, topology = group.configured, group.topology
    if topology is None:
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "the group has no topology")
    if configured is not None and configured.is_ready and configured.subtopologies is not None:
        subtopologies = [_describe_configured(*item) for item in configured.subtopologies.items()]
    else:
        stored = sorted(topology.subtopologies.items())
        subtopologies = [_describe_stored(found) for _, found in stored]
    return StreamsGroupDescribeTopology(epoch=topology.epoch, subtopologies=subtopologies)


def _describe_configured(
    subtopology_id: str, found: ConfiguredSubtopology
) -> StreamsGroupDescribeSubtopology:
    return StreamsGroupDescribeSubtopology(
        subtopology_id=subtopology_id,
        source_topics=sorted(found.source_topics),
        repartition_sink_topics=sorted(found.repartition_sinks),
        state_changelog_topics=_in_order(map(_configured_topic, found.changelogs.values())),
        repartition_source_topics=_in_order(
            map(_configured_topic, found.repartition_sources.values())
        ),
    )


def _describe_stored(found: Subtopology) -> StreamsGroupDescribeSubtopology:
    return StreamsGroupDescribeSubtopology(
        subtopology_id=found.subtopology_id,
        source_topics=sorted(found.source_topics),
        repartition_sink_topics=sorted(found.repartition_sink_topics),
        state_changelog_topics=_in_order(map(_stored_topic, found.state_changelog_topics)),
        repartition_source_topics=_in_order(map(_stored_topic, found.repartition_source_topics)),
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


def _in_order(
    topics: Iterable[StreamsGroupDescribeTopicInfo],
) -> list[StreamsGroupDescribeTopicInfo]:
    return sorted(topics, key=lambda topic: topic.name)


def _pairs(found: Mapping[str, str]) -> list[StreamsGroupDescribeKeyValue]:
    return [StreamsGroupDescribeKeyValue(key=key, value=value) for key, value in found.items()]


# -- the members -----------------------------------------------------------------------------------


def _member(
    group: StreamsGroup, member: StreamsMember, target: Tasks
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
        task_offsets=_offsets(offsets.restored),
        task_end_offsets=_offsets(offsets.ends),
        assignment=_assignment(active, assigned.standby, assigned.warmup),
        target_assignment=_assignment(target.active, target.standby, target.warmup),
        is_classic=False,
    )


def _endpoint(found: Endpoint | None) -> StreamsGroupDescribeEndpoint | None:
    return None if found is None else StreamsGroupDescribeEndpoint(host=found.host, port=found.port)


def _assignment(*kinds: Mapping[str, Set[int]]) -> StreamsGroupDescribeAssignment:
    active, standby, warmup = (
        [
            StreamsGroupDescribeTaskIds(subtopology_id=name, partitions=sorted(partitions))
            for name, partitions in sorted(tasks.items())
        ]
        for tasks in kinds
    )
    return StreamsGroupDescribeAssignment(
        active_tasks=active, standby_tasks=standby, warmup_tasks=warmup
    )


def _offsets(offsets: Offsets) -> list[StreamsGroupDescribeTaskOffset]:
    return [
        StreamsGroupDescribeTaskOffset(subtopology_id=name, partition=partition, offset=offset)
        for (name, partition), offset in sorted(offsets.items())
    ]
