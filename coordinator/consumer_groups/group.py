"""A consumer group (KIP-848): the sum of its records, and the questions that decisions ask of it.

Three epochs tell how far it is. The group's own rises whenever what is to be shared out changes
(members, subscriptions, topics); the assignment's is that of the group for which the targets were
made; a member's is that of the targets which it has reached. From them follows the state:

    EMPTY         no members
    ASSIGNING     the targets are older than the group          group epoch > assignment epoch
    RECONCILING   some member has not reached its target        member epoch != assignment epoch,
                                                                or it waits for partitions
    STABLE        everybody has what it shall have

There are no transitions to guard: no request says "become STABLE", every record may change what
follows. What would take a walk over all members is counted instead, so that a record of one of a
thousand members costs no more than one of a few.

Only the `replay_*` methods assign journaled state. A new group is made by the first record of it: a
decision about a group that is not there yet reads a ConsumerGroup of its own, with nothing in it,
which is then thrown away.

Kafka: ModernGroup, ConsumerGroup; the replay methods of GroupMetadataManager.
"""

import logging
from collections import Counter
from collections.abc import Collection, Iterable
from enum import Enum

from msgspec.structs import replace

from odradek.coordinator.assignors.assignment import NOTHING as NO_TARGET
from odradek.coordinator.assignors.assignment import Assignment
from odradek.coordinator.group import Committer, GroupType, PartitionCheck
from odradek.coordinator.outcome import JournalRecord
from odradek.coordinator.timers import Now, TimerMoment
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.records.consumer_group import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataValue,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from odradek.protocol.records.consumer_protocol import PROTOCOL_TYPE

from .commit_checks import check_commit, check_fetch, needs_member
from .member import LEAVING_EPOCH, NOTHING, ConsumerMember, MemberState
from .ownership import FREE, Ownership
from .records import group_tombstones, replaced_by_assignment, replaced_by_metadata, target_of
from .subscriptions import ResolvedRegex, Subscriptions, is_homogeneous

logger = logging.getLogger("odradek.groups")

# What a new group starts with, in Kafka 4.3; so the first member makes epoch 2.
FIRST_EPOCH = 1
NO_ASSIGNMENT_EPOCH = -1  # the targets' tombstone came: the group is about to end


class ConsumerState(Enum):
    """The group's state, in the words of ListGroups and ConsumerGroupDescribe."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"  # said of a group that is not there


class ConsumerGroup:
    """One group. Read it freely; only `replay_*` assigns what is journaled."""

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        """Of the topics that the group is subscribed to, when its epoch last rose (topic_hash)."""
        self.assignment_epoch = FIRST_EPOCH
        self.assignment_timestamp_ms = 0
        """When the targets were made, in wall time. How long ago that is, `assigned_at` says."""
        self.members: dict[str, ConsumerMember] = {}
        self.static_member_ids: dict[str, str] = {}
        """Member id by instance id."""
        self.targets: dict[str, Assignment] = {}
        """What each member shall have."""
        self.subscriptions = Subscriptions()
        self.ownership = Ownership(group_id)
        self.has_topics_of_kafka_4_0 = False
        """A record of type 4 is there: the next heartbeat that writes, tombstones it."""
        self.classic_member_count = 0
        self.classic_protocols: Counter[str] = Counter()
        """Classic members by each protocol (client-side assignor) that they support."""
        self._assignor_votes: Counter[str] = Counter()
        self._stable_at: Counter[int] = Counter()  # STABLE members by their epoch

        # Soft: not journaled. Deadlines of members are in deadlines.py.
        self.topics_seen_at: int | None = None
        """`changed_at` of the topics when the group last looked at them; None: not in this life."""
        self.assigned_at = TimerMoment()
        """When the targets were made."""
        self.regexes_resolved_at = TimerMoment()
        """When the expressions were last resolved."""

    def note_times(self, now: Now) -> None:
        """Note the moments of what has just been written, or read from the log."""
        self.assigned_at.note(self.assignment_timestamp_ms, now)
        self.regexes_resolved_at.note(self.subscriptions.regexes_refreshed_ms, now)

    # -- replay ------------------------------------------------------------------------------------

    def replay_metadata(self, value: ConsumerGroupMetadataValue) -> None:
        """Type 3. Its tombstone ends the group: GroupState takes it out."""
        self.epoch = value.epoch
        self.metadata_hash = value.metadata_hash

    def replay_topics_of_kafka_4_0(self, value: ConsumerGroupPartitionMetadataValue | None) -> None:
        """Type 4: only that it is there is of interest."""
        self.has_topics_of_kafka_4_0 = value is not None

    def replay_member(self, member_id: str, value: ConsumerGroupMemberMetadataValue | None) -> None:
        """Type 5: what a member asks for; None: it is gone."""
        old = self.members.get(member_id)
        if value is not None:
            self._member_became(old, replaced_by_metadata(old or _new(member_id), value))
        elif old is not None:
            if old.member_epoch != LEAVING_EPOCH or member_id in self.targets:
                logger.error(
                    "group %s: member %s goes before what it has", self.group_id, member_id
                )
            self._member_became(old, None)

    def replay_target_epoch(self, value: ConsumerGroupTargetAssignmentMetadataValue | None) -> None:
        """Type 6: the targets are of that epoch; None: there are none any more."""
        if value is None:
            self.assignment_epoch, self.assignment_timestamp_ms = NO_ASSIGNMENT_EPOCH, 0
        else:
            self.assignment_epoch = value.assignment_epoch
            self.assignment_timestamp_ms = value.assignment_timestamp

    def replay_target(
        self, member_id: str, value: ConsumerGroupTargetAssignmentMemberValue | None
    ) -> None:
        """Type 7: what a member shall have; None: nothing."""
        if value is None:
            self.targets.pop(member_id, None)
        else:
            self.targets[member_id] = target_of(value)

    def replay_current_assignment(
        self, member_id: str, value: ConsumerGroupCurrentMemberAssignmentValue | None
    ) -> None:
        """Type 8: what a member has; None: nothing, for it is leaving."""
        old = self.members.get(member_id)
        if value is not None:
            self._member_became(old, replaced_by_assignment(old or _new(member_id), value))
        elif old is not None:
            leaving = replace(
                old,
                member_epoch=LEAVING_EPOCH,
                previous_member_epoch=LEAVING_EPOCH,
                assigned=NOTHING,
                pending_revocation=NOTHING,
            )
            self._member_became(old, leaving)

    def replay_regex(self, regex: str, value: ConsumerGroupRegularExpressionValue | None) -> None:
        """Type 16: what a regular expression stands for; None: it is forgotten."""
        resolved = None
        if value is not None:
            resolved = ResolvedRegex(
                topics=frozenset(value.topics),
                version=value.version,
                timestamp_ms=value.timestamp,
            )
        self.subscriptions.regex_became(regex, resolved)

    def _member_became(self, old: ConsumerMember | None, new: ConsumerMember | None) -> None:
        """A member came (`old` is None), changed, or went (`new` is None).

        A member that joins again may bring another instance id: the old one is free then. In Kafka
        it stays with the member until the log is cleaned and read again.
        """
        self.subscriptions.member_became(old, new)
        self.ownership.member_became(old, new)
        if old is not None:
            self._count(old, -1)
            instance_id = old.instance_id
            if instance_id is not None and self.static_member_ids.get(instance_id) == old.member_id:
                del self.static_member_ids[instance_id]
            if new is None:
                del self.members[old.member_id]
        if new is not None:
            self._count(new, +1)
            self.members[new.member_id] = new
            if new.instance_id is not None:
                self.static_member_ids[new.instance_id] = new.member_id

    def _count(self, member: ConsumerMember, step: int) -> None:
        if member.state is MemberState.STABLE:
            _count_in(self._stable_at, member.member_epoch, step)
        if member.server_assignor is not None:
            _count_in(self._assignor_votes, member.server_assignor, step)
        if member.classic is not None:
            self.classic_member_count += step
            for protocol in member.classic.supported_protocols:
                _count_in(self.classic_protocols, protocol.name, step)

    # -- what is -----------------------------------------------------------------------------------

    @property
    def state(self) -> ConsumerState:
        """See the table above."""
        if not self.members:
            return ConsumerState.EMPTY
        if self.epoch > self.assignment_epoch:
            return ConsumerState.ASSIGNING
        if self._stable_at[self.assignment_epoch] != len(self.members):
            return ConsumerState.RECONCILING
        return ConsumerState.STABLE

    @property
    def preferred_assignor(self) -> str | None:
        """The server-side assignor that most members ask for; None: nobody asks for one."""
        return _most_wanted(self._votes())

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether some member is subscribed to the topic, by name or by expression."""
        return topic in self.subscriptions.topics

    def member(self, member_id: str) -> ConsumerMember:
        """A member. Raises ApiError UNKNOWN_MEMBER_ID."""
        member = self.members.get(member_id)
        if member is None:
            raise ApiError(
                ErrorCode.UNKNOWN_MEMBER_ID,
                f"Member {member_id} is not a member of group {self.group_id}.",
            )
        return member

    def member_or_new(self, member_id: str) -> ConsumerMember:
        """The member, or one that the group does not have yet."""
        return self.members.get(member_id) or _new(member_id)

    def static_member(self, instance_id: str | None) -> ConsumerMember | None:
        """The member that has, or had, this instance id."""
        member_id = None if instance_id is None else self.static_member_ids.get(instance_id)
        return None if member_id is None else self.member(member_id)

    def target(self, member_id: str, instance_id: str | None = None) -> Assignment:
        """What a member shall have; for a static one, what the holder of its instance id shall."""
        if instance_id is not None:
            member_id = self.static_member_ids.get(instance_id, "")
        return self.targets.get(member_id, NO_TARGET)

    def waits_for_others(self, member: ConsumerMember) -> bool:
        """Whether partitions that the member shall have are still with others.

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

    # -- what if -----------------------------------------------------------------------------------

    def preferred_assignor_if(self, old: ConsumerMember, new: ConsumerMember) -> str | None:
        """The preferred assignor if `old` became `new`."""
        votes = self._votes()
        for member, step in ((old, -1), (new, +1)):
            if member.server_assignor is not None:
                _count_in(votes, member.server_assignor, step)
        return _most_wanted(votes)

    def is_homogeneous_if(self, old: ConsumerMember, new: ConsumerMember) -> bool:
        """Whether all would subscribe to the same if `old` became `new`."""
        subscriptions = self.subscriptions
        # One that takes a static member's place is no new one.
        is_known = new.member_id in self.members or self.static_member(new.instance_id) is not None
        return is_homogeneous(
            subscriptions.regexes_if(old, new),
            subscriptions.topics_if(old, new),
            len(self.members) + (not is_known),
        )

    def _votes(self) -> Counter[str]:
        """A copy, in the order of Kafka's table: of two with as many votes the first one wins."""
        return Counter(dict(sorted(self._assignor_votes.items(), reverse=True)))

    # -- members that speak the classic protocol ---------------------------------------------------

    def supports_classic_protocols(self, protocol_type: str, names: Collection[str]) -> bool:
        """Whether one of these client-side assignors is known to all classic members."""
        if protocol_type != PROTOCOL_TYPE:
            return False
        if not self.members:
            return bool(names)
        return any(self.classic_protocols[name] == self.classic_member_count for name in names)

    def all_are_classic_without(self, leaving: Iterable[ConsumerMember]) -> bool:
        """Whether only members of the classic protocol are left when these have gone."""
        gone = {member.member_id: member for member in leaving}.values()
        classic = sum(member.uses_classic_protocol for member in gone)
        return self.classic_member_count - classic == len(self.members) - len(gone)

    # -- a group like any other: see the protocol Group --------------------------------------------

    @property
    def group_type(self) -> GroupType:
        return GroupType.CONSUMER

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def listed_protocol_type(self) -> str:
        return PROTOCOL_TYPE

    @property
    def is_empty(self) -> bool:
        return not self.members

    def check_commit(self, committer: Committer) -> PartitionCheck | None:
        if not needs_member(committer, group_is_empty=self.is_empty):
            return None
        return check_commit(self.member(committer.member_id), committer)

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        if member_id is not None or member_epoch >= 0:  # (null, -1) is not a member's request
            check_fetch(self.member(member_id or ""), member_epoch)

    def check_offset_deletion(self) -> None:
        """Always: topics that somebody is subscribed to are refused one by one."""

    def check_deletable(self) -> None:
        if self.members:
            raise ApiError(ErrorCode.NON_EMPTY_GROUP, "The group is not empty.")

    def retention_counts_from(self, commit_timestamp_ms: int) -> int:
        return commit_timestamp_ms

    def tombstones(self) -> list[JournalRecord]:
        return group_tombstones(self.group_id, self.members, self.subscriptions.resolved_regexes)


def _new(member_id: str) -> ConsumerMember:
    return ConsumerMember(member_id=member_id)


def _count_in(counter: Counter[str] | Counter[int], key: str | int, step: int) -> None:
    counts: Counter[str | int] = counter  # type: ignore[assignment] # each counts one kind of key
    counts[key] += step
    if not counts[key]:
        del counts[key]


def _most_wanted(votes: Counter[str]) -> str | None:
    """The name with most votes, the first of them."""
    return max(votes, key=votes.__getitem__, default=None)
