"""A member of a consumer group: its subscription and the partitions it owns.

Partitions are kept by topic id, each with the member epoch at which it was assigned: commits with
that epoch or a later one are accepted (KIP-1251). Kafka: ConsumerGroupMember.
"""

from collections.abc import Mapping
from types import MappingProxyType

from odradek.coordinator.modern_groups.member import ModernMember
from odradek.coordinator.modern_groups.partition_sets import partition_count
from odradek.protocol.records.consumer_group import ClassicMemberMetadata

# Topic id -> partition -> the member epoch at which it was assigned.
OwnedPartitions = Mapping[bytes, Mapping[int, int]]

NOTHING: OwnedPartitions = MappingProxyType({})


class ConsumerMember(ModernMember, frozen=True, kw_only=True, gc=False):
    """One member. `classic` is set while it uses the classic protocol (JoinGroup)."""

    rebalance_timeout_ms: int = -1
    subscribed_regex: str = ""
    server_assignor: str | None = None
    assigned: OwnedPartitions = NOTHING
    pending_revocation: OwnedPartitions = NOTHING
    classic: ClassicMemberMetadata | None = None

    @property
    def owned_count(self) -> int:
        return partition_count(self.assigned) + partition_count(self.pending_revocation)

    @property
    def uses_classic_protocol(self) -> bool:
        return self.classic is not None
