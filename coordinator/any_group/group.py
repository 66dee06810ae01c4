"""The interface that groups of all types have.

Offsets are committed, read, deleted and expired in the same way in groups of every type. Each type
decides whether a request may do so, and which topics are still subscribed to. No method changes the
group. Kafka: Group, OffsetExpirationCondition.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import NamedTuple, Protocol

from odradek.coordinator.runtime.outcome import JournalRecord

# Checks one partition (topic name, topic id, partition) of a commit; raises ApiError to refuse it.
# Equal checks refuse the same partitions.
PartitionCheck = Callable[[str, bytes, int], None]


class GroupType(StrEnum):
    """The names that clients see, and filter by."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"


class Committer(NamedTuple):
    """The member that commits offsets. `generation_id` is the member epoch in consumer groups."""

    member_id: str = ""
    group_instance_id: str | None = None
    generation_id: int = -1
    api_version: int = 0
    is_transactional: bool = False


class Group(Protocol):
    """A group of any type."""

    group_id: str

    @property
    def members(self) -> Mapping[str, object]:
        """By id."""

    @property
    def group_type(self) -> GroupType: ...

    @property
    def state_name(self) -> str:
        """The name of the state that clients see."""

    @property
    def listed_protocol_type(self) -> str:
        """The protocol type in ListGroups; may be empty."""

    @property
    def is_empty(self) -> bool:
        """Whether the group has no members: then it is deleted when its last offset expires."""

    def check_commit(self, committer: Committer) -> PartitionCheck | None:
        """Raise ApiError unless this member may commit offsets.

        Returns a check to call for each partition, or None.
        """

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Raise ApiError unless this member may read offsets; None, -1: no member asks."""

    def check_offset_deletion(self) -> None:
        """Raise ApiError unless offsets may be deleted."""

    def check_deletable(self) -> None:
        """Raise ApiError unless the group may be deleted."""

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member consumes the topic; True when that is not known."""

    def retention_counts_from(self, commit_timestamp_ms: int) -> int | None:
        """Return the wall time (ms) from which an offset committed at that time is retained.

        None: no offset of the group expires now.
        """

    def tombstones(self) -> list[JournalRecord]:
        """Return the records that delete the group, without its offsets."""
