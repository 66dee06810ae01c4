"""Validates the fields of a StreamsGroupHeartbeat, without looking at the group.

The member epoch gives the kind of request: 0 joins (the topology and the rebalance timeout are
required), a positive epoch is a heartbeat, -1 leaves. Static members, warm-up tasks, task offsets,
and source topics by regular expression are refused, as in Kafka 4.3.

Kafka: GroupCoordinatorService.throwIfStreamsGroupHeartbeatRequestIsInvalid,
throwIfStreamsGroupHeartbeatRequestIsUsingUnsupportedFeatures.
"""

from odradek.coordinator.modern_groups.heartbeat_fields import (
    NO_TIMEOUT,
    check_not_blank,
    invalid_request,
)
from odradek.coordinator.modern_groups.member import JOINING_EPOCH, LEAVING_EPOCH
from odradek.coordinator.runtime.steps import Step, no_step, stepping
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatTopology,
)

# The records of a decision are replayed at once, which takes 2 us for each subtopology. Kafka has
# no limit but the size of the records, about 20,000 subtopologies that have names.
MAX_SUBTOPOLOGIES = 2_000


def check_heartbeat(request: StreamsGroupHeartbeatRequest, step: Step = no_step) -> None:
    """Check a request. Raises ApiError: INVALID_REQUEST, STREAMS_INVALID_TOPOLOGY."""
    _check_features(request, step)
    check_not_blank("a member id", request.member_id)
    check_not_blank("a group id", request.group_id)
    check_not_blank("a rack id", request.rack_id)
    if request.member_epoch == JOINING_EPOCH:
        _check_join(request, step)
    elif request.member_epoch < LEAVING_EPOCH:
        raise invalid_request(
            f"{request.member_epoch} is not an epoch of a member without an instance id"
        )
    tasks = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    if any(of_kind is None for of_kind in tasks) and any(of_kind is not None for of_kind in tasks):
        raise invalid_request("a member must report its tasks of all kinds, or none")
    if request.member_epoch != JOINING_EPOCH and request.topology is not None:
        raise invalid_request("only a joining member may send a topology")


def _check_features(request: StreamsGroupHeartbeatRequest, step: Step) -> None:
    if request.instance_id is not None:
        raise invalid_request("static members of streams groups are not supported")
    if request.task_offsets is not None or request.task_end_offsets is not None:
        raise invalid_request("offsets of tasks are not supported")
    if request.warmup_tasks:
        raise invalid_request("warm-up tasks are not supported")
    for subtopology in stepping(request.topology.subtopologies if request.topology else (), step):
        if subtopology.source_topic_regex:
            raise invalid_request("source topics by regular expression are not supported")


def _check_join(request: StreamsGroupHeartbeatRequest, step: Step) -> None:
    if request.rebalance_timeout_ms == NO_TIMEOUT:
        raise invalid_request("a joining member must set its rebalance timeout")
    if request.active_tasks is None or request.active_tasks:
        raise invalid_request("a joining member must report that it has no active tasks")
    if request.standby_tasks is None or request.standby_tasks:
        raise invalid_request("a joining member must report that it has no standby tasks")
    if request.topology is None:
        raise invalid_request("a joining member must send its topology")
    if len(request.topology.subtopologies) > MAX_SUBTOPOLOGIES:
        raise ApiError(
            ErrorCode.STREAMS_INVALID_TOPOLOGY,
            f"the topology has {len(request.topology.subtopologies)} subtopologies, the limit is "
            f"{MAX_SUBTOPOLOGIES}",
        )
    _check_changelogs(request.topology, step)


def _check_changelogs(topology: StreamsGroupHeartbeatTopology, step: Step) -> None:
    for subtopology in stepping(topology.subtopologies, step):
        for topic in stepping(subtopology.state_changelog_topics, step):
            if topic.partitions:
                raise ApiError(
                    ErrorCode.STREAMS_INVALID_TOPOLOGY,
                    f"changelog topic {topic.name} has {topic.partitions} partitions: the "
                    "coordinator decides, so it must be 0",
                )
