"""A member of a consumer group: its subscription and the partitions it owns.

A member is immutable. A decision creates a changed copy and writes records of it; `replay` then
replaces the old member. Partitions are kept by topic id, each with the member epoch at which it was
assigned: commits with that epoch or a later one are accepted (KIP-1251).

Kafka: ConsumerGroupMember, MemberState.
"""

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType

from msgspec import Struct

from odradek.protocol.records.consumer_group import ClassicMemberMetadata

# Topic id -> partition -> the member epoch at which it was assigned.
OwnedPartitions = Mapping[bytes, Mapping[int, int]]

NOTHING: OwnedPartitions = MappingProxyType({})

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


class ConsumerMember(Struct, frozen=True, kw_only=True, gc=False):
    """One member. `classic` is set while it uses the classic protocol (JoinGroup).

    Every step of every member creates a new one. As a dataclass that took sixteen times as long.
    """

    member_id: str
    member_epoch: int = 0
    previous_member_epoch: int = -1
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    subscribed_topics: frozenset[str] = frozenset()
    subscribed_regex: str = ""
    server_assignor: str | None = None
    assigned: OwnedPartitions = NOTHING
    pending_revocation: OwnedPartitions = NOTHING
    classic: ClassicMemberMetadata | None = None

    @property
    def uses_classic_protocol(self) -> bool:
        return self.classic is not None
