"""What members of all modern groups have in common: identity, epochs and subscription.

A member is immutable. A decision creates a changed copy and writes records of it; `replay` then
replaces the old member. Each type of group adds the partitions that its members own.

Kafka: ModernGroupMember, MemberState.
"""

from enum import IntEnum
from typing import NamedTuple, TypeVar

from msgspec import Struct

# Special values of a member epoch in requests.
JOINING_EPOCH = 0
LEAVING_EPOCH = -1
LEAVING_STATIC_EPOCH = -2


class MemberState(IntEnum):
    """Progress of a member towards its target. On disk: never renumber."""

    STABLE = 0
    """It owns its target, without topics that it no longer subscribes to."""
    UNREVOKED_PARTITIONS = 1
    """It must give up partitions before it may advance to the next epoch."""
    UNRELEASED_PARTITIONS = 2
    """It is at the target's epoch, and waits for partitions that other members still own."""
    UNKNOWN = 127
    """A state written by a newer Kafka."""


class MemberKey(NamedTuple):
    """Identifies a member among all groups of a type. `partition` names the shard of its group.

    A group id may have groups in two shards (runtime/shards.py), with the same member in both.
    """

    partition: int
    group_id: str
    member_id: str


_STATES = {state.value: state for state in MemberState}


def member_state(number: int) -> MemberState:
    """Return the state of a number in a record."""
    return _STATES.get(number, MemberState.UNKNOWN)


class ModernMember(Struct, frozen=True, kw_only=True, gc=False):
    """One member.

    Every step of every member creates a new one. As a dataclass that took sixteen times as long.
    """

    member_id: str
    member_epoch: int = 0
    previous_member_epoch: int = -1
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    subscribed_topics: frozenset[str] = frozenset()

    @property
    def owned_count(self) -> int:
        """Of how many partitions or tasks it is the owner. A share member is the owner of none."""
        return 0


M = TypeVar("M", bound=ModernMember)
