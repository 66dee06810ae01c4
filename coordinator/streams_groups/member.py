"""A member of a streams group: a thread of an instance of the application, and the tasks it owns.

The instance is a process with a process id, which all its members report. Its user endpoint is the
address at which other instances can query its stores. A streams member subscribes to no topics
itself: the topology of the group names them. Kafka: StreamsGroupMember.
"""

from collections.abc import Mapping
from types import MappingProxyType

from odradek.coordinator.modern_groups.member import ModernMember
from odradek.protocol.records.streams_group import Endpoint

from .tasks import OWNS_NOTHING, OwnedTasks

NO_TAGS: Mapping[str, str] = MappingProxyType({})


class StreamsMember(ModernMember, frozen=True, kw_only=True, gc=False):
    """One member."""

    previous_member_epoch: int = 0
    rebalance_timeout_ms: int = -1
    topology_epoch: int = -1
    """The epoch of the topology with which it joined."""
    process_id: str = ""
    user_endpoint: Endpoint | None = None
    client_tags: Mapping[str, str] = NO_TAGS
    assigned: OwnedTasks = OWNS_NOTHING
    pending_revocation: OwnedTasks = OWNS_NOTHING

    @property
    def owned_count(self) -> int:
        return self.assigned.count + self.pending_revocation.count
