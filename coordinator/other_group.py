"""Share groups: they are kept, but their members are not served.

A directory that Apache Kafka has used may contain such groups. Only the keys of their records are
decoded, not the values. That is enough to list the groups, and to delete a group with all its
records. A group id has one group: no consumer joins or commits with the id of a share group.

The members of such a group cannot send requests here. So the groups are empty, as in Kafka when the
sessions of all members have expired.

A share group that has consumed records cannot be deleted. Its positions are stored by the share
coordinator, which odradek does not have, and a new group of the same id could not use them.

Kafka: ShareGroup.
"""

from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.records.share_group import (
    SHARE_GROUP_TYPES,
    ShareGroupMetadataKey,
    ShareGroupStatePartitionMetadataKey,
)
from odradek.protocol.schema import Message

from .group import Committer, Group, GroupType, PartitionCheck
from .outcome import JournalRecord

# By record type: its key. All these keys have a group_id.
OTHER_GROUP_KEYS: dict[int, type[Message]] = {
    number: key for number, (key, _) in SHARE_GROUP_TYPES.items()
}


class OtherGroup:
    """A share group: the keys of its records. Only `replay` changes it."""

    group_type = GroupType.SHARE

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
    def listed_protocol_type(self) -> str:
        return self.group_type.value

    @property
    def is_empty(self) -> bool:
        return True

    def check_commit(self, committer: Committer) -> PartitionCheck | None:  # noqa: ARG002 # of every type of group
        """A share group has no offsets."""
        raise self._keeps_no_offsets()

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """A share group has no offsets; the answer is empty."""

    def check_offset_deletion(self) -> None:
        raise self._keeps_no_offsets()

    def _keeps_no_offsets(self) -> ApiError:
        return ApiError(
            ErrorCode.GROUP_ID_NOT_FOUND, f"Group {self.group_id} is not a consumer group."
        )

    def check_deletable(self) -> None:
        if ShareGroupStatePartitionMetadataKey(group_id=self.group_id) in self._keys:
            raise ApiError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"{self.group_id} is a share group, and share coordinators are not served: "
                "how far it has read cannot be deleted",
            )

    def is_subscribed_to(self, topic: str) -> bool:  # noqa: ARG002 # of every type of group
        return False

    def retention_counts_from(self, commit_timestamp_ms: int) -> int:
        return commit_timestamp_ms

    def tombstones(self) -> list[JournalRecord]:
        """Return the tombstones; that of the group's epoch, which ends the group, is the last."""
        keys = sorted(self._keys, key=lambda key: isinstance(key, ShareGroupMetadataKey))
        return [JournalRecord(None, 0, key) for key in keys]


def replay(groups: dict[str, Group], key: Message, *, is_tombstone: bool) -> None:
    """Apply one record of the types in OTHER_GROUP_KEYS to `groups`: groups of any type by id.

    As with consumer groups, any record makes its group, and the tombstone of its epoch ends it. A
    group of another type is replaced.
    """
    group_id: str = key.group_id  # type: ignore[attr-defined] # all of these keys have one
    group = groups.get(group_id)
    if is_tombstone and isinstance(key, ShareGroupMetadataKey):
        if isinstance(group, OtherGroup):
            del groups[group_id]
        return
    if not isinstance(group, OtherGroup):
        if is_tombstone:
            return
        group = groups[group_id] = OtherGroup(group_id)
    group.replay(key, is_tombstone=is_tombstone)
