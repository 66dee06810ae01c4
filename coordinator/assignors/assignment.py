"""What a server-side assignor is given and what it gives back (KIP-848).

An assignor is a pure function: from a group's members with their subscriptions and their present
target assignments, and from the topics' partition counts, to the members' new target assignments.
It sees topic ids only; names and patterns are resolved before. It knows nothing of epochs, of what
members own at the moment, or of time: moving from the old target to the new one, member by member
and partition by partition, is the group's work (reconciliation).

Everything here is immutable by agreement: an assignor never changes a mapping it was given, and a
member whose target stays as it was gets the very same object back (`is`), so that the group need
not compare and writes no record.

Kafka: the package coordinator.group.api.assignor, and GroupSpecImpl.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol

from odradek.protocol.errors import ApiError, ErrorCode

Assignment = Mapping[bytes, frozenset[int]]
"""Partitions by topic id (16 bytes); no topic stands there with no partitions."""

NOTHING: Assignment = MappingProxyType({})


class AssignorError(ApiError):
    """An assignor cannot make an assignment (Kafka: PartitionAssignorException).

    Whoever asked for the assignment is answered UNKNOWN_SERVER_ERROR, and the target stays.
    """

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.UNKNOWN_SERVER_ERROR, message)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberSpec:
    """A member as an assignor sees it (Kafka: MemberSubscriptionAndAssignmentImpl)."""

    member_id: str
    instance_id: str | None = None
    subscribed_topic_ids: frozenset[bytes]
    assignment: Assignment = field(default_factory=lambda: NOTHING)
    """Its present target. A static member that takes another's place brings that one's target."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSpec:
    """A group as an assignor sees it (Kafka: GroupSpecImpl).

    No partition may stand in the targets of two members. What nobody's target holds is free: Kafka
    hands the assignors a second map, the targets turned over, to find that out; they see it here.
    """

    members: Mapping[str, MemberSpec]
    is_homogeneous: bool
    """All members subscribe to the same topics."""


class TopicsView(Protocol):
    """What assignors ask about topics (Kafka: SubscribedTopicDescriber)."""

    def partition_count(self, topic_id: bytes) -> int:
        """The number of partitions; -1 where the topic is unknown."""


class Assignor(Protocol):
    """One way to share the partitions out (Kafka: ConsumerGroupPartitionAssignor)."""

    name: str
    """As clients ask for it in ConsumerGroupHeartbeat."""

    def assign(self, spec: GroupSpec, topics: TopicsView) -> dict[str, Assignment]:
        """The new target of every member of the group, perhaps NOTHING; raises AssignorError."""
