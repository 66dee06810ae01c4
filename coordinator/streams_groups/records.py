"""The records of streams groups in `__consumer_offsets`: state to records, and back.

Types 17 and 19 to 23. Maps are written in the order of their keys, as Kafka writes them.
Kafka: StreamsCoordinatorRecordHelpers; the updateWith methods of StreamsGroupMember.
"""

import logging
from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from odradek.coordinator.modern_groups.member import MemberState
from odradek.coordinator.runtime.outcome import JournalRecord
from odradek.coordinator.runtime.steps import Step, no_step, stepping, stepping_if_many
from odradek.protocol.records.streams_group import (
    ClientTag,
    CurrentTasks,
    LastAssignmentConfig,
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataKey,
    StreamsGroupMemberMetadataValue,
    StreamsGroupMetadataKey,
    StreamsGroupMetadataValue,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupTargetAssignmentMemberValue,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTargetAssignmentMetadataValue,
    StreamsGroupTopologyKey,
    StreamsGroupTopologyValue,
    TargetTasks,
)

from .member import StreamsMember
from .tasks import OwnedTasks, TaskEpochs, Tasks, TaskSet, task_set

logger = logging.getLogger("odradek.groups")

# On disk: never renumber. Other groups number the states from 0.
_NUMBERS = {
    MemberState.STABLE: 1,
    MemberState.UNREVOKED_PARTITIONS: 2,
    MemberState.UNRELEASED_PARTITIONS: 3,
    MemberState.UNKNOWN: 127,
}
_STATES = {number: state for state, number in _NUMBERS.items()}


# -- a member's records ----------------------------------------------------------------------------


def member_record(group_id: str, member: StreamsMember) -> JournalRecord:
    """What a member has reported about itself (type 19)."""
    value = StreamsGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=member.user_endpoint,
        client_tags=[
            ClientTag(key=key, value=tag) for key, tag in sorted(member.client_tags.items())
        ],
    )
    key = StreamsGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id)
    return JournalRecord(value, key=key)


def current_assignment_record(
    group_id: str, member: StreamsMember, step: Step = no_step
) -> JournalRecord:
    """The tasks that a member owns, and those it must give up (type 22)."""
    assigned, pending = member.assigned, member.pending_revocation
    value = StreamsGroupCurrentMemberAssignmentValue(
        member_epoch=member.member_epoch,
        previous_member_epoch=member.previous_member_epoch,
        state=_NUMBERS[member.state],
        active_tasks=_active(assigned.active, step),
        standby_tasks=_current(assigned.standby, step),
        warmup_tasks=_current(assigned.warmup, step),
        active_tasks_pending_revocation=_active(pending.active, step),
        standby_tasks_pending_revocation=_current(pending.standby, step),
        warmup_tasks_pending_revocation=_current(pending.warmup, step),
    )
    key = StreamsGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id)
    return JournalRecord(value, key=key)


def target_record(
    group_id: str, member_id: str, target: Tasks, step: Step = no_step
) -> JournalRecord:
    """A member's target assignment (type 21)."""
    value = StreamsGroupTargetAssignmentMemberValue(
        active_tasks=_target(target.active, step),
        standby_tasks=_target(target.standby, step),
        warmup_tasks=_target(target.warmup, step),
    )
    key = StreamsGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
    return JournalRecord(value, key=key)


# The keys of a member's records, in the order in which Kafka writes their tombstones.
MEMBER_KEYS = (
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupMemberMetadataKey,
)


def member_tombstones(group_id: str, member_id: str) -> list[JournalRecord]:
    """Return the tombstones that remove a member."""
    return [
        JournalRecord(None, key=key_type(group_id=group_id, member_id=member_id))
        for key_type in MEMBER_KEYS
    ]


# -- the group's own records -----------------------------------------------------------------------


def epoch_record(
    group_id: str,
    epoch: int,
    metadata_hash: int,
    validated_topology_epoch: int,
    assignment_configs: Mapping[str, str],
    *,
    stored_description_epoch: int = -1,
    failed_description_epoch: int = -1,
) -> JournalRecord:
    """The group epoch, and what it depends on (type 17)."""
    value = StreamsGroupMetadataValue(
        epoch=epoch,
        metadata_hash=metadata_hash,
        validated_topology_epoch=validated_topology_epoch,
        last_assignment_configs=[
            LastAssignmentConfig(key=key, value=setting)
            for key, setting in sorted(assignment_configs.items())
        ],
        stored_description_topology_epoch=stored_description_epoch,
        failed_description_topology_epoch=failed_description_epoch,
    )
    return JournalRecord(value, key=StreamsGroupMetadataKey(group_id=group_id))


def topology_record(group_id: str, value: StreamsGroupTopologyValue) -> JournalRecord:
    """The topology (type 23)."""
    return JournalRecord(value, key=StreamsGroupTopologyKey(group_id=group_id))


def target_epoch_record(group_id: str, assignment_epoch: int, now_ms: int) -> JournalRecord:
    """The epoch of the targets, and when they were computed in wall time (type 20)."""
    value = StreamsGroupTargetAssignmentMetadataValue(
        assignment_epoch=assignment_epoch, assignment_timestamp=now_ms
    )
    return JournalRecord(value, key=StreamsGroupTargetAssignmentMetadataKey(group_id=group_id))


def group_tombstones(group_id: str, member_ids: Iterable[str]) -> list[JournalRecord]:
    """All tombstones of a group, in Kafka's order (StreamsGroup.createGroupTombstoneRecords)."""
    of_members = [member_tombstones(group_id, member_id) for member_id in member_ids]
    return [
        *(current_assignment for current_assignment, _, _ in of_members),
        *(target for _, target, _ in of_members),
        JournalRecord(None, key=StreamsGroupTargetAssignmentMetadataKey(group_id=group_id)),
        *(metadata for _, _, metadata in of_members),
        JournalRecord(None, key=StreamsGroupMetadataKey(group_id=group_id)),
        JournalRecord(None, key=StreamsGroupTopologyKey(group_id=group_id)),
    ]


# -- records into members --------------------------------------------------------------------------


def with_metadata(member: StreamsMember, value: StreamsGroupMemberMetadataValue) -> StreamsMember:
    """Return the member after a record of type 19; the tasks it owns are kept."""
    return replace(
        member,
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        topology_epoch=value.topology_epoch,
        process_id=value.process_id,
        user_endpoint=value.user_endpoint,
        client_tags={tag.key: tag.value for tag in value.client_tags},
    )


def with_assignment(
    member: StreamsMember, value: StreamsGroupCurrentMemberAssignmentValue, step: Step = no_step
) -> StreamsMember:
    """Return the member after a record of type 22; what it has reported is kept."""
    return replace(
        member,
        member_epoch=value.member_epoch,
        previous_member_epoch=value.previous_member_epoch,
        state=_STATES.get(value.state, MemberState.UNKNOWN),
        assigned=OwnedTasks(
            _epochs(value.active_tasks, value.member_epoch, step),
            task_set(value.standby_tasks, step),
            task_set(value.warmup_tasks, step),
        ),
        pending_revocation=OwnedTasks(
            _epochs(value.active_tasks_pending_revocation, value.member_epoch, step),
            task_set(value.standby_tasks_pending_revocation, step),
            task_set(value.warmup_tasks_pending_revocation, step),
        ),
    )


def target_of(value: StreamsGroupTargetAssignmentMemberValue, step: Step = no_step) -> Tasks:
    """Return the target in a record of type 21."""
    return Tasks(
        task_set(value.active_tasks, step),
        task_set(value.standby_tasks, step),
        task_set(value.warmup_tasks, step),
    )


def _epochs(tasks: Iterable[CurrentTasks], member_epoch: int, step: Step) -> TaskEpochs:
    """Active tasks with the epochs of their assignment.

    Kafka 4.2 and earlier wrote no epochs; then the member's epoch is used.
    """
    owned: dict[str, Mapping[int, int]] = {}
    for current in stepping(tasks, step):
        epochs = current.assignment_epochs
        if epochs is None or len(epochs) != len(current.partitions):
            if epochs:
                logger.error(
                    "%d epochs for %d tasks of subtopology %s: epoch %d is used for all",
                    len(epochs), len(current.partitions), current.subtopology_id, member_epoch,
                )  # fmt: skip
            epochs = [member_epoch] * len(current.partitions)
        partitions = stepping_if_many(current.partitions, step)
        owned[current.subtopology_id] = dict(zip(partitions, epochs, strict=True))
    return owned


# -- tasks into records ----------------------------------------------------------------------------


def _target(tasks: TaskSet, step: Step) -> list[TargetTasks]:
    return [
        TargetTasks(subtopology_id=subtopology_id, partitions=sorted(partitions))
        for subtopology_id, partitions in stepping(sorted(tasks.items()), step)
    ]


def _current(tasks: TaskSet, step: Step) -> list[CurrentTasks]:
    return [
        CurrentTasks(subtopology_id=subtopology_id, partitions=sorted(partitions))
        for subtopology_id, partitions in stepping(sorted(tasks.items()), step)
    ]


def _active(tasks: TaskEpochs, step: Step) -> list[CurrentTasks]:
    return [
        CurrentTasks(
            subtopology_id=subtopology_id,
            partitions=sorted(epochs),
            assignment_epochs=[
                epochs[partition] for partition in stepping_if_many(sorted(epochs), step)
            ],
        )
        for subtopology_id, epochs in stepping(sorted(tasks.items()), step)
    ]
