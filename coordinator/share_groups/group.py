"""A share group (KIP-932): the state that its records add up to.

A group without members is EMPTY, any other is STABLE. Only the `replay_*` methods assign journaled
state. Kafka: ShareGroup; the replay methods of GroupMetadataManager.
"""

from enum import Enum

from msgspec.structs import replace

from odradek.coordinator.any_group.group import Committer, GroupType, PartitionCheck
from odradek.coordinator.assignors.assignment import NOTHING
from odradek.coordinator.modern_groups.group import ModernGroup
from odradek.coordinator.modern_groups.member import LEAVING_EPOCH, member_state
from odradek.coordinator.modern_groups.subscriptions import TopicSubscriptions
from odradek.coordinator.modern_groups.topics_view import ClusterTopics
from odradek.coordinator.runtime.outcome import JournalRecord
from odradek.coordinator.runtime.steps import Step, no_step, stepping, stepping_if_many
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.records.share_group import (
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataValue,
    ShareGroupTargetAssignmentMemberValue,
)

from .member import ShareMember
from .records import assignment_of, group_tombstones, state_partitions_of
from .state_partitions import NO_STATE, StatePartitions


class ShareGroupState(Enum):
    """The group's state, by the names that ListGroups and ShareGroupDescribe use."""

    EMPTY = "Empty"
    STABLE = "Stable"


class ShareGroup(ModernGroup[ShareMember]):
    """One group. Only the `replay_*` methods assign journaled state."""

    group_type = GroupType.SHARE
    listed_protocol_type = GroupType.SHARE.value

    def __init__(self, group_id: str, partition: int = 0) -> None:
        super().__init__(group_id, partition, TopicSubscriptions())
        self.state_partitions: StatePartitions = NO_STATE
        self.has_state_record = False
        """Whether there is a record of type 15."""
        self._replayed = 0  # how many records that may change has_unassigned_partitions
        self._unassigned = (0, False)  # its last answer, and `_replayed` then

    # -- replay ------------------------------------------------------------------------------------

    def replay_member(
        self, member_id: str, value: ShareGroupMemberMetadataValue | None, step: Step = no_step
    ) -> None:
        """Apply type 10, a member's subscription. A tombstone removes the member."""
        old = self.members.get(member_id)
        if value is not None:
            new = replace(
                self.member_or_new(member_id),
                rack_id=value.rack_id,
                client_id=value.client_id,
                client_host=value.client_host,
                subscribed_topics=frozenset(stepping_if_many(value.subscribed_topic_names, step)),
            )
            self._replace_member(old, new, step)
        elif old is not None:
            self._replace_member(old, None, step)

    def replay_metadata(self, value: ShareGroupMetadataValue) -> None:
        """Apply type 11, the group epoch. Its tombstone removes the group (replay.py)."""
        self.epoch = value.epoch
        self.metadata_hash = value.metadata_hash

    def replay_target(
        self,
        member_id: str,
        value: ShareGroupTargetAssignmentMemberValue | None,
        step: Step = no_step,
    ) -> None:
        """Apply type 13, a member's target. A tombstone removes it."""
        self._replayed += 1
        if value is None:
            self.targets.pop(member_id, None)
        else:
            self.targets[member_id] = assignment_of(value.topic_partitions, step)

    def replay_current_assignment(
        self,
        member_id: str,
        value: ShareGroupCurrentMemberAssignmentValue | None,
        step: Step = no_step,
    ) -> None:
        """Apply type 14, the partitions that a member reads. After a tombstone it reads none."""
        old = self.members.get(member_id)
        if value is not None:
            new = replace(
                self.member_or_new(member_id),
                member_epoch=value.member_epoch,
                previous_member_epoch=value.previous_member_epoch,
                state=member_state(value.state),
                assigned=assignment_of(value.assigned_partitions, step),
            )
            self._replace_member(old, new, step)
        elif old is not None:
            leaving = replace(
                old,
                member_epoch=LEAVING_EPOCH,
                previous_member_epoch=LEAVING_EPOCH,
                assigned=NOTHING,
            )
            self._replace_member(old, leaving, step)

    def replay_state_partitions(
        self,
        value: ShareGroupStatePartitionMetadataValue | None,
        timestamp_ms: int,
        step: Step = no_step,
    ) -> None:
        """Apply type 15, the partitions with stored state."""
        self._replayed += 1
        self.has_state_record = value is not None
        self.state_partitions = (
            NO_STATE if value is None else state_partitions_of(value, timestamp_ms, step)
        )

    def _replace_member(
        self, old: ShareMember | None, new: ShareMember | None, step: Step = no_step
    ) -> None:
        self._replayed += 1
        super()._replace_member(old, new, step)

    # -- queries -----------------------------------------------------------------------------------

    @property
    def state(self) -> ShareGroupState:
        return ShareGroupState.STABLE if self.members else ShareGroupState.EMPTY

    def member_or_new(self, member_id: str) -> ShareMember:
        """Return the member, or a new one that is not in the group."""
        return self.members.get(member_id) or ShareMember(member_id=member_id)

    def is_homogeneous_if(self, old: ShareMember, new: ShareMember, step: Step = no_step) -> bool:
        """Whether all members would have the same subscription if `old` became `new`."""
        count = len(self.members) + (new.member_id not in self.members)
        counts = self.subscriptions.topics_if(old, new, step).values()
        return all(subscribers.by_name == count for subscribers in stepping(iter(counts), step))

    def has_unassigned_partitions(self, topics: ClusterTopics, step: Step = no_step) -> bool:
        """Whether initialized partitions of subscribed topics are missing in the targets.

        Kafka: initializedAssignmentPending.
        """
        replayed, found = self._unassigned
        if replayed != self._replayed:
            replayed = self._replayed  # it may change in a step
            found = self._find_unassigned(topics, step)
            self._unassigned = replayed, found
        return found

    def _find_unassigned(self, topics: ClusterTopics, step: Step) -> bool:
        initialized = self.state_partitions.initialized
        if not self.members or not initialized:
            return False
        assigned: dict[bytes, set[int]] = {}
        for target in stepping(self.targets.values(), step):
            for topic_id, partitions in target.items():
                assigned.setdefault(topic_id, set()).update(partitions)
        return any(
            frozenset(assigned.get(topic_id, ())) != topic.partitions
            for topic_id, topic in stepping(initialized.items(), step)
            if topic.name in self.subscriptions.topics and topics.id_of(topic.name) == topic_id
        )

    # -- the interface Group -----------------------------------------------------------------------

    @property
    def state_name(self) -> str:
        return self.state.value

    def check_commit(self, committer: Committer) -> PartitionCheck | None:  # noqa: ARG002 # of every type of group
        raise self._no_offsets()

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """A share group has no committed offsets: the answer is empty."""

    def check_offset_deletion(self) -> None:
        raise self._no_offsets()

    def _no_offsets(self) -> ApiError:
        return ApiError(
            ErrorCode.GROUP_ID_NOT_FOUND, f"Group {self.group_id} is not a consumer group."
        )

    def retention_counts_from(self, commit_timestamp_ms: int) -> int | None:  # noqa: ARG002 # of every type of group
        return None

    def tombstones(self) -> list[JournalRecord]:
        return group_tombstones(self.group_id, self.members)
