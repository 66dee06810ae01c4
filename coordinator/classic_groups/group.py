"""A classic group: its members, generation, protocol and state.

The members of a classic group elect a protocol, and their leader assigns the partitions. The
coordinator counts the members, keeps deadlines, and stores the last assignment. The states, and
what they answer:

    Empty                No members, perhaps offsets. A join begins a rebalance; all else is
                         UNKNOWN_MEMBER_ID. Ends with the group's deletion or its last offset.
    PreparingRebalance   Joins are parked until all members have joined or the time has ended.
                         Heartbeat and sync: REBALANCE_IN_PROGRESS. Commits of the generation are
                         accepted.
    CompletingRebalance  All have joined. Syncs are parked until the leader's, with the assignment.
                         Heartbeats are accepted; commits: REBALANCE_IN_PROGRESS.
    Stable               Assigned. Ends with a join that changes something, a leave, or the expiry
                         of a member.
    Dead                 Deleted: COORDINATOR_NOT_AVAILABLE. A final state.

`journaled` is the value of the group's last record: a generation with its members and their
assignments, or one without members. Only `replay` assigns it. All else is soft state: what has
changed since that record, which a restart loses. A record is written at the end of a rebalance, and
`replay` makes the soft state agree with it. If the record cannot be written, the rebalance has
taken place all the same, as in Kafka: the group's generation is then not journaled until the next
record.

Transitions are in join.py, rebalance.py and sync.py; members in roster.py; the record in
records.py. Kafka: ClassicGroup, ClassicGroupState.
"""

from collections.abc import Mapping, Sequence
from enum import Enum
from types import MappingProxyType
from typing import NamedTuple

from odradek.coordinator.any_group.group import Committer, GroupType
from odradek.coordinator.runtime.outcome import JournalRecord
from odradek.coordinator.runtime.steps import Step, no_step, stepping
from odradek.coordinator.runtime.timers import Deadline
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.records.consumer_offsets import GroupMetadataKey, GroupMetadataValue
from odradek.protocol.records.consumer_protocol import PROTOCOL_TYPE

from .member import ClassicMember, restored
from .protocols import metadata_of
from .roster import ClassicRoster
from .subscriptions import ClassicSubscriptions


class ClassicState(Enum):
    """The states, with the names that clients see."""

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
# The states in which a rebalance ends. A record has no others; replay may go from any to any.
JOURNALED = frozenset({ClassicState.EMPTY, ClassicState.STABLE})


class _Planned(NamedTuple):
    """The value of the next record, and the members of which it was made."""

    value: GroupMetadataValue
    roster: ClassicRoster
    changes: int
    successor: ClassicMember | None

    def is_right(self, value: GroupMetadataValue, roster: ClassicRoster) -> bool:
        """Whether this is the value, and the members are still the same."""
        return self.value is value and self.roster is roster and self.changes == roster.changes


class ClassicGroup:
    """One classic group. Times are wall-clock milliseconds."""

    group_type = GroupType.CLASSIC

    def __init__(
        self, group_id: str, state_since_ms: int | None = None, *, partition: int = 0
    ) -> None:
        """`partition` names the shard that has the group."""
        self.group_id = group_id
        self.partition = partition
        self.journaled: GroupMetadataValue | None = None
        """The value of the last record; None if the group has only offsets."""
        # The fields from here on are soft state.
        self.state = ClassicState.EMPTY
        self.previous_state = ClassicState.DEAD
        self.state_since_ms = state_since_ms
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.generation_id = 0
        self.leader_id: str | None = None
        self.roster = ClassicRoster()
        self.subscriptions = ClassicSubscriptions(None)
        """Those of the generation's members."""
        self.pending_joins: dict[str, Deadline[tuple[ClassicGroup, str]]] = {}
        """By member id that a response has given out, and with which no member has joined yet."""
        self.pending_syncs: set[str] = set()
        """The members from which the present generation lacks a SyncGroup."""
        self.join_deadline: Deadline[ClassicGroup] | None = None
        self.sync_deadline: Deadline[ClassicGroup] | None = None
        # (delay_ms, remaining_ms) while joins of a new group are being collected.
        self.initial_delay_ms: tuple[int, int] | None = None
        # Whether a member has joined since that delay began: then the group waits once more.
        self.new_member_added = False
        self.rebalance_reason = ""
        self._planned: _Planned | None = None
        """The value of the next record, and the members of which it was made; see `plan`."""

    def __repr__(self) -> str:
        return f"ClassicGroup({self.group_id!r}, partition={self.partition})"

    @property
    def members(self) -> Mapping[str, ClassicMember]:
        """By id."""
        return self.roster.by_id

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
        """Go to PreparingRebalance: all members must join."""
        self._become(ClassicState.PREPARING_REBALANCE, now_ms)
        self.rebalance_reason = reason

    def begin_generation(self, now_ms: int) -> None:
        """End the time to join: elect the protocol, and wait for the leader's sync.

        A group without members becomes empty.
        """
        self.generation_id += 1
        self.protocol_name = self.roster.elected_protocol() if self.members else None
        self.subscriptions = self._subscriptions()
        joined = ClassicState.COMPLETING_REBALANCE if self.members else ClassicState.EMPTY
        self._become(joined, now_ms)
        self.pending_syncs = set(self.members)

    def become_dead(self) -> None:
        """Become Dead, because the group was deleted or replaced, and cancel all deadlines."""
        if self.state is not ClassicState.DEAD:
            self._become(ClassicState.DEAD, self.state_since_ms)
        self.cancel_deadlines()

    def cancel_deadlines(self) -> None:
        """Cancel the deadlines of the group and its members."""
        self.stop_awaiting_joins()
        self.stop_awaiting_syncs()
        for pending in self.pending_joins.values():
            pending.cancel()
        for member in self.members.values():
            member.cancel_session()

    def stop_awaiting_joins(self) -> None:
        """Cancel the deadline for joins."""
        if self.join_deadline is not None:
            self.join_deadline.cancel()

    def stop_awaiting_syncs(self) -> None:
        """Cancel the deadline for syncs."""
        if self.sync_deadline is not None:
            self.sync_deadline.cancel()

    @property
    def state_name(self) -> str:
        """The name of the state that clients see."""
        return self.state.value

    @property
    def listed_protocol_type(self) -> str:
        """The protocol type in ListGroups; empty if no member has ever joined."""
        return self.protocol_type or ""

    @property
    def is_empty(self) -> bool:
        return self.state is ClassicState.EMPTY

    @property
    def can_rebalance(self) -> bool:
        """Whether a rebalance may begin: none waits for joins already."""
        return self.state not in (ClassicState.PREPARING_REBALANCE, ClassicState.DEAD)

    @property
    def is_initial_rebalance(self) -> bool:
        """Whether this rebalance is the first after the group was empty."""
        return self.previous_state is ClassicState.EMPTY

    # -- records ---------------------------------------------------------------------------------

    def tombstones(self) -> list[JournalRecord]:
        """Return the record that deletes the group."""
        return [JournalRecord(None, 0, GroupMetadataKey(group=self.group_id))]

    def replay(self, value: GroupMetadataValue, step: Step = no_step) -> None:
        """Apply the record of a generation. Known members keep their soft state."""
        self.journaled = value
        self.protocol_type = value.protocol_type or None
        self.protocol_name = value.protocol
        self.generation_id = value.generation
        self.leader_id = value.leader
        planned, self._planned = self._planned, None
        if planned is None or not planned.is_right(value, self.roster):
            self._replay_members(value, step)
        elif planned.successor is not None:
            self.roster.exchange(planned.successor)
        else:
            for member, entry in zip(self.members.values(), value.members, strict=True):
                member.assignment = entry.assignment
        self.pending_syncs.intersection_update(self.members)
        self.subscriptions = self._subscriptions()
        since = value.current_state_timestamp
        self._become(
            ClassicState.STABLE if value.members else ClassicState.EMPTY,
            None if since == -1 else since,
        )

    def _replay_members(self, value: GroupMetadataValue, step: Step) -> None:
        before, self.roster = self.roster, ClassicRoster()
        for entry in stepping(value.members, step):
            known = before.by_id.get(entry.member_id) or before.of_instance(entry.group_instance_id)
            self.roster.add(restored(value, entry, known))

    def plan(self, value: GroupMetadataValue, successor: ClassicMember | None = None) -> None:
        """Note that `value` has been made of the present members: replay need not compare them.

        `successor`: what replaces the static member of its instance id; all else stays.
        """
        self._planned = _Planned(value, self.roster, self.roster.changes, successor)

    def _subscriptions(self) -> ClassicSubscriptions:
        """Return the subscriptions of the members for the elected protocol."""
        name = self.protocol_name
        if self.protocol_type != PROTOCOL_TYPE or (self.members and name is None):
            return ClassicSubscriptions(None)
        return ClassicSubscriptions(
            [metadata_of(member.protocols, name) for member in self.members.values()]
        )

    # -- members -----------------------------------------------------------------------------------

    def add(self, member: ClassicMember) -> None:
        """Add a member. The first one leads, and its protocol type is that of the group."""
        if not self.members:
            self.protocol_type = member.protocol_type
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.roster.add(member)
        self.pending_joins.pop(member.member_id, None)

    def remove(self, member_id: str) -> None:
        """Remove a member or a pending one. Its parked requests get UNKNOWN_MEMBER_ID."""
        pending = self.pending_joins.pop(member_id, None)
        if pending is not None:
            pending.cancel()
        self.pending_syncs.discard(member_id)
        self.roster.remove(member_id, ErrorCode.UNKNOWN_MEMBER_ID)
        if self.is_leader(member_id):
            self.leader_id = next(iter(self.members), None)

    def rename_static(self, old_id: str, new_id: str) -> ClassicMember:
        """Give a static member, which joined without its id, a new one. The old id is fenced."""
        member = self.roster.rename(old_id, new_id)
        self.pending_syncs.discard(old_id)
        if self.is_leader(old_id):
            self.leader_id = new_id
        return member

    def is_leader(self, member_id: str) -> bool:
        return self.leader_id == member_id

    @property
    def all_have_joined(self) -> bool:
        """Whether all members have joined and no pending member is left."""
        return not self.pending_joins and self.roster.all_have_joined

    # -- questions -------------------------------------------------------------------------------

    def check_member(self, member_id: str, group_instance_id: str | None) -> ClassicMember:
        """Return the member that a request names.

        Raises ApiError: COORDINATOR_NOT_AVAILABLE (the group is dead), UNKNOWN_MEMBER_ID, or
        FENCED_INSTANCE_ID if the instance id belongs to another member now.
        """
        if self.state is ClassicState.DEAD:
            raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"group {self.group_id} is dead")
        unknown = f"{member_id!r} is not a member of group {self.group_id}"
        if group_instance_id is not None:
            current = self.roster.static_member_ids.get(group_instance_id)
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
        """Raise ApiError ILLEGAL_GENERATION unless it is the current generation."""
        if generation_id != self.generation_id:
            raise ApiError(
                ErrorCode.ILLEGAL_GENERATION,
                f"group {self.group_id} is at generation {self.generation_id}, not {generation_id}",
            )

    def check_commit(self, committer: Committer) -> None:
        """Raise ApiError unless this member may commit offsets.

        A commit without member and generation (of a simple consumer or an admin client) is allowed
        only if the group is empty. A transactional one is always allowed: older clients do not send
        the member.
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
                ErrorCode.UNKNOWN_MEMBER_ID,
                f"group {self.group_id} has members, and the commit names none",
            )
        if self.state is ClassicState.COMPLETING_REBALANCE and not transactional:
            raise ApiError(
                ErrorCode.REBALANCE_IN_PROGRESS, f"group {self.group_id} awaits its assignment"
            )

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Allow it: every client may read the offsets of a classic group."""

    def check_offset_deletion(self) -> None:
        """Raise ApiError NON_EMPTY_GROUP for members whose subscriptions are not known."""
        if self.protocol_type != PROTOCOL_TYPE:
            self.check_deletable()

    def check_deletable(self) -> None:
        """Raise ApiError NON_EMPTY_GROUP or GROUP_ID_NOT_FOUND (dead)."""
        if self.state is ClassicState.DEAD:
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"group {self.group_id} is dead")
        if not self.is_empty:
            raise ApiError(
                ErrorCode.NON_EMPTY_GROUP,
                f"group {self.group_id} has {len(self.members)} members ({self.state.value})",
            )

    def retention_counts_from(self, commit_timestamp_ms: int) -> int | None:
        """See Group. None during a rebalance, and while subscriptions are not known."""
        if self.protocol_type is None:
            return commit_timestamp_ms
        if self.is_empty:
            return commit_timestamp_ms if self.state_since_ms is None else self.state_since_ms
        knows = self.state is ClassicState.STABLE and self.subscriptions.are_known
        return commit_timestamp_ms if knows else None

    def supports(self, protocol_type: str, names: Sequence[str]) -> bool:
        """Whether a member with this protocol type and these protocols may join."""
        if self.state is ClassicState.EMPTY:
            return bool(protocol_type and names)
        return self.protocol_type == protocol_type and self.roster.support_one_of(names)

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member consumes the topic; True for consumers of unknown subscriptions."""
        if not self.subscriptions.are_known:
            return self.protocol_type == PROTOCOL_TYPE
        return self.subscriptions.include(topic)
