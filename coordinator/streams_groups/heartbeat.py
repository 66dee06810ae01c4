"""Serves StreamsGroupHeartbeat: a member joins, reports its tasks, gets its assignment, or leaves.

    find the member      a known one, or a new one
    the topology         rebalance.py    update_topology, configure
    the targets          rebalance.py    bump_epoch, update_target
    its assignment       rebalance.py    reconcile: one step towards the target
    the response         heartbeat_response.py
    leaving              leave.py

A request contains only what has changed since the last one; null means "unchanged". Internal topics
that are missing are part of the reply: the broker creates them.

Kafka: GroupMetadataManager.streamsGroupHeartbeat.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

from msgspec.structs import replace

from odradek.coordinator.any_group.caller import Caller
from odradek.coordinator.any_group.group import Group
from odradek.coordinator.classic_groups.group import ClassicGroup
from odradek.coordinator.modern_groups.draft import DraftResult
from odradek.coordinator.modern_groups.heartbeat_fields import NO_TIMEOUT, invalid_request
from odradek.coordinator.modern_groups.member import (
    JOINING_EPOCH,
    LEAVING_EPOCH,
    LEAVING_STATIC_EPOCH,
)
from odradek.coordinator.runtime.outcome import Outcome
from odradek.coordinator.runtime.steps import Step, stepping, stepping_if_many
from odradek.coordinator.runtime.timers import Now
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)
from odradek.protocol.records.streams_group import Endpoint

from .configuration import ConfiguredTopology, InternalTopic
from .deadlines import StreamsDeadlines
from .draft import StreamsDraft
from .group import StreamsGroup
from .group_configs import StreamsGroupConfigs
from .heartbeat_response import respond
from .leave import leave_for_a_while, remove_member
from .member import StreamsMember
from .membership import joining_member
from .rebalance import StreamsRebalance
from .records import member_record
from .tasks import Tasks, are_owned, task_set


class HeartbeatReply(NamedTuple):
    """The response, and the internal topics to create, by name."""

    response: StreamsGroupHeartbeatResponse
    missing_topics: Mapping[str, InternalTopic]


Answer = Outcome[DraftResult[HeartbeatReply]]


class StreamsHeartbeats:
    """Serves the heartbeats of all streams groups."""

    def __init__(
        self,
        *,
        configs: StreamsGroupConfigs,
        deadlines: StreamsDeadlines,
        rebalance: StreamsRebalance,
    ) -> None:
        self._configs = configs
        self._deadlines = deadlines
        self._rebalance = rebalance

    def serve(
        self,
        group: Group | None,
        partition: int,
        request: StreamsGroupHeartbeatRequest,
        caller: Caller,
        now: Now,
        step: Step,
    ) -> Answer:
        """Decide about a checked request; `group` is the group of that id, or None.

        `partition` names the shard that has the group, or will have it.

        Raises ApiError: GROUP_ID_NOT_FOUND, GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID,
        FENCED_MEMBER_EPOCH, INVALID_REQUEST, STREAMS_INVALID_TOPOLOGY, UNKNOWN_SERVER_ERROR.
        """
        if request.member_epoch in (LEAVING_EPOCH, LEAVING_STATIC_EPOCH):
            return self._leave(group, request, now, step)
        draft = self._open_draft(group, partition, request, now, step)
        reported = _reported(request, step)
        member = self._find_member(draft, request)
        check_epoch(member, request.member_epoch, reported)
        return self._serve_member(draft, member, request, caller, reported)

    def _leave(
        self, group: Group | None, request: StreamsGroupHeartbeatRequest, now: Now, step: Step
    ) -> Answer:
        if not isinstance(group, StreamsGroup):
            raise _no_group(request.group_id)
        response = StreamsGroupHeartbeatResponse(
            member_id=request.member_id, member_epoch=request.member_epoch
        )
        member = group.requesting_member(request.member_id, request.instance_id)
        if request.member_epoch == LEAVING_STATIC_EPOCH:
            return leave_for_a_while(group, member, now, HeartbeatReply(response, {}), step)
        return remove_member(
            group,
            member,
            self._deadlines,
            now,
            HeartbeatReply(response, {}),
            shuts_down=request.shutdown_application,
        )

    # -- the group and the member ------------------------------------------------------------------

    def _open_draft(
        self,
        group: Group | None,
        partition: int,
        request: StreamsGroupHeartbeatRequest,
        now: Now,
        step: Step,
    ) -> StreamsDraft:
        """Open a draft. A joining member may create the group, or replace an empty classic one."""
        if isinstance(group, StreamsGroup):
            return StreamsDraft(group, now, step)
        if request.member_epoch != JOINING_EPOCH:
            raise _no_group(request.group_id)
        draft = StreamsDraft(StreamsGroup(request.group_id, partition), now, step, is_new=True)
        if group is None:
            return draft
        if not isinstance(group, ClassicGroup) or not group.is_empty:
            raise _no_group(request.group_id)
        draft.records += group.tombstones()
        return draft

    def _find_member(
        self, draft: StreamsDraft, request: StreamsGroupHeartbeatRequest
    ) -> StreamsMember:
        """Return the member as it is before this heartbeat."""
        group, instance_id = draft.group, request.instance_id
        if request.member_epoch != JOINING_EPOCH:
            return group.requesting_member(request.member_id, instance_id)
        returns = instance_id in group.static_member_ids
        group.check_size(request.member_id, self._configs.broker.max_size, returns=returns)
        return joining_member(draft, request.member_id, instance_id, self._deadlines)

    # -- the steps ---------------------------------------------------------------------------------

    def _serve_member(
        self,
        draft: StreamsDraft,
        member: StreamsMember,
        request: StreamsGroupHeartbeatRequest,
        caller: Caller,
        reported: Tasks | None,
    ) -> Answer:
        rebalance = self._rebalance
        updated = _updated_member(member, request, caller, draft.step)
        if updated is not member:
            draft.records.append(member_record(draft.group_id, updated))
        offsets = draft.group.task_offsets_of(member.member_id).updated(
            request.task_offsets, request.task_end_offsets, draft.step
        )
        draft.task_offsets[member.member_id] = offsets
        note = draft.group.note_task_offsets
        draft.then.append(partial(note, member.member_id, offsets))
        topology = rebalance.update_topology(draft, updated, request.topology)
        configured = rebalance.configure(draft, topology)
        _check_tasks(configured.topology, reported, draft.step)
        changed = updated is not member and (
            updated.instance_id is None or _needs_new_target(member, updated)
        )
        rebalance.bump_epoch(draft, configured, changed=changed)
        target = rebalance.update_target(draft, updated, configured.topology)
        reconciled = rebalance.reconcile(draft, updated, target, reported)
        key = draft.group.key_of(member.member_id)
        until_ms = draft.now.timer_ms + self._configs.session_timeout_ms(draft.group_id)
        draft.then.append(partial(self._deadlines.sessions.schedule, key, until_ms))
        response = respond(
            draft,
            request,
            before=member,
            member=reconciled,
            topology=configured.topology,
            configs=self._configs,
            partition_count=rebalance.partition_count,
            api_version=caller.api_version,
        )
        return draft.outcome(HeartbeatReply(response, configured.topology.missing))


def check_epoch(member: StreamsMember, epoch: int, reported: Tasks | None) -> None:
    """Raise ApiError FENCED_MEMBER_EPOCH unless the epoch in a request is the member's.

    The previous epoch is accepted if all tasks that the member reports are assigned to it: it may
    have missed the response with the new epoch. Epoch 0 is a join, also for a known member.
    """
    if epoch in (JOINING_EPOCH, member.member_epoch):
        return
    is_previous = epoch == member.previous_member_epoch and epoch < member.member_epoch
    if is_previous and are_owned(reported, member.assigned):
        return
    raise ApiError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"member {member.member_id} is at epoch {member.member_epoch}, not {epoch}: "
        "it must give up all its tasks and join again",
    )


def _no_group(group_id: str) -> ApiError:
    return ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no streams group {group_id}")


def _reported(request: StreamsGroupHeartbeatRequest, step: Step) -> Tasks | None:
    """Return the tasks that the member reports; None if it does not report them."""
    active, standby, warmup = request.active_tasks, request.standby_tasks, request.warmup_tasks
    if active is None or standby is None or warmup is None:
        return None
    return Tasks(task_set(active, step), task_set(standby, step), task_set(warmup, step))


def _updated_member(
    member: StreamsMember, request: StreamsGroupHeartbeatRequest, caller: Caller, step: Step
) -> StreamsMember:
    """Return the member with the request's fields; the same object if nothing changes."""
    timeout_ms, tags = request.rebalance_timeout_ms, request.client_tags
    topology, endpoint = request.topology, request.user_endpoint
    reported = {
        "instance_id": request.instance_id,
        "rack_id": request.rack_id,
        "rebalance_timeout_ms": None if timeout_ms == NO_TIMEOUT else timeout_ms,
        "topology_epoch": None if topology is None else topology.epoch,
        "process_id": request.process_id,
        "client_tags": None
        if tags is None
        else {tag.key: tag.value for tag in stepping_if_many(tags, step)},
        "user_endpoint": None
        if endpoint is None
        else Endpoint(host=endpoint.host, port=endpoint.port),
        "client_id": caller.client_id,
        "client_host": caller.client_host,
    }
    changes: dict[str, Any] = {
        name: value
        for name, value in reported.items()
        if value is not None and value != getattr(member, name)
    }
    if request.member_epoch == JOINING_EPOCH and endpoint is None and member.user_endpoint:
        changes["user_endpoint"] = None
    return replace(member, **changes) if changes else member


def _needs_new_target(member: StreamsMember, updated: StreamsMember) -> bool:
    """Whether the change of a static member matters to the assignor."""
    return any(
        getattr(member, name) != getattr(updated, name)
        for name in ("topology_epoch", "rack_id", "client_tags", "process_id")
    )


def _check_tasks(topology: ConfiguredTopology, reported: Tasks | None, step: Step) -> None:
    """Raise ApiError INVALID_REQUEST for a task that the topology does not have."""
    if not topology.is_ready or reported is None or topology.subtopologies is None:
        return
    for of_kind in (reported.active, reported.standby, reported.warmup):
        for subtopology_id, partitions in stepping(of_kind.items(), step):
            subtopology = topology.subtopologies.get(subtopology_id)
            if subtopology is None:
                raise invalid_request(f"there is no subtopology {subtopology_id}")
            count = subtopology.task_count
            for partition in stepping(iter(partitions), step):
                if not 0 <= partition < count:
                    raise invalid_request(
                        f"subtopology {subtopology_id} has {count} tasks, and no task {partition}"
                    )
