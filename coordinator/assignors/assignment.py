"""The input and output of a server-side assignor (KIP-848).

An assignor is a pure function. Its input is the members of a group, with their subscriptions and
current targets, and the partition counts of the topics. Its output is the new target of each
member. It sees topic ids only; names and regular expressions are resolved before. It does not know
epochs, owned partitions or time: the group moves each member from its old target to the new one
(consumer_groups/reconciliation.py).

All mappings are treated as immutable. An assignor never changes its input. For a member whose
target is unchanged it returns the same object (`is`), so that the group need not compare targets
and writes no record. It calls a step again and again, in which other requests may be served.

Kafka: the package coordinator.group.api.assignor, and GroupSpecImpl.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol

from msgspec import Struct, field

from odradek.coordinator.runtime.steps import Step, no_step
from odradek.protocol.errors import ApiError, ErrorCode

Assignment = Mapping[bytes, frozenset[int]]
"""Partitions by topic id (16 bytes). No entry is empty."""

NOTHING: Assignment = MappingProxyType({})


class AssignorError(ApiError):
    """An assignor cannot make an assignment (Kafka: PartitionAssignorException).

    The request is answered UNKNOWN_SERVER_ERROR, and the targets are unchanged.
    """

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.UNKNOWN_SERVER_ERROR, message)


class MemberSpec(Struct, frozen=True, kw_only=True):
    """A member as an assignor sees it (Kafka: MemberSubscriptionAndAssignmentImpl)."""

    member_id: str
    instance_id: str | None = None
    subscribed_topic_ids: frozenset[bytes]
    assignment: Assignment = field(default_factory=lambda: NOTHING)
    """The current target. A member that replaces a static member inherits its target."""


class GroupSpec(Struct, frozen=True, kw_only=True):
    """A group as an assignor sees it (Kafka: GroupSpecImpl).

    In a consumer group no partition may be in the targets of two members, and a partition in no
    target is free. Kafka passes the assignors a second map, from partitions to members, to find the
    free ones; these assignors compute them.
    """

    members: Mapping[str, MemberSpec]
    is_homogeneous: bool
    """All members subscribe to the same topics."""
    assignable: Assignment | None = None
    """The partitions that may be assigned, in a share group; None: all partitions of the topics."""


class TopicsView(Protocol):
    """The topic queries of assignors (Kafka: SubscribedTopicDescriber)."""

    def partition_count(self, topic_id: bytes) -> int:
        """Return the number of partitions; -1 if the topic is unknown."""


class Assignor(Protocol):
    """An assignment strategy (Kafka: ConsumerGroupPartitionAssignor)."""

    name: str
    """The name that clients send in ConsumerGroupHeartbeat."""

    def assign(
        self, spec: GroupSpec, topics: TopicsView, step: Step = no_step
    ) -> dict[str, Assignment]:
        """Return the new target of every member, possibly NOTHING. Raises AssignorError."""
