"""A consumer group (KIP-848): the state that its records add up to, and queries on it.

The state follows from the epochs (modern_groups/group.py) and from the progress of each member
towards its target, the partitions that it is to own:

    EMPTY         no members
    ASSIGNING     the targets are out of date                   group epoch > assignment epoch
    RECONCILING   some member has not reached its target        member epoch != assignment epoch,
                                                                or it waits for partitions
    STABLE        every member owns exactly its target

The state is computed, not stored, so there is no table of transitions: any record may change it.
What concerns all members is kept as counts. So a record of one member costs the same in a group of
a thousand members as in a group of three.

Only the `replay_*` methods assign journaled state. The first record of a group creates it. A
decision about a group that does not exist yet reads an empty ConsumerGroup, which is then dropped.

Kafka: ConsumerGroup; the replay methods of GroupMetadataManager.
"""

import logging
from collections import Counter
from collections.abc import Collection, Iterable
from enum import Enum

from msgspec.structs import replace

from odradek.coordinator.any_group.group import Committer, GroupType, PartitionCheck
from odradek.coordinator.assignors.assignment import NOTHING as NO_TARGET
from odradek.coordinator.assignors.assignment import Assignment
from odradek.coordinator.modern_groups.commit_checks import needs_member
from odradek.coordinator.modern_groups.group import ModernGroup
from odradek.coordinator.modern_groups.member import LEAVING_EPOCH, MemberState
from odradek.coordinator.runtime.outcome import JournalRecord
from odradek.coordinator.runtime.steps import Step, no_step, stepping_if_many
from odradek.coordinator.runtime.timers import Now, TimerMoment
from odradek.protocol.records.consumer_group import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataValue,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberValue,
)
from odradek.protocol.records.consumer_protocol import PROTOCOL_TYPE

from .commit_checks import check_commit, check_fetch
from .member import NOTHING, ConsumerMember
from .ownership import FREE, Ownership
from .records import group_tombstones, target_of, with_assignment, with_metadata
from .subscriptions import ResolvedRegex, Subscriptions, count_in, is_homogeneous

logger = logging.getLogger("odradek.groups")


class ConsumerState(Enum):
    """The group's state, by the names that ListGroups and ConsumerGroupDescribe use."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class ConsumerGroup(ModernGroup[ConsumerMember]):
    """One group."""

    group_type = GroupType.CONSUMER
    listed_protocol_type = PROTOCOL_TYPE
    subscriptions: Subscriptions

    def __init__(self, group_id: str, partition: int = 0) -> None:
        super().__init__(group_id, partition, Subscriptions())
        self.ownership = Ownership(group_id)
        self.has_partition_metadata = False
        """Whether Kafka 4.0's record of type 4 exists. The next check of the group's topics writes
        its tombstone."""
        self.classic_member_count = 0
        self.classic_protocols: Counter[str] = Counter()
        """Number of classic members by supported protocol (client-side assignor)."""
        self._assignor_votes: Counter[str] = Counter()
        self._stable_at: Counter[int] = Counter()  # number of STABLE members by epoch
        self.regexes_resolved_at = TimerMoment()
        """When the regular expressions were last resolved, on the timer clock. Not journaled."""

    def note_timestamps(self, now: Now) -> None:
        super().note_timestamps(now)
        self.regexes_resolved_at.note(self.subscriptions.regexes_refreshed_ms, now)

    # -- replay ------------------------------------------------------------------------------------

    def replay_metadata(self, value: ConsumerGroupMetadataValue) -> None:
        """Apply type 3, the group epoch. Its tombstone removes the group (replay.py)."""
        self.epoch = value.epoch
        self.metadata_hash = value.metadata_hash

    def replay_partition_metadata(self, value: ConsumerGroupPartitionMetadataValue | None) -> None:
        """Apply type 4, the topic partitions of Kafka 4.0. Only its existence is kept."""
        self.has_partition_metadata = value is not None

    def replay_member(
        self, member_id: str, value: ConsumerGroupMemberMetadataValue | None, step: Step = no_step
    ) -> None:
        """Apply type 5, a member's subscription. A tombstone removes the member."""
        old = self.members.get(member_id)
        if value is not None:
            new = with_metadata(self.member_or_new(member_id), value, step)
            self._replace_member(old, new, step)
        elif old is not None:
            if old.member_epoch != LEAVING_EPOCH or member_id in self.targets:
                logger.error(
                    "group %s: member %s is removed before its assignment", self.group_id, member_id
                )
            self._replace_member(old, None, step)

    def replay_target(
        self,
        member_id: str,
        value: ConsumerGroupTargetAssignmentMemberValue | None,
        step: Step = no_step,
    ) -> None:
        """Apply type 7, a member's target. A tombstone removes it."""
        if value is None:
            self.targets.pop(member_id, None)
        else:
            self.targets[member_id] = target_of(value, step)

    def replay_current_assignment(
        self,
        member_id: str,
        value: ConsumerGroupCurrentMemberAssignmentValue | None,
        step: Step = no_step,
    ) -> None:
        """Apply type 8, the partitions that a member owns. After a tombstone it owns none."""
        old = self.members.get(member_id)
        if value is not None:
            new = with_assignment(self.member_or_new(member_id), value, step)
            self._replace_member(old, new, step)
        elif old is not None:
            leaving = replace(
                old,
                member_epoch=LEAVING_EPOCH,
                previous_member_epoch=LEAVING_EPOCH,
                assigned=NOTHING,
                pending_revocation=NOTHING,
            )
            self._replace_member(old, leaving, step)

    def replay_regex(
        self, regex: str, value: ConsumerGroupRegularExpressionValue | None, step: Step = no_step
    ) -> None:
        """Apply type 16, the topics that a regular expression matches. A tombstone removes it."""
        resolved = None
        if value is not None:
            resolved = ResolvedRegex(
                topics=frozenset(stepping_if_many(value.topics, step)),
                version=value.version,
                timestamp_ms=value.timestamp,
            )
        self.subscriptions.replace_regex(regex, resolved, step)

    def _replace_member(
        self, old: ConsumerMember | None, new: ConsumerMember | None, step: Step = no_step
    ) -> None:
        """Add (`old` is None), change, or remove (`new` is None) a member."""
        super()._replace_member(old, new, step)
        self.ownership.replace_member(old, new, step)
        if old is not None:
            self._count(old, -1)
        if new is not None:
            self._count(new, +1)

    def _count(self, member: ConsumerMember, delta: int) -> None:
        if member.state is MemberState.STABLE:
            count_in(self._stable_at, member.member_epoch, delta)
        if member.server_assignor is not None:
            count_in(self._assignor_votes, member.server_assignor, delta)
        if member.classic is not None:
            self.classic_member_count += delta
            # A member may name a protocol twice.
            for name in {protocol.name for protocol in member.classic.supported_protocols}:
                count_in(self.classic_protocols, name, delta)

    # -- queries -----------------------------------------------------------------------------------

    @property
    def state(self) -> ConsumerState:
        """The state; see the table in the module docstring."""
        if not self.members:
            return ConsumerState.EMPTY
        if self.epoch > self.assignment_epoch:
            return ConsumerState.ASSIGNING
        if self._stable_at[self.assignment_epoch] != len(self.members):
            return ConsumerState.RECONCILING
        return ConsumerState.STABLE

    @property
    def preferred_assignor(self) -> str | None:
        """The server-side assignor that most members request; None if no member requests one."""
        return _most_voted(self._assignor_votes)

    def member_or_new(self, member_id: str) -> ConsumerMember:
        """Return the member, or a new one that is not in the group."""
        return self.members.get(member_id) or ConsumerMember(member_id=member_id)

    def target(self, member_id: str, instance_id: str | None = None) -> Assignment:
        """A member's target; with an instance id, the target of the member that has this id."""
        if instance_id is not None:
            member_id = self.static_member_ids.get(instance_id, "")
        return self.targets.get(member_id, NO_TARGET)

    def waits_for_release(self, member: ConsumerMember) -> bool:
        """Whether other members still own partitions of this member's target.

        Kafka: waitingOnUnreleasedPartition.
        """
        if member.state is not MemberState.UNRELEASED_PARTITIONS:
            return False
        return any(
            partition not in member.assigned.get(topic_id, ())
            and self.ownership.epoch(topic_id, partition) != FREE
            for topic_id, partitions in self.target(member.member_id).items()
            for partition in partitions
        )

    # -- queries for a member that is about to change ---------------------------------------------

    def preferred_assignor_if(self, old: ConsumerMember, new: ConsumerMember) -> str | None:
        """The preferred assignor if `old` became `new`."""
        votes = Counter(self._assignor_votes)
        for member, delta in ((old, -1), (new, +1)):
            if member.server_assignor is not None:
                count_in(votes, member.server_assignor, delta)
        return _most_voted(votes)

    def is_homogeneous_if(
        self, old: ConsumerMember, new: ConsumerMember, step: Step = no_step
    ) -> bool:
        """Whether all members would have the same subscription if `old` became `new`."""
        subscriptions = self.subscriptions
        # A member that replaces a static member does not add to the count.
        is_known = self.previous_id(new) in self.members
        return is_homogeneous(
            subscriptions.regexes_if(old, new),
            subscriptions.topics_if(old, new, step),
            len(self.members) + (not is_known),
            step,
        )

    # -- members that use the classic protocol -----------------------------------------------------

    def supports_classic_protocols(self, protocol_type: str, names: Collection[str]) -> bool:
        """Whether all classic members support one of these client-side assignors."""
        if protocol_type != PROTOCOL_TYPE:
            return False
        return any(self.classic_protocols[name] == self.classic_member_count for name in names)

    def only_classic_without(self, leaving: Iterable[ConsumerMember]) -> bool:
        """Whether only classic members would remain if these members left."""
        distinct = {member.member_id: member for member in leaving}.values()
        classic = sum(member.uses_classic_protocol for member in distinct)
        return self.classic_member_count - classic == len(self.members) - len(distinct)

    # -- the interface Group -----------------------------------------------------------------------

    @property
    def state_name(self) -> str:
        return self.state.value

    def check_commit(self, committer: Committer) -> PartitionCheck | None:
        if not needs_member(committer, group_is_empty=self.is_empty):
            return None
        return check_commit(self.member(committer.member_id), committer)

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        if member_id is not None or member_epoch >= 0:  # others are not requests of members
            check_fetch(self.member(member_id or ""), member_epoch)

    def check_offset_deletion(self) -> None:
        """Never raises. Topics that a member is subscribed to are refused one by one."""

    def retention_counts_from(self, commit_timestamp_ms: int) -> int:
        return commit_timestamp_ms

    def tombstones(self) -> list[JournalRecord]:
        return group_tombstones(self.group_id, self.members, self.subscriptions.resolved_regexes)


def _most_voted(votes: Counter[str]) -> str | None:
    """The name with the most votes; with a tie, the last one in the alphabet.

    Kafka breaks ties this way when it chooses the assignor, but not when it checks whether the
    assignor has changed. With a tie, each heartbeat may then raise the epoch. Here both use this
    function.
    """
    return max(sorted(votes, reverse=True), key=votes.__getitem__, default=None)
