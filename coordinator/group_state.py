"""The groups and offsets of one partition of `__consumer_offsets`: the sum of its records.

A group lives in the partition that its name hashes to, and all that is known of it is in that log.
Here is what the records mean, and the decisions that concern offsets or whole groups; how a group's
members come and go is in classic_groups/ and consumer_groups/. A name has one group: what makes a
group of the other protocol ends the one that was there.

Kafka: GroupCoordinatorShard.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, ClassVar

from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.delete_groups import DeleteGroupsResult
from odradek.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitRequestTopic
from odradek.protocol.messages.offset_delete import OffsetDeleteRequestTopic
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchResponseTopic,
)
from odradek.protocol.records.consumer_offsets import (
    GroupMetadataKey,
    GroupMetadataValue,
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from odradek.protocol.schema import Message

from .classic_groups.group import ClassicGroup
from .classic_groups.records import group_record
from .consumer_groups.group import ConsumerGroup
from .consumer_groups.replay import APPLY_OF as CONSUMER_GROUP_RECORDS
from .consumer_groups.replay import replay as replay_consumer_group
from .group import Committer, Group, GroupType, PartitionCheck
from .group_settings import GroupSettings
from .offset_expiry import expired
from .offset_requests import Commit, Committed, Deleted, OffsetReader, delete_offsets
from .offsets import Offsets
from .other_group import OtherGroup
from .other_group import replay as replay_other_group
from .outcome import JournalRecord, Outcome, ReplayContext

FIRST_WITH_GROUP_ID_NOT_FOUND = 9


class GroupState:
    """Groups and offsets. Read them freely; only `replay` adds and removes them."""

    def __init__(self, settings: GroupSettings) -> None:
        self._settings = settings
        self.groups: dict[str, ClassicGroup] = {}
        self.consumer_groups: dict[str, ConsumerGroup] = {}
        self.offsets = Offsets()
        self.of_other_types: dict[str, OtherGroup] = {}

    # -- replay ------------------------------------------------------------------------------------

    def replay(self, record: JournalRecord, context: ReplayContext) -> None:
        """Apply one record of the log."""
        replay = self.REPLAY_OF.get(type(record.key))
        if replay is None:
            self._replay_other_type(record)
        else:
            replay(self, record.key, record.value, context)

    def _replay_group(
        self, key: GroupMetadataKey, value: GroupMetadataValue | None, _context: ReplayContext
    ) -> None:
        if value is None:
            group = self.groups.pop(key.group, None)
            if group is not None:
                group.die()
            return
        self.consumer_groups.pop(key.group, None)
        self.of_other_types.pop(key.group, None)
        group = self.groups.get(key.group)
        if group is None:
            group = self.groups[key.group] = ClassicGroup(key.group)
        group.replay(value)

    def _replay_consumer_group(
        self, key: Any, value: Message | None, _context: ReplayContext
    ) -> None:
        if value is not None:
            self._make_way(key.group_id)
            self.of_other_types.pop(key.group_id, None)
        replay_consumer_group(self.consumer_groups, key, value)

    def _replay_offset(
        self, key: OffsetCommitKey, value: OffsetCommitValue | None, context: ReplayContext
    ) -> None:
        self.offsets.replay(key, value, context)
        if value is not None and self.find(key.group) is None:
            self.groups[key.group] = ClassicGroup(key.group)

    def _replay_legacy_offset(
        self,
        key: LegacyOffsetCommitKey,
        value: LegacyOffsetCommitValue | None,
        context: ReplayContext,
    ) -> None:
        new_key = OffsetCommitKey(group=key.group, topic=key.topic, partition=key.partition)
        if value is None:
            self._replay_offset(new_key, None, context)
            return
        new_value = OffsetCommitValue(
            offset=value.offset, metadata=value.metadata, commit_timestamp=value.commit_timestamp
        )
        self._replay_offset(new_key, new_value, context)

    def _replay_other_type(self, record: JournalRecord) -> None:
        key: Any = record.key
        is_tombstone = record.unread is None
        if not is_tombstone:
            classic = self.groups.get(key.group_id)
            if key.group_id in self.consumer_groups or (classic and not _is_simple(classic)):
                return  # A name has one group, and that one's records say more.
            self._make_way(key.group_id)
        replay_other_group(self.of_other_types, key, is_tombstone=is_tombstone)

    def _make_way(self, group_id: str) -> None:
        """End a simple group that only its offsets had made: they were those of a group to come."""
        classic = self.groups.pop(group_id, None)
        if classic is not None:
            classic.die()

    # The keys of the records whose values count here.
    REPLAY_OF: ClassVar[Mapping[type[Any], Callable[..., None]]] = {
        GroupMetadataKey: _replay_group,
        OffsetCommitKey: _replay_offset,
        LegacyOffsetCommitKey: _replay_legacy_offset,
        **dict.fromkeys(CONSUMER_GROUP_RECORDS, _replay_consumer_group),
    }

    # -- groups ------------------------------------------------------------------------------------

    def find(self, group_id: str) -> Group | None:
        """The group of this name, of whatever type; None where there is none."""
        return (
            self.groups.get(group_id)
            or self.consumer_groups.get(group_id)
            or self.of_other_types.get(group_id)
        )

    def is_share_group(self, group_id: str) -> bool:
        """Whether the name belongs to those who share: no consumer can join under it."""
        other = self.of_other_types.get(group_id)
        return other is not None and other.group_type is GroupType.SHARE

    def all(self) -> Iterator[Group]:
        """The groups of all types."""
        return chain(
            self.groups.values(), self.consumer_groups.values(), self.of_other_types.values()
        )

    def any_group(self, group_id: str) -> Group:
        """The group of this name, of whatever type. Raises ApiError GROUP_ID_NOT_FOUND."""
        group = self.find(group_id)
        if group is None:
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        return group

    def group(self, group_id: str) -> ClassicGroup:
        """The classic group of this name. Raises ApiError GROUP_ID_NOT_FOUND."""
        group = self.any_group(group_id)
        if not isinstance(group, ClassicGroup):
            raise ApiError(
                ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a classic group."
            )
        return group

    def consumer_group(self, group_id: str) -> ConsumerGroup:
        """The consumer group of this name. Raises ApiError GROUP_ID_NOT_FOUND."""
        group = self.any_group(group_id)
        if not isinstance(group, ConsumerGroup):
            raise ApiError(
                ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group."
            )
        return group

    def create(self, group_id: str, now_ms: int) -> Outcome[None]:
        """Make an empty group; an empty group of another type makes way for it."""
        replaced = self.find(group_id)
        value = GroupMetadataValue(
            protocol_type="",
            generation=0,
            protocol=None,
            leader=None,
            current_state_timestamp=now_ms,
            members=[],
        )
        records = () if replaced is None else replaced.tombstones()
        return Outcome(reply=None, records=(*records, group_record(group_id, value)))

    def delete(self, group_ids: Iterable[str]) -> Outcome[list[DeleteGroupsResult]]:
        """Forget groups and their offsets, or say why not."""
        records: list[JournalRecord] = []
        results = []
        for group_id in group_ids:
            try:
                group = self.any_group(group_id)
                group.check_deletable()
            except ApiError as error:
                results.append(
                    DeleteGroupsResult(
                        group_id=group_id, error_code=error.code, error_message=error.message
                    )
                )
                continue
            records += self.offsets.tombstones(group_id)
            records += group.tombstones()
            results.append(DeleteGroupsResult(group_id=group_id))
        return Outcome(reply=results, records=tuple(records))

    # -- offsets -----------------------------------------------------------------------------------

    def commit(
        self,
        request: OffsetCommitRequest,
        topics: Sequence[OffsetCommitRequestTopic],
        api_version: int,
        now_ms: int,
    ) -> Committed:
        """Commit offsets of those topics that exist; each carries its name and its id.

        Raises ApiError when the group refuses the commit as a whole.
        """
        committer = Committer(
            request.member_id,
            request.group_instance_id,
            request.generation_id_or_member_epoch,
            api_version,
        )
        check = self._check_commit(request.group_id, committer)
        limit = self._settings.offset_metadata_max_units
        return Commit(request, check, now_ms, limit).of(topics)

    def _check_commit(self, group_id: str, committer: Committer) -> PartitionCheck | None:
        group = self.find(group_id)
        if group is not None:
            return group.check_commit(committer)
        if committer.generation_id >= 0:
            code = ErrorCode.ILLEGAL_GENERATION
            if committer.api_version >= FIRST_WITH_GROUP_ID_NOT_FOUND:
                code = ErrorCode.GROUP_ID_NOT_FOUND
            raise ApiError(code, f"there is no group {group_id}")
        return None  # a simple consumer: its commit makes the group

    def fetch(
        self,
        wanted: OffsetFetchRequestGroup,
        topics: Sequence[OffsetFetchRequestTopic] | None,
        *,
        stable: bool,
    ) -> list[OffsetFetchResponseTopic]:
        """Committed offsets of the topics asked for, -1 where there is none; None: of all.

        Raises ApiError when the group refuses to tell.
        """
        group = self.find(wanted.group_id)
        if group is not None:
            group.check_fetch(wanted.member_id, wanted.member_epoch)
        reader = OffsetReader(self.offsets, wanted.group_id, stable=stable)
        return reader.all() if topics is None else reader.of(topics)

    def delete_offsets(self, group_id: str, topics: Sequence[OffsetDeleteRequestTopic]) -> Deleted:
        """Forget offsets of a group. Raises ApiError when there is no group, or it has members."""
        return delete_offsets(self.any_group(group_id), self.offsets, topics)

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """Apply the marker that ends a producer's transaction: its offsets count, or never were."""
        self.offsets.end_transaction(producer_id, committed=committed)

    def expire(self, now_ms: int) -> Outcome[None]:
        """Forget offsets that have expired, and empty groups that have none left."""
        retention_ms = self._settings.offsets_retention_ms
        records = [
            record
            for group in self.all()
            if group.group_type is not GroupType.SHARE
            for record in expired(group, self.offsets, now_ms, retention_ms)
        ]
        return Outcome(reply=None, records=tuple(records), atomic=False)

    def on_topics_deleted(self, deleted: Sequence[tuple[str, bytes]]) -> Outcome[None]:
        """Forget the offsets of topics (name, id) that are no more."""
        records = tuple(self.offsets.tombstones_of_topics(deleted))
        return Outcome(reply=None, records=records, atomic=False)

    def forget_lost_topics(
        self, group_ids: Iterable[str], topic_ids: Container[bytes]
    ) -> Outcome[None]:
        """Forget the groups' offsets in topics that were deleted while nobody could write that."""
        records = tuple(self.offsets.tombstones_of_lost_topics(group_ids, topic_ids))
        return Outcome(reply=None, records=records, atomic=False)


def _is_simple(group: ClassicGroup) -> bool:
    """Whether nobody has ever been a member."""
    return group.is_empty and group.protocol_type is None and not group.pending_joins
