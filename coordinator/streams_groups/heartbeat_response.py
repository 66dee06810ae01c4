"""The response to the heartbeat of a member that stays.

It contains the member's tasks if they have changed, or if it joins, and always the statuses of the
group (status.py). The draft's `step` is called again and again while tasks are listed, so that
others are served (runtime/steps.py). Kafka: the end of GroupMetadataManager.streamsGroupHeartbeat.
"""

from collections.abc import Mapping, Set
from functools import partial

from odradek.coordinator.modern_groups.member import JOINING_EPOCH
from odradek.coordinator.runtime.steps import Step, stepping
from odradek.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    StreamsGroupHeartbeatStatus,
    StreamsGroupHeartbeatTaskIds,
)

from .configuration import ConfiguredTopology
from .draft import StreamsDraft
from .endpoints import PartitionCount, partitions_by_endpoint
from .group_configs import RACK_AWARE_TAGS, StreamsGroupConfigs
from .member import StreamsMember
from .status import StatusCode

_FIRST_VERSION_WITH_MISSING_TAGS = 1
TaskIds = list[StreamsGroupHeartbeatTaskIds]


def respond(
    draft: StreamsDraft,
    request: StreamsGroupHeartbeatRequest,
    *,
    before: StreamsMember,
    member: StreamsMember,
    topology: ConfiguredTopology,
    configs: StreamsGroupConfigs,
    partition_count: PartitionCount,
    api_version: int,
) -> StreamsGroupHeartbeatResponse:
    """Make the response to a member. `before` is its state before this heartbeat.

    What the group must remember of it is added to `draft.then`.
    """
    group = draft.group
    tasks_changed = member.assigned != before.assigned
    sends_tasks = request.member_epoch == JOINING_EPOCH or tasks_changed
    endpoint_epoch = group.endpoint_epoch
    endpoint_changed = member.user_endpoint != before.user_endpoint
    if endpoint_changed or (tasks_changed and member.user_endpoint is not None):
        endpoint_epoch += 1
        draft.then.append(group.note_endpoints_changed)  # the group's epoch, after the write
    endpoints = None
    if endpoint_epoch != request.endpoint_information_epoch:
        # The group still has the old state of the member, or the static member that it replaces.
        outdated = {member.member_id, group.previous_id(member)}
        others = (other for other in group.members.values() if other.member_id not in outdated)
        endpoints = partitions_by_endpoint([*others, member], topology, partition_count, draft.step)
    active, standby, warmup = _tasks_of(member, draft.step) if sends_tasks else (None, None, None)
    return StreamsGroupHeartbeatResponse(
        member_id=member.member_id,
        member_epoch=member.member_epoch,
        heartbeat_interval_ms=configs.heartbeat_interval_ms(group.group_id),
        task_offset_interval_ms=configs.task_offset_interval_ms(group.group_id),
        acceptable_recovery_lag=configs.acceptable_recovery_lag(group.group_id),
        status=_statuses(draft, request, topology, member, api_version),
        active_tasks=active,
        standby_tasks=standby,
        warmup_tasks=warmup,
        partitions_by_user_endpoint=endpoints,
        # What `draft.then` does to a new group is lost (modern_groups/draft.py): it begins at 0.
        endpoint_information_epoch=0 if draft.is_new else endpoint_epoch,
    )


def _statuses(
    draft: StreamsDraft,
    request: StreamsGroupHeartbeatRequest,
    topology: ConfiguredTopology,
    member: StreamsMember,
    api_version: int,
) -> list[StreamsGroupHeartbeatStatus]:
    """Complete the statuses of the draft, and return them all."""
    if topology.problem is not None:
        draft.statuses.append(topology.problem)
    group, requested_by = draft.group, draft.group.shutdown_requested_by
    if request.shutdown_application:
        draft.then.append(partial(group.note_shutdown_request, request.member_id))
        requested_by = requested_by or request.member_id
    if requested_by is not None:
        detail = f"The member {requested_by} has asked the whole application to stop."
        draft.add_status(StatusCode.SHUTDOWN_APPLICATION, detail)
    required = draft.assignment_configs.get(RACK_AWARE_TAGS, "")
    missing = [tag for tag in required.split(",") if tag and tag not in member.client_tags]
    if missing and api_version >= _FIRST_VERSION_WITH_MISSING_TAGS:
        detail = (
            "Missing required client tags for rack-aware standby assignment: "
            f"[{', '.join(missing)}]. Configure them via 'client.tag.<tagKey>' in your Streams "
            "config."
        )
        draft.add_status(StatusCode.MISSING_CLIENT_TAGS, detail)
    return [
        StreamsGroupHeartbeatStatus(status_code=code, status_detail=detail)
        for code, detail in draft.statuses
    ]


def _tasks_of(member: StreamsMember, step: Step) -> tuple[TaskIds, TaskIds, TaskIds]:
    """Return the active, standby and warm-up tasks of a member."""
    assigned = member.assigned
    active = {name: epochs.keys() for name, epochs in assigned.active.items()}
    return (
        _task_ids(active, step),
        _task_ids(assigned.standby, step),
        _task_ids(assigned.warmup, step),
    )


def _task_ids(tasks: Mapping[str, Set[int]], step: Step) -> TaskIds:
    return [
        StreamsGroupHeartbeatTaskIds(subtopology_id=name, partitions=sorted(partitions))
        for name, partitions in stepping(sorted(tasks.items()), step)
    ]
