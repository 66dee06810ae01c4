"""What groups of all modern types have in common: epochs, members and targets.

An EpochGroup has these, and is independent of what its members are assigned. A ModernGroup is one
whose members subscribe to topics and are assigned partitions; the members of a streams group are
assigned tasks.

Three epochs show the progress of a rebalance. The group epoch rises whenever members,
subscriptions or topics change. The assignment epoch is the group epoch for which the target
assignments were computed. A member's epoch is the epoch of the target that the member has reached.

Only the replay methods of a group's type assign journaled state. Kafka: ModernGroup.
"""

from typing import Generic, Protocol, TypeVar

from odradek.coordinator.assignors.assignment import Assignment
from odradek.coordinator.runtime.copies import Copyable
from odradek.coordinator.runtime.steps import Step, no_step
from odradek.coordinator.runtime.timers import Now, TimerMoment
from odradek.protocol.errors import ApiError, ErrorCode

from .member import LEAVING_STATIC_EPOCH, M, MemberKey
from .subscriptions import TopicSubscriptions

# The epoch of a new group in Kafka. The first member raises it to 2.
FIRST_EPOCH = 1
NO_ASSIGNMENT_EPOCH = -1  # the targets have a tombstone: the group is about to end


T = TypeVar("T")


class TargetEpoch(Protocol):
    """The value of a record of the targets' epoch."""

    @property
    def assignment_epoch(self) -> int: ...

    @property
    def assignment_timestamp(self) -> int: ...


class EpochGroup(Copyable, Generic[M, T]):
    """One group with members of type M; T is the type of a member's target."""

    def __init__(self, group_id: str, partition: int = 0) -> None:
        """`partition` names the shard that has the group."""
        self.group_id = group_id
        self.partition = partition
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        """Hash of the subscribed topics when the epoch last rose (topic_hash.py)."""
        self.assignment_epoch = FIRST_EPOCH
        self.assignment_timestamp_ms = 0
        """When the targets were computed, in wall time. `assigned_at` gives their age."""
        self.members: dict[str, M] = {}
        self.targets: dict[str, T] = {}
        """Target assignment by member id."""
        self.static_member_ids: dict[str, str] = {}
        """Member id by instance id."""

        # Soft: not journaled. Deadlines of members are in deadlines.py.
        self.topics_checked_offset: int | None = None
        """ClusterTopics.last_change_offset when the topics were last checked; None if they were not
        checked since the group was created or loaded."""
        self.changes = 0
        """How many decisions about the group have been committed."""
        self.assigned_at = TimerMoment()
        """When the targets were computed, on the timer clock."""

    def note_timestamps(self, now: Now) -> None:
        """Note the timestamps that have just been written, or read from the log."""
        self.assigned_at.note(self.assignment_timestamp_ms, now)

    def replay_target_epoch(self, value: TargetEpoch | None) -> None:
        """Apply type 6, 12 or 20, the epoch of the targets. A tombstone removes the targets."""
        if value is None:
            self.assignment_epoch, self.assignment_timestamp_ms = NO_ASSIGNMENT_EPOCH, 0
        else:
            self.assignment_epoch = value.assignment_epoch
            self.assignment_timestamp_ms = value.assignment_timestamp

    def _replace_member(self, old: M | None, new: M | None, step: Step = no_step) -> None:  # noqa: ARG002 # of other groups
        """Add (`old` is None), change, or remove (`new` is None) a member.

        A member that rejoins may bring another instance id. The old instance id is then free. In
        Kafka it stays with the member until the log is cleaned and read again.
        """
        instance_id = None if old is None else old.instance_id
        if old and instance_id is not None and self._static_member_id(instance_id) == old.member_id:
            del self.static_member_ids[instance_id]
        if new is not None:
            self.members[new.member_id] = new
            if new.instance_id is not None:  # a classic member may have an empty one
                self.static_member_ids[new.instance_id] = new.member_id
        elif old is not None:
            del self.members[old.member_id]

    @property
    def is_empty(self) -> bool:
        return not self.members

    def key_of(self, member_id: str) -> MemberKey:
        """Return the key of a member's deadlines."""
        return MemberKey(self.partition, self.group_id, member_id)

    def member(self, member_id: str) -> M:
        """Return a member. Raises ApiError UNKNOWN_MEMBER_ID."""
        member = self.members.get(member_id)
        if member is None:
            raise ApiError(
                ErrorCode.UNKNOWN_MEMBER_ID,
                f"Member {member_id} is not a member of group {self.group_id}.",
            )
        return member

    def static_member(self, instance_id: str | None) -> M | None:
        """Return the member of this instance id, which may be away; None if there is none."""
        member_id = self._static_member_id(instance_id)
        return None if member_id is None else self.member(member_id)

    def check_released(self, present: M, member_id: str) -> None:
        """Raise ApiError UNRELEASED_INSTANCE_ID, with Kafka's text, unless a static member is away.

        `member_id` of the one that is to replace it.
        """
        if present.member_epoch != LEAVING_STATIC_EPOCH:
            raise ApiError(
                ErrorCode.UNRELEASED_INSTANCE_ID,
                f"Static member {member_id} with instance id {present.instance_id} cannot join the "
                f"group because the instance id is owned by {present.member_id} member.",
            )

    def previous_id(self, member: M) -> str:
        """The id of the static member that this member replaces, or its own id."""
        known_id = self._static_member_id(member.instance_id)
        return member.member_id if known_id is None else known_id

    def _static_member_id(self, instance_id: str | None) -> str | None:
        return None if instance_id is None else self.static_member_ids.get(instance_id)

    def requesting_member(self, member_id: str, instance_id: str | None) -> M:
        """Return the member that sent a request; it must be in the group.

        Raises ApiError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, with Kafka's texts.
        """
        if instance_id is None:
            return self.member(member_id)
        member = self.static_member(instance_id)
        if member is None:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
        if member.member_id != member_id:
            raise ApiError(
                ErrorCode.FENCED_INSTANCE_ID,
                f"Static member {member_id} with instance id {instance_id} was fenced by member "
                f"{member.member_id}.",
            )
        return member

    def check_deletable(self) -> None:
        """Raise ApiError NON_EMPTY_GROUP if it has members."""
        if self.members:
            raise ApiError(ErrorCode.NON_EMPTY_GROUP, "The group is not empty.")

    def check_size(self, member_id: str, max_size: int, *, returns: bool = False) -> None:
        """Raise ApiError GROUP_MAX_SIZE_REACHED for a new member of a full group.

        `returns`: it is a static member that comes back, and takes the place that it had.
        """
        is_known = returns or member_id in self.members
        if len(self.members) >= max_size and not is_known:
            raise ApiError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"group {self.group_id} has {len(self.members)} of {max_size} members",
            )


class ModernGroup(EpochGroup[M, Assignment]):
    """One group whose members subscribe to topics and are assigned partitions of them."""

    subscriptions: TopicSubscriptions[M]

    def __init__(self, group_id: str, partition: int, subscriptions: TopicSubscriptions[M]) -> None:
        super().__init__(group_id, partition)
        self.subscriptions = subscriptions

    def _replace_member(self, old: M | None, new: M | None, step: Step = no_step) -> None:
        self.subscriptions.replace_member(old, new, step)
        super()._replace_member(old, new, step)

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether some member is subscribed to the topic."""
        return topic in self.subscriptions.topics
