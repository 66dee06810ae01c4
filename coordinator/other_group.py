"""Streams groups: they are kept, but their members are not served.

A directory that Apache Kafka has used may contain such groups. Only the keys of their records are
decoded, not the values. That is enough to list the groups, to let administrators commit, read and
delete their offsets, and to delete a group with all its records, on request or when an empty group
is replaced by one of another type.

The members of such a group cannot send requests here. So the groups are empty, as in Kafka when the
sessions of all members have expired.

Kafka: StreamsGroup.
"""

from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.records.streams_group import STREAMS_GROUP_TYPES, StreamsGroupMetadataKey
from odradek.protocol.schema import Message

from .group import Committer, Group, GroupType, PartitionCheck
from .outcome import JournalRecord

# By record type: its key. All these keys have a group_id.
OTHER_GROUP_KEYS: dict[int, type[Message]] = {
    number: key for number, (key, _) in STREAMS_GROUP_TYPES.items()
}


class OtherGroup:
    """A streams group: the keys of its records. Only `replay` changes it."""

    group_type = GroupType.STREAMS
    listed_protocol_type = GroupType.STREAMS.value

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self._keys: dict[Message, None] = {}  # of its records, in the order in which they came

    def replay(self, key: Message, *, is_tombstone: bool) -> None:
        if is_tombstone:
            self._keys.pop(key, None)
        else:
            self._keys[key] = None

    # -- the interface of all groups (group.py) ----------------------------------------------------

    @property
    def state_name(self) -> str:
        return "Empty"

    @property
    def is_empty(self) -> bool:
        return True

    def check_commit(self, committer: Committer) -> PartitionCheck | None:
        """Refuse members: the group is empty. An administrator may commit."""
        if committer.generation_id >= 0:
            raise self._no_member(committer.member_id)
        return None

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Refuse members."""
        if member_id is not None or member_epoch >= 0:
            raise self._no_member(member_id)

    def _no_member(self, member_id: str | None) -> ApiError:
        text = f"{member_id!r} is not a member of group {self.group_id}"
        return ApiError(ErrorCode.UNKNOWN_MEMBER_ID, text)

    def check_offset_deletion(self) -> None:
        """The group is empty, so all offsets may be deleted."""

    def check_deletable(self) -> None:
        """The group is empty, so it may be deleted."""

    def is_subscribed_to(self, topic: str) -> bool:  # noqa: ARG002 # of every type of group
        return False

    def retention_counts_from(self, commit_timestamp_ms: int) -> int:
        return commit_timestamp_ms

    def tombstones(self) -> list[JournalRecord]:
        """Return the tombstones; that of the group's epoch, which ends the group, is the last."""
        keys = sorted(self._keys, key=lambda key: isinstance(key, StreamsGroupMetadataKey))
        return [JournalRecord(None, 0, key) for key in keys]


def replay(groups: dict[str, Group], key: Message, *, is_tombstone: bool) -> None:
    """Apply one record of the types in OTHER_GROUP_KEYS to `groups`: groups of any type by id.

    As with consumer groups, any record makes its group, and the tombstone of its epoch ends it. A
    group of another type is replaced.
    """
    group_id: str = key.group_id  # type: ignore[attr-defined] # all of these keys have one
    group = groups.get(group_id)
    if is_tombstone and isinstance(key, StreamsGroupMetadataKey):
        if isinstance(group, OtherGroup):
            del groups[group_id]
        return
    if not isinstance(group, OtherGroup):
        if is_tombstone:
            return
        group = groups[group_id] = OtherGroup(group_id)
    group.replay(key, is_tombstone=is_tombstone)
