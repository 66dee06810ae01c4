"""The response to the heartbeat of a member that stays.

It contains the member's tasks if they have changed, or if it joins, and always the statuses of the
group (status.py). Kafka: the end of GroupMetadataManager.streamsGroupHeartbeat.
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
from .member import StreamsMember
from .status import StatusCode

TaskIds = list[StreamsGroupHeartbeatTaskIds]


def respond(
    draft: StreamsDraft,
    request: StreamsGroupHeartbeatRequest,
    *,
    before: StreamsMember,
    member: StreamsMember,
    topology: ConfiguredTopology,
    interval_ms: int,
    partition_count: PartitionCount,
) -> StreamsGroupHeartbeatResponse:
    """Respond to a member, which was `before` and is now `member`."""
    group = draft.group
    has_news = request.member_epoch == JOINING_EPOCH or member.assigned != before.assigned
    endpoint_epoch = group.endpoint_epoch
    if has_news and member.user_endpoint is not None:
        endpoint_epoch += 1
        draft.then.append(group.note_endpoints_changed)
    endpoints = None
    if endpoint_epoch != request.endpoint_information_epoch:
        others = (one for one in group.members.values() if one.member_id != member.member_id)
        endpoints = partitions_by_endpoint([*others, member], topology, partition_count, draft.step)
    active, standby, warmup = _tasks_of(member, draft.step) if has_news else (None, None, None)
    return StreamsGroupHeartbeatResponse(
        member_id=member.member_id,
        member_epoch=member.member_epoch,
        heartbeat_interval_ms=interval_ms,
        status=_statuses(draft, request, topology),
        active_tasks=active,
        standby_tasks=standby,
        warmup_tasks=warmup,
        partitions_by_user_endpoint=endpoints,
        # A new group has epoch 0 after this, because its soft state is not kept.
        endpoint_information_epoch=0 if draft.is_new else endpoint_epoch,
    )


def _statuses(
    draft: StreamsDraft, request: StreamsGroupHeartbeatRequest, topology: ConfiguredTopology
) -> list[StreamsGroupHeartbeatStatus]:
    if topology.problem is not None:
        draft.statuses.append(topology.problem)
    group, requested_by = draft.group, draft.group.shutdown_requested_by
    if request.shutdown_application:
        draft.then.append(partial(group.note_shutdown_request, request.member_id))
        requested_by = requested_by or request.member_id
    if requested_by is not None:
        detail = f"The member {requested_by} has asked the whole application to stop."
        draft.add_status(StatusCode.SHUTDOWN_APPLICATION, detail)
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
