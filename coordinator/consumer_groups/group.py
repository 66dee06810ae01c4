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
        """Whether the group has a record of type 4, which Kafka wrote until 4.0. If so, the next
        check of the group's topics writes its tombstone."""
        self.classic_member_count = 0
        """Number of members that use the classic protocol."""
        self.classic_protocols: Counter[str] = Counter()
        """Number of these members by the name of a protocol (client-side assignor) that they
        support. Names that no member supports are absent."""
        self._assignor_votes: Counter[str] = Counter()
        """Number of members by the server-side assignor that they request."""
        self._stable_at: Counter[int] = Counter()
        """Number of members in MemberState.STABLE by member epoch."""
        self.regexes_resolved_at = TimerMoment()
        """When the regular expressions were last resolved, on the timer clock. Not journaled."""

    def note_timestamps(self, now: Now) -> None:
        super().note_timestamps(now)
        self.regexes_resolved_at.note(self.subscriptions.regexes_refreshed_ms, now)

    # -- replay ------------------------------------------------------------------------------------

    # Each method applies records of one type of `__consumer_offsets`. The number of the type is the
    # version of the record's key. A tombstone is a record whose value is None.

    def replay_metadata(self, value: ConsumerGroupMetadataValue) -> None:
        """Apply type 3, the group epoch. A tombstone removes the group (replay.py)."""
        self.epoch = value.epoch
        self.metadata_hash = value.metadata_hash

    def replay_partition_metadata(self, value: ConsumerGroupPartitionMetadataValue | None) -> None:
        """Apply type 4, which Kafka wrote until 4.0. Only whether it exists is remembered."""
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
            # A coordinator writes the tombstones of types 7 and 8 before this one. If they are
            # missing, the member is removed all the same: a record of the log cannot be refused.
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
        """Apply type 8, a member's epoch and the partitions that it owns.

        After a tombstone it owns none, and has LEAVING_EPOCH until the tombstone of its type 5.
        """
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
        """Apply type 16, the topics that a regular expression matched when it was last resolved.

        A tombstone removes the expression.
        """
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
        """Add a member to the group's counts (`delta` is 1), or remove it (-1)."""
        if member.state is MemberState.STABLE:
            count_in(self._stable_at, member.member_epoch, delta)
        if member.server_assignor is not None:
            count_in(self._assignor_votes, member.server_assignor, delta)
        if member.classic is not None:
            self.classic_member_count += delta
            # A set, because a member may name a protocol twice.
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
        """Whether the member waits for a partition of its target that another member still owns.

        A member in another state does not wait. Kafka: waitingOnUnreleasedPartition.
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
        """Whether all classic members support one of these protocols (client-side assignors).

        If the group has no classic member, any one name is enough.
        """
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
        # A request without member id and epoch is not from a member, and may read all offsets.
        if member_id is not None or member_epoch >= 0:
            check_fetch(self.member(member_id or ""), member_epoch)

    def check_offset_deletion(self) -> None:
        """Allow it in every state. The caller refuses topics that have a subscriber."""

    def retention_counts_from(self, commit_timestamp_ms: int) -> int:
        # Not from the time at which the group became empty, as in a classic group.
        return commit_timestamp_ms

    def tombstones(self) -> list[JournalRecord]:
        return group_tombstones(self.group_id, self.members, self.subscriptions.resolved_regexes)


def _most_voted(votes: Counter[str]) -> str | None:
    """The name with the most votes; of several with equally many, the last in alphabetical order.

    Kafka chooses the assignor in this way too. But it checks in another way whether the assignor
    has changed, so after a tie each heartbeat may raise the group epoch. Here both use this
    function.
    """
    return max(sorted(votes, reverse=True), key=votes.__getitem__, default=None)
