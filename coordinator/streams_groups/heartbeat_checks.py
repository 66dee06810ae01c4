"""Validates the fields of a StreamsGroupHeartbeat, without looking at the group.

The member epoch gives the kind of request: 0 joins (the topology and the rebalance timeout are
required), a positive epoch is a heartbeat, -1 leaves, -2 is a static member that leaves for a
while. Source topics by regular expression are refused, as in Kafka 4.4.

Kafka: GroupCoordinatorService.throwIfStreamsGroupHeartbeatRequestIsInvalid,
throwIfStreamsGroupHeartbeatRequestIsUsingUnsupportedFeatures.
"""

from odradek.coordinator.modern_groups.heartbeat_fields import (
    NO_TIMEOUT,
    check_not_blank,
    invalid_request,
)
from odradek.coordinator.modern_groups.member import (
    JOINING_EPOCH,
    LEAVING_EPOCH,
    LEAVING_STATIC_EPOCH,
)
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
    check_not_blank("an instance id", request.instance_id)
    check_not_blank("a rack id", request.rack_id)
    if request.member_epoch == JOINING_EPOCH:
        _check_join(request, step)
    elif request.member_epoch < LEAVING_EPOCH and request.instance_id is None:
        raise invalid_request(
            f"{request.member_epoch} is not an epoch of a member without an instance id"
        )
    elif request.member_epoch < LEAVING_STATIC_EPOCH:
        raise invalid_request(f"{request.member_epoch} is not a member epoch")
    tasks = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    if any(of_kind is None for of_kind in tasks) and any(of_kind is not None for of_kind in tasks):
        raise invalid_request("a member must report its tasks of all kinds, or none")
    if request.member_epoch != JOINING_EPOCH and request.topology is not None:
        raise invalid_request("only a joining member may send a topology")


def _check_features(request: StreamsGroupHeartbeatRequest, step: Step) -> None:
    for subtopology in stepping(request.topology.subtopologies if request.topology else (), step):
        if subtopology.source_topic_regex:
            raise invalid_request("source topics by regular expression are not supported")


def _check_join(request: StreamsGroupHeartbeatRequest, step: Step) -> None:
    if request.rebalance_timeout_ms == NO_TIMEOUT:
        raise invalid_request("a joining member must set its rebalance timeout")
    tasks = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    if any(of_kind is None or of_kind for of_kind in tasks):
        raise invalid_request("a joining member must report that it has no tasks of any kind")
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
