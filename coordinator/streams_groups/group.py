"""A streams group (KIP-1071): the state that its records add up to, and queries on it.

The state follows from the topology, the epochs (modern_groups/group.py), and the progress of each
member towards its target, the tasks that it is to own:

    EMPTY         no members
    NOT_READY     no topology, or its topics do not exist yet   topology epoch != validated epoch
    ASSIGNING     the targets are out of date                   group epoch > assignment epoch
    RECONCILING   some member has not reached its target        member epoch != assignment epoch,
                                                                or it waits for tasks
    STABLE        every member owns exactly its target

The state is computed, not stored, so there is no table of transitions: any record may change it.
Only the `replay_*` methods assign journaled state. Kafka: StreamsGroup.
"""

import logging
from collections.abc import Mapping
from enum import Enum

from msgspec.structs import replace

from odradek.coordinator.any_group.group import Committer, GroupType, PartitionCheck
from odradek.coordinator.modern_groups.commit_checks import needs_member
from odradek.coordinator.modern_groups.group import EpochGroup
from odradek.coordinator.modern_groups.member import LEAVING_EPOCH, MemberState
from odradek.coordinator.runtime.outcome import JournalRecord
from odradek.coordinator.runtime.steps import Step, no_step
from odradek.protocol.records.streams_group import (
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataValue,
    StreamsGroupMetadataValue,
    StreamsGroupTargetAssignmentMemberValue,
    StreamsGroupTopologyValue,
)

from .commit_checks import check_commit, check_fetch
from .configuration import ConfiguredTopology
from .member import StreamsMember
from .records import group_tombstones, target_of, with_assignment, with_metadata
from .task_offsets import NO_TASK_OFFSETS, TaskOffsets
from .task_owners import TaskOwners
from .tasks import NOTHING, OWNS_NOTHING, Tasks
from .topology import Topology

logger = logging.getLogger("odradek.groups")


class StreamsState(Enum):
    """The group's state, by the names that ListGroups and StreamsGroupDescribe use."""

    EMPTY = "Empty"
    NOT_READY = "NotReady"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class StreamsGroup(EpochGroup[StreamsMember, Tasks]):
    """One group. Only the `replay_*` methods assign journaled state."""

    group_type = GroupType.STREAMS
    listed_protocol_type = "streams"

    def __init__(self, group_id: str, partition: int = 0) -> None:
        super().__init__(group_id, partition)
        self.topology: Topology | None = None
        self.validated_topology_epoch = 0
        """The epoch of the topology when it was last ready; -1: it was not."""
        self.assignment_configs: Mapping[str, str] = {}
        """The settings of the assignor when the group epoch last rose."""
        self.stored_description_epoch = -1
        self.failed_description_epoch = -1
        """These two are Kafka's: which topology its plugin for descriptions has, or has refused."""
        self.owners = TaskOwners()

        # Soft: not journaled.
        self.configured: ConfiguredTopology | None = None
        self.endpoint_epoch = 0
        """Rises when the tasks of a member with a user endpoint change."""
        self.shutdown_requested_by: str | None = None
        """The member that has asked all members to stop. Forgotten when the group is empty."""
        self._task_offsets: dict[str, TaskOffsets] = {}

    # -- replay ------------------------------------------------------------------------------------

    def replay_metadata(self, value: StreamsGroupMetadataValue) -> None:
        """Apply type 17, the group epoch. Its tombstone removes the group (replay.py)."""
        self.epoch = value.epoch
        self.metadata_hash = value.metadata_hash
        self.validated_topology_epoch = value.validated_topology_epoch
        self.assignment_configs = {
            config.key: config.value for config in value.last_assignment_configs or ()
        }
        self.stored_description_epoch = value.stored_description_topology_epoch
        self.failed_description_epoch = value.failed_description_topology_epoch

    def replay_topology(self, value: StreamsGroupTopologyValue | None) -> None:
        """Apply type 23, the topology. A tombstone removes it."""
        self.topology = None if value is None else Topology(value)
        self.configured = None

    def replay_member(
        self, member_id: str, value: StreamsGroupMemberMetadataValue | None, step: Step = no_step
    ) -> None:
        """Apply type 19, what a member reported. A tombstone removes the member."""
        old = self.members.get(member_id)
        if value is not None:
            self._replace_member(old, with_metadata(self.member_or_new(member_id), value), step)
        elif old is not None:
            if old.member_epoch != LEAVING_EPOCH or member_id in self.targets:
                logger.error(
                    "group %s: member %s is removed before its assignment", self.group_id, member_id
                )
            self._replace_member(old, None, step)

    def replay_target(
        self,
        member_id: str,
        value: StreamsGroupTargetAssignmentMemberValue | None,
        step: Step = no_step,
    ) -> None:
        """Apply type 21, a member's target. A tombstone removes it."""
        if value is None:
            self.targets.pop(member_id, None)
        else:
            self.targets[member_id] = target_of(value, step)

    def replay_current_assignment(
        self,
        member_id: str,
        value: StreamsGroupCurrentMemberAssignmentValue | None,
        step: Step = no_step,
    ) -> None:
        """Apply type 22, the tasks that a member owns. After a tombstone it owns none."""
        old = self.members.get(member_id)
        if value is not None:
            new = with_assignment(self.member_or_new(member_id), value, step)
            self._replace_member(old, new, step)
        elif old is not None:
            leaving = replace(
                old,
                member_epoch=LEAVING_EPOCH,
                previous_member_epoch=LEAVING_EPOCH,
                assigned=OWNS_NOTHING,
                pending_revocation=OWNS_NOTHING,
            )
            self._replace_member(old, leaving, step)

    def _replace_member(
        self, old: StreamsMember | None, new: StreamsMember | None, step: Step = no_step
    ) -> None:
        """Add (`old` is None), change, or remove (`new` is None) a member."""
        super()._replace_member(old, new, step)
        self.owners.replace_member(old, new, step)
        if new is None:
            self._task_offsets.pop(old.member_id if old else "", None)
        if not self.members:
            self.shutdown_requested_by = None

    # -- soft state --------------------------------------------------------------------------------

    def note_configured(self, configured: ConfiguredTopology) -> None:
        """Keep the configured topology until a topic changes."""
        self.configured = configured

    def note_task_offsets(self, member_id: str, offsets: TaskOffsets) -> None:
        """Keep what a member has reported about the offsets of its tasks."""
        if offsets == NO_TASK_OFFSETS:
            self._task_offsets.pop(member_id, None)
        elif member_id in self.members:
            self._task_offsets[member_id] = offsets

    def task_offsets_of(self, member_id: str) -> TaskOffsets:
        """What a member has reported about the offsets of its tasks."""
        return self._task_offsets.get(member_id, NO_TASK_OFFSETS)

    def note_endpoints_changed(self) -> None:
        """Have all members fetch the endpoints again."""
        self.endpoint_epoch += 1

    def note_shutdown_request(self, member_id: str) -> None:
        """Note that a member has asked those that remain to stop. The first one is named."""
        if self.members and self.shutdown_requested_by is None:
            logger.info("group %s: member %s requests a shutdown", self.group_id, member_id)
            self.shutdown_requested_by = member_id

    # -- queries -----------------------------------------------------------------------------------

    @property
    def state(self) -> StreamsState:
        """The state; see the table in the module docstring."""
        if not self.members:
            return StreamsState.EMPTY
        if self.topology is None or self.topology.epoch != self.validated_topology_epoch:
            return StreamsState.NOT_READY
        if self.epoch > self.assignment_epoch:
            return StreamsState.ASSIGNING
        if not all(
            is_reconciled(member, self.assignment_epoch) for member in self.members.values()
        ):
            return StreamsState.RECONCILING
        return StreamsState.STABLE

    def member_or_new(self, member_id: str) -> StreamsMember:
        """Return the member, or a new one that is not in the group."""
        return self.members.get(member_id) or StreamsMember(member_id=member_id)

    def target(self, member_id: str) -> Tasks:
        """A member's target."""
        return self.targets.get(member_id, NOTHING)

    # -- the interface Group -----------------------------------------------------------------------

    @property
    def state_name(self) -> str:
        return self.state.value

    def check_commit(self, committer: Committer) -> PartitionCheck | None:
        if not needs_member(committer, group_is_empty=self.is_empty):
            return None
        return check_commit(self.member(committer.member_id), self.topology, committer)

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        if member_id is not None or member_epoch >= 0:  # others are not requests of members
            check_fetch(self.member(member_id or ""), member_epoch)

    def check_offset_deletion(self) -> None:
        """Never raises. Topics that the topology reads are refused one by one."""

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether the members read the topic."""
        return bool(self.members) and self.topology is not None and topic in self.topology.reader_of

    def retention_counts_from(self, commit_timestamp_ms: int) -> int:
        return commit_timestamp_ms

    def tombstones(self) -> list[JournalRecord]:
        return group_tombstones(self.group_id, self.members)


def is_reconciled(member: StreamsMember, assignment_epoch: int) -> bool:
    """Whether a member owns exactly the target of this epoch."""
    return member.state is MemberState.STABLE and member.member_epoch == assignment_epoch
