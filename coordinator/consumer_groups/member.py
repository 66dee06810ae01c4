"""A member of a consumer group: what it asked for, and what it has.

A member is a value. A decision makes the member as it would be and writes records of it; `replay`
puts the new one in the old one's place. Partitions are kept by topic id, each with the epoch at
which the member got it: a commit is accepted from that epoch on (KIP-1251).

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

# Member epochs that say something else than an epoch.
JOINING_EPOCH = 0
LEAVING_EPOCH = -1
LEAVING_STATIC_EPOCH = -2


class MemberState(IntEnum):
    """How far a member is; numbered as in its record. On disk: never renumber."""

    STABLE = 0
    """It has what it shall have."""
    UNREVOKED_PARTITIONS = 1
    """It must give up partitions before it may go to the next epoch."""
    UNRELEASED_PARTITIONS = 2
    """It is at its epoch, and waits for partitions that others still have."""
    UNKNOWN = 127
    """Written by a newer Kafka."""


class ConsumerMember(Struct, frozen=True, kw_only=True, gc=False):
    """One member. `classic` is there while it speaks the classic protocol (JoinGroup).

    Each step of each member makes another: as a dataclass that took sixteen times as long.
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
