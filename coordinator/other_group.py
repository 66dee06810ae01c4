"""Share and streams groups: kept, though their members are not served.

A directory that Apache Kafka has used may hold some. What their records say is not read, only which
records there are: so they are shown, offsets of a streams group are committed, read and deleted by
administrators, and a group without members can be deleted, or make way for another, with all of its
records. A name has one group: no consumer joins or commits under the name of a share group.

Whoever was a member cannot be heard of here. So these groups are empty, as Kafka itself finds them
when the members' sessions have ended.

A share group that has read something has more to it than these records: how far it has read is
known to a coordinator that is not there. It stays, for a group that began anew under its name would
not be let near that.

Kafka: ShareGroup, StreamsGroup.
"""

from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.records.share_group import (
    SHARE_GROUP_TYPES,
    ShareGroupMetadataKey,
    ShareGroupStatePartitionMetadataKey,
)
from odradek.protocol.records.streams_group import STREAMS_GROUP_TYPES, StreamsGroupMetadataKey
from odradek.protocol.schema import Message

from .group import Committer, GroupType, PartitionCheck
from .outcome import JournalRecord

# By record type: its key, all of which name their group.
OTHER_GROUP_KEYS: dict[int, type[Message]] = {
    number: key for number, (key, _) in (*SHARE_GROUP_TYPES.items(), *STREAMS_GROUP_TYPES.items())
}
_SHARE_KEYS = tuple(key for key, _ in SHARE_GROUP_TYPES.values())
_EPOCH_KEYS = (ShareGroupMetadataKey, StreamsGroupMetadataKey)


class OtherGroup:
    """One group; only the replay of its records changes it."""

    def __init__(self, group_id: str, group_type: GroupType) -> None:
        self.group_id = group_id
        self.group_type = group_type
        self._keys: dict[Message, None] = {}  # of its records, in the order in which they came

    def replay(self, key: Message, *, is_tombstone: bool) -> None:
        if is_tombstone:
            self._keys.pop(key, None)
        else:
            self._keys[key] = None

    @property
    def _is_share(self) -> bool:
        return self.group_type is GroupType.SHARE

    # -- what every group is asked (group.py) ------------------------------------------------------

    @property
    def state_name(self) -> str:
        return "Empty"

    @property
    def listed_protocol_type(self) -> str:
        return self.group_type.value

    @property
    def is_empty(self) -> bool:
        return True

    def check_commit(self, committer: Committer) -> PartitionCheck | None:
        """Nobody is a member of a streams group, so whoever is not, may commit."""
        self._check_keeps_offsets()
        if committer.generation_id >= 0:
            raise ApiError(
                ErrorCode.UNKNOWN_MEMBER_ID,
                f"{committer.member_id!r} is no member of group {self.group_id}",
            )
        return None

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """A share group has no offsets, which anybody may be told."""
        if not self._is_share and (member_id is not None or member_epoch >= 0):
            raise ApiError(
                ErrorCode.UNKNOWN_MEMBER_ID, f"{member_id!r} is no member of group {self.group_id}"
            )

    def check_offset_deletion(self) -> None:
        self._check_keeps_offsets()

    def _check_keeps_offsets(self) -> None:
        if self._is_share:
            raise ApiError(
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
        """The group's epoch goes last: it is what the group is known by."""
        keys = sorted(self._keys, key=lambda key: isinstance(key, _EPOCH_KEYS))
        return [JournalRecord(None, 0, key) for key in keys]


def replay(groups: dict[str, OtherGroup], key: Message, *, is_tombstone: bool) -> None:
    """Apply one record of the types in OTHER_GROUP_KEYS to the groups by name.

    As with consumer groups, any record makes its group, and the tombstone of its epoch ends it.
    """
    group_id: str = key.group_id  # type: ignore[attr-defined] # all of these keys have one
    group_type = GroupType.SHARE if isinstance(key, _SHARE_KEYS) else GroupType.STREAMS
    group = groups.get(group_id)
    if is_tombstone and isinstance(key, _EPOCH_KEYS):
        groups.pop(group_id, None)
        return
    if group is None or group.group_type is not group_type:
        if is_tombstone:
            return
        group = groups[group_id] = OtherGroup(group_id, group_type)
    group.replay(key, is_tombstone=is_tombstone)
