"""What the coordinator asks of a group, whatever protocol its members speak.

Offsets are committed, read, deleted and expire in the same way in groups of every type; what the
types decide for themselves is whether a request may do it, and what they are still subscribed to.
The questions change nothing. Kafka: Group, OffsetExpirationCondition.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple, Protocol

from .outcome import JournalRecord

# Whether one partition (topic name, topic id, partition) may be committed; raises ApiError if not.
PartitionCheck = Callable[[str, bytes, int], None]


class GroupType(StrEnum):
    """By the names that clients are shown and filter by."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"


class Committer(NamedTuple):
    """In whose name offsets are committed. `generation_id` is a member epoch in newer groups."""

    member_id: str = ""
    group_instance_id: str | None = None
    generation_id: int = -1
    api_version: int = 0
    is_transactional: bool = False


class Group(Protocol):
    """A group of any type that keeps offsets."""

    group_id: str

    @property
    def group_type(self) -> GroupType: ...

    @property
    def state_name(self) -> str:
        """The state, by the name that clients are shown."""

    @property
    def listed_protocol_type(self) -> str:
        """What ListGroups says of the members' protocol; may be empty."""

    @property
    def is_empty(self) -> bool:
        """Whether the group has no members, so that it may go with its last offset."""

    def check_commit(self, committer: Committer) -> PartitionCheck | None:
        """Whether offsets may be committed in this name; a check is for each partition.

        Raises ApiError.
        """

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Whether offsets may be read in this name. Raises ApiError."""

    def check_offset_deletion(self) -> None:
        """Whether offsets may be deleted at all. Raises ApiError."""

    def check_deletable(self) -> None:
        """Whether the group may be deleted. Raises ApiError."""

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member consumes the topic; when in doubt, yes."""

    def retention_counts_from(self, commit_timestamp_ms: int) -> int | None:
        """From when the retention of an offset committed then counts; None: nothing expires now."""

    def tombstones(self) -> list[JournalRecord]:
        """What forgets the group, its offsets left aside."""
