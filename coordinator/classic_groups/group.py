"""A classic group: who is in it, at which generation, under which protocol, in which state.

The members of a classic group elect a protocol, and their leader assigns the work; the coordinator
only counts them, keeps time, and remembers the last assignment. Five states, and what they answer:

    Empty                No members, perhaps offsets. A join begins a rebalance; all else is
                         UNKNOWN_MEMBER_ID. Ends with the group's deletion or its last offset.
    PreparingRebalance   Joins are parked until all members are back or the time is up. Heartbeat
                         and sync: REBALANCE_IN_PROGRESS; commits of the generation are taken.
    CompletingRebalance  All have joined; syncs are parked until the leader's brings the assignment.
                         Heartbeats are taken, commits are REBALANCE_IN_PROGRESS.
    Stable               Assigned. Left by a join that changes something, a leave, a lost member.
    Dead                 Deleted: COORDINATOR_NOT_AVAILABLE. Nothing leads out of it.

Journaled is the value of the group's last record: a generation with its members and their
assignments, or one without members. `journaled` holds it, and only `replay` assigns it. Everything
else is soft: it is where the group has come to since that record, and a restart forgets it. A
record ends a rebalance; `replay` then makes the soft state agree with it. If the record cannot be
written, the rebalance has happened all the same, as in Kafka: the group is at a generation that is
not journaled, and the next record will say so.

How a group moves: join.py, rebalance.py, sync.py; who is in it: roster.py; what is written of it:
records.py. Kafka: ClassicGroup, ClassicGroupState.
"""

from collections.abc import Mapping, Sequence
from enum import Enum
from types import MappingProxyType

from odradek.coordinator.group import Committer, GroupType
from odradek.coordinator.outcome import JournalRecord
from odradek.coordinator.timers import Deadline
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.records.consumer_offsets import GroupMetadataKey, GroupMetadataValue
from odradek.protocol.records.consumer_protocol import PROTOCOL_TYPE, subscribed_topics
from odradek.protocol.schema import DecodeError

from .member import (
    ClassicMember,
    metadata_of,
    restored,
)
from .roster import ClassicRoster


class ClassicState(Enum):
    """By the names that clients are shown."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


LEGAL: Mapping[ClassicState, frozenset[ClassicState]] = MappingProxyType(
    {
        ClassicState.EMPTY: frozenset({ClassicState.PREPARING_REBALANCE, ClassicState.DEAD}),
        ClassicState.PREPARING_REBALANCE: frozenset(
            {ClassicState.COMPLETING_REBALANCE, ClassicState.EMPTY, ClassicState.DEAD}
        ),
        ClassicState.COMPLETING_REBALANCE: frozenset(
            {ClassicState.STABLE, ClassicState.PREPARING_REBALANCE, ClassicState.DEAD}
        ),
        ClassicState.STABLE: frozenset({ClassicState.PREPARING_REBALANCE, ClassicState.DEAD}),
        ClassicState.DEAD: frozenset(),
    }
)
# The states in which a rebalance ends. The log knows no others, and leads from any to any of them.
JOURNALED = frozenset({ClassicState.EMPTY, ClassicState.STABLE})


class ClassicGroup:
    """One classic group. Times are wall-clock milliseconds."""

    def __init__(self, group_id: str, state_since_ms: int | None = None) -> None:
        self.group_id = group_id
        self.journaled: GroupMetadataValue | None = None
        """What the last record says; None: there is none, only offsets."""
        # Soft from here on: where the group has come to since that record.
        self.state = ClassicState.EMPTY
        self.previous_state = ClassicState.DEAD
        self.state_since_ms = state_since_ms
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.generation_id = 0
        self.leader_id: str | None = None
        self.roster = ClassicRoster()
        self.subscribed_topics: frozenset[str] | None = None
        self.pending_joins: dict[str, Deadline[tuple[str, str]]] = {}
        self.pending_syncs: set[str] = set()
        self.join_deadline: Deadline[str] | None = None
        self.sync_deadline: Deadline[str] | None = None
        # (delay_ms, remaining_ms) while joins of a new group are being collected.
        self.initial_delay_ms: tuple[int, int] | None = None
        self.new_member_added = False
        self.rebalance_reason = ""

    @property
    def members(self) -> Mapping[str, ClassicMember]:
        """By id."""
        return self.roster.by_id

    @property
    def static_member_ids(self) -> Mapping[str, str]:
        """The ids of static members, by instance."""
        return self.roster.id_of_instance

    # -- states ----------------------------------------------------------------------------------

    def _become(self, state: ClassicState, now_ms: int | None) -> None:
        between_ends = self.state in JOURNALED and state in JOURNALED
        assert state in LEGAL[self.state] or between_ends, (
            f"group {self.group_id} cannot go from {self.state.value} to {state.value}"
        )
        self.previous_state = self.state
        self.state = state
        self.state_since_ms = now_ms

    def begin_rebalance(self, reason: str, now_ms: int) -> None:
        """Wait for everybody to join."""
        self._become(ClassicState.PREPARING_REBALANCE, now_ms)
        self.rebalance_reason = reason

    def begin_generation(self, now_ms: int) -> None:
        """All who will join have joined: elect the protocol, and wait for the leader's sync.

        Without members the group is empty at once.
        """
        self.generation_id += 1
        self.protocol_name = self.roster.elected_protocol() if self.members else None
        self.subscribed_topics = self._subscribed_topics()
        joined = ClassicState.COMPLETING_REBALANCE if self.members else ClassicState.EMPTY
        self._become(joined, now_ms)
        self.pending_syncs = set(self.members)

    def die(self) -> None:
        """The group has been deleted, or replaced: none of its deadlines falls any more."""
        if self.state is not ClassicState.DEAD:
            self._become(ClassicState.DEAD, self.state_since_ms)
        self.cancel_deadlines()

    def cancel_deadlines(self) -> None:
        """None of the group's deadlines falls any more."""
        self.stop_awaiting_joins()
        self.stop_awaiting_syncs()
        for pending in self.pending_joins.values():
            pending.cancel()
        for member in self.members.values():
            member.end_session()

    def stop_awaiting_joins(self) -> None:
        """Cancel the end of the time to join."""
        if self.join_deadline is not None:
            self.join_deadline.cancel()

    def stop_awaiting_syncs(self) -> None:
        """Cancel the end of the time to sync."""
        if self.sync_deadline is not None:
            self.sync_deadline.cancel()

    @property
    def group_type(self) -> GroupType:
        return GroupType.CLASSIC

    @property
    def state_name(self) -> str:
        """The state, by the name that clients are shown."""
        return self.state.value

    @property
    def listed_protocol_type(self) -> str:
        """What ListGroups says; empty for a group that nobody has joined."""
        return self.protocol_type or ""

    @property
    def is_empty(self) -> bool:
        return self.state is ClassicState.EMPTY

    @property
    def can_rebalance(self) -> bool:
        """Whether a rebalance may begin; in the middle of one it already has."""
        return self.state not in (ClassicState.PREPARING_REBALANCE, ClassicState.DEAD)

    @property
    def is_initial_rebalance(self) -> bool:
        """Whether this rebalance is the first after the group was empty."""
        return self.previous_state is ClassicState.EMPTY

    # -- what is written down --------------------------------------------------------------------

    def tombstones(self) -> list[JournalRecord]:
        """What forgets the group."""
        return [JournalRecord(None, 0, GroupMetadataKey(group=self.group_id))]

    def replay(self, value: GroupMetadataValue) -> None:
        """Apply the end of a rebalance. Members that are known keep what is soft about them."""
        self.journaled = value
        self.protocol_type = value.protocol_type or None
        self.protocol_name = value.protocol
        self.generation_id = value.generation
        self.leader_id = value.leader
        before, self.roster = self.roster, ClassicRoster()
        for entry in value.members:
            known = before.by_id.get(entry.member_id) or before.of_instance(entry.group_instance_id)
            self.roster.add(restored(value, entry, known))
        self.pending_syncs.intersection_update(self.members)
        self.subscribed_topics = self._subscribed_topics()
        since = value.current_state_timestamp
        self._become(
            ClassicState.STABLE if value.members else ClassicState.EMPTY,
            None if since == -1 else since,
        )

    def _subscribed_topics(self) -> frozenset[str] | None:
        """What consumers subscribe to; None where that is not known."""
        if self.protocol_type != PROTOCOL_TYPE:
            return None
        if not self.members:
            return frozenset()
        if self.protocol_name is None:
            return None
        name = self.protocol_name
        # Of a thousand members most say the same.
        said = {metadata_of(member.protocols, name) for member in self.members.values()}
        try:
            return frozenset().union(*map(subscribed_topics, said))
        except DecodeError:
            return None

    # -- members -----------------------------------------------------------------------------------

    def add(self, member: ClassicMember) -> None:
        """A member joins; the first one leads, and says what kind of group this is."""
        if not self.members:
            self.protocol_type = member.protocol_type
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.roster.add(member)
        self.pending_joins.pop(member.member_id, None)

    def remove(self, member_id: str) -> None:
        """A member, or a pending one, is gone; what it waits for is answered UNKNOWN_MEMBER_ID."""
        pending = self.pending_joins.pop(member_id, None)
        if pending is not None:
            pending.cancel()
        self.pending_syncs.discard(member_id)
        self.roster.remove(member_id, ErrorCode.UNKNOWN_MEMBER_ID)
        if self.is_leader(member_id):
            self.leader_id = next(iter(self.members), None)

    def rename_static(self, old_id: str, new_id: str) -> ClassicMember:
        """A static member came back without its id: it gets a new one, and the old is fenced."""
        member = self.roster.rename(old_id, new_id)
        self.pending_syncs.discard(old_id)
        if self.is_leader(old_id):
            self.leader_id = new_id
        return member

    def is_leader(self, member_id: str) -> bool:
        return self.leader_id == member_id

    @property
    def all_have_joined(self) -> bool:
        """Whether nobody is missing, nor was promised an id and has not come back with it."""
        return not self.pending_joins and self.roster.all_have_joined

    # -- questions -------------------------------------------------------------------------------

    def check_member(self, member_id: str, group_instance_id: str | None) -> ClassicMember:
        """The member that a request speaks for.

        Raises ApiError: COORDINATOR_NOT_AVAILABLE (the group is dead), UNKNOWN_MEMBER_ID, or
        FENCED_INSTANCE_ID when another has taken this instance's place.
        """
        if self.state is ClassicState.DEAD:
            raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"group {self.group_id} is dead")
        unknown = f"{member_id!r} is no member of group {self.group_id}"
        if group_instance_id is not None:
            current = self.static_member_ids.get(group_instance_id)
            if current is None:
                raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"{unknown} ({group_instance_id})")
            if current != member_id:
                raise ApiError(
                    ErrorCode.FENCED_INSTANCE_ID,
                    f"{group_instance_id} is {current}, not {member_id}",
                )
        member = self.members.get(member_id)
        if member is None:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, unknown)
        return member

    def check_generation(self, generation_id: int) -> None:
        """Raises ApiError ILLEGAL_GENERATION."""
        if generation_id != self.generation_id:
            raise ApiError(
                ErrorCode.ILLEGAL_GENERATION,
                f"group {self.group_id} is at generation {self.generation_id}, not {generation_id}",
            )

    def check_commit(self, committer: Committer) -> None:
        """Whether offsets may be committed in this name. Raises ApiError.

        Without member and generation (a simple consumer, an admin client) only to an empty group,
        but for transactions, whose older clients do not say on whose behalf they commit.
        """
        member_id, instance_id, generation_id, _, transactional = committer
        if self.state is ClassicState.DEAD:
            raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"group {self.group_id} is dead")
        if generation_id < 0 and self.state is ClassicState.EMPTY:
            return
        if generation_id >= 0 or member_id or instance_id is not None:
            self.check_member(member_id, instance_id)
            self.check_generation(generation_id)
        elif not transactional:
            raise ApiError(
                ErrorCode.UNKNOWN_MEMBER_ID, f"group {self.group_id} has members: who commits?"
            )
        if self.state is ClassicState.COMPLETING_REBALANCE and not transactional:
            raise ApiError(
                ErrorCode.REBALANCE_IN_PROGRESS, f"group {self.group_id} awaits its assignment"
            )

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Anybody may read the offsets of a classic group."""

    def check_offset_deletion(self) -> None:
        """Raises ApiError NON_EMPTY_GROUP where it cannot be known what members consume."""
        if self.protocol_type != PROTOCOL_TYPE:
            self.check_deletable()

    def check_deletable(self) -> None:
        """Raises ApiError NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND."""
        if self.state is ClassicState.DEAD:
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"group {self.group_id} is dead")
        if not self.is_empty:
            raise ApiError(
                ErrorCode.NON_EMPTY_GROUP,
                f"group {self.group_id} has {len(self.members)} members ({self.state.value})",
            )

    def retention_counts_from(self, commit_timestamp_ms: int) -> int | None:
        """See Group; None in the middle of a rebalance, and while subscriptions are unknown."""
        if self.protocol_type is None:
            return commit_timestamp_ms
        if self.is_empty:
            return commit_timestamp_ms if self.state_since_ms is None else self.state_since_ms
        knows = self.state is ClassicState.STABLE and self.subscribed_topics is not None
        return commit_timestamp_ms if knows else None

    def supports(self, protocol_type: str, names: Sequence[str]) -> bool:
        """Whether a member with these protocols fits in: of the same type, one that all have."""
        if self.state is ClassicState.EMPTY:
            return bool(protocol_type and names)
        return self.protocol_type == protocol_type and self.roster.support_one_of(names)

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member consumes the topic; when in doubt, consumers do."""
        if self.subscribed_topics is None:
            return self.protocol_type == PROTOCOL_TYPE
        return topic in self.subscribed_topics
