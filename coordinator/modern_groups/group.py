"""What groups of all modern types have in common: epochs, members and targets.

An EpochGroup has these, and is independent of what its members are assigned. A ModernGroup is one
whose members subscribe to topics and are assigned partitions; the members of a streams group are
assigned tasks.

Three epochs show the progress of a rebalance. The group epoch rises whenever members,
subscriptions or topics change. The assignment epoch is the group epoch for which the target
assignments were computed. A member's epoch is the epoch of the target that the member has reached.

Only the replay methods of a group's type assign journaled state. Kafka: ModernGroup.
"""

from typing import Generic, TypeVar

from odradek.coordinator.assignors.assignment import Assignment
from odradek.coordinator.runtime.copies import Copyable
from odradek.coordinator.runtime.timers import Now, TimerMoment
from odradek.protocol.errors import ApiError, ErrorCode

from .member import M, MemberKey
from .subscriptions import TopicSubscriptions

# The epoch of a new group in Kafka 4.3. The first member raises it to 2.
FIRST_EPOCH = 1


T = TypeVar("T")


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

    def _replace_member(self, old: M | None, new: M | None) -> None:
        """Add (`old` is None), change, or remove (`new` is None) a member."""
        if new is not None:
            self.members[new.member_id] = new
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

    def _replace_member(self, old: M | None, new: M | None) -> None:
        self.subscriptions.replace_member(old, new)
        super()._replace_member(old, new)

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether some member is subscribed to the topic."""
        return topic in self.subscriptions.topics
