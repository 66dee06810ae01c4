"""Makes the records of classic groups (GroupMetadata). ClassicGroup.replay reads them.

One record has a whole generation: the elected protocol, the leader, and each member's metadata for
that protocol and its assignment. It is written at the end of a rebalance, and when a static member
gets a new id. A `step` is called again and again while a record of many members is made, so that
others are served (runtime/steps.py).

Kafka: GroupCoordinatorRecordHelpers, ClassicGroup.
"""

from collections.abc import Mapping

from odradek.coordinator.runtime.outcome import JournalRecord
from odradek.coordinator.runtime.steps import Step, no_step, stepping
from odradek.protocol.records.consumer_offsets import (
    GroupMemberMetadata,
    GroupMetadataKey,
    GroupMetadataValue,
)
from odradek.protocol.schema import replace

from .group import ClassicGroup
from .member import ClassicMember
from .protocols import metadata_of

GROUP_METADATA_VERSION = 3


def group_record(group_id: str, value: GroupMetadataValue) -> JournalRecord:
    """Make the record that stores the generation in `value`."""
    return JournalRecord(value, GROUP_METADATA_VERSION, GroupMetadataKey(group=group_id))


def generation_value(
    group: ClassicGroup, assignments: Mapping[str, bytes], step: Step = no_step
) -> GroupMetadataValue:
    """Make the value of the group's current generation. `assignments` are by member id."""
    return GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation_id,
        protocol=group.protocol_name,
        leader=group.leader_id,
        current_state_timestamp=-1 if group.state_since_ms is None else group.state_since_ms,
        members=[
            _entry(member, group.protocol_name, assignments.get(member.member_id, b""))
            for member in stepping(group.members.values(), step)
        ],
    )


def replaced_value(
    group: ClassicGroup, old_id: str, successor: ClassicMember, step: Step
) -> GroupMetadataValue:
    """Return the journaled generation with `successor` in the place of the member `old_id`.

    Both are the same static member; its assignment stays.
    """
    written = group.journaled
    assert written is not None, "a stable group is journaled"
    return replace(
        written,
        leader=successor.member_id if written.leader == old_id else written.leader,
        members=[
            _entry(successor, written.protocol, entry.assignment)
            if entry.member_id == old_id
            else entry
            for entry in stepping(written.members, step)
        ],
    )


def _entry(
    member: ClassicMember, protocol_name: str | None, assignment: bytes
) -> GroupMemberMetadata:
    return member.as_stored(metadata_of(member.protocols, protocol_name), assignment)
