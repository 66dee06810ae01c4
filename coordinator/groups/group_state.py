"""The groups and offsets of one partition of `__consumer_offsets`, built by replaying its records.

A group is stored in the partition that its id hashes to; all its records are in that log. This file
replays them, finds groups by id, and decides on creating and deleting whole groups. Decisions about
offsets are in offset_requests and offset_expiry, those about members in classic_groups/,
consumer_groups/, share_groups/ and streams_groups/. A group id has one group: a record that creates
a group of another type ends the existing one.

Kafka: GroupCoordinatorShard.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar, TypeVar

from msgspec import Struct

from odradek.coordinator.any_group.group import Group
from odradek.coordinator.any_group.joined_offsets import JoinedCommits, JoinedTombstones
from odradek.coordinator.any_group.offsets import Offsets
from odradek.coordinator.classic_groups.group import ClassicGroup
from odradek.coordinator.classic_groups.records import group_record
from odradek.coordinator.consumer_groups.group import ConsumerGroup
from odradek.coordinator.consumer_groups.replay import CONSUMER_GROUP_RECORDS
from odradek.coordinator.modern_groups.group import EpochGroup
from odradek.coordinator.modern_groups.replay import GroupRecords
from odradek.coordinator.runtime.outcome import JournalRecord, Outcome, ReplayContext
from odradek.coordinator.runtime.steps import Step, no_step, stepping
from odradek.coordinator.share_groups.group import ShareGroup
from odradek.coordinator.share_groups.replay import SHARE_GROUP_RECORDS
from odradek.coordinator.streams_groups.group import StreamsGroup
from odradek.coordinator.streams_groups.replay import STREAMS_GROUP_RECORDS
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.records.consumer_offsets import (
    GroupMetadataKey,
    GroupMetadataValue,
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from odradek.protocol.schema import Message

G = TypeVar("G")


class ReplayedGroup(Struct, frozen=True):
    """A group after the records of one batch: it is replayed in their place, and never stored.

    A decision may have thousands of records, which are replayed in one turn of the event loop,
    because nobody may see a part of them. So they are replayed into a copy before that, in steps.
    """

    group_id: str
    group: Group | None
    """None if they have deleted it."""


class GroupState:
    """Groups and offsets by group id. Only `replay` and `end_transaction` change them.

    Each group has the partition, so that its deadlines find this shard again.
    """

    def __init__(self, partition: int = 0, step: Step = no_step) -> None:
        """`step`: what the replay of a large record calls again and again."""
        self._partition = partition
        self._step = step
        self.groups: dict[str, Group] = {}
        self.offsets = Offsets()

    # -- replay ------------------------------------------------------------------------------------

    def replay(self, record: JournalRecord, context: ReplayContext) -> None:
        """Apply one record of the log, or what stands for several: that has no key."""
        kind = type(record.value if record.key is None else record.key)
        self.REPLAY_OF[kind](self, record.key, record.value, context)

    def replayed(
        self,
        group_id: str,
        records: Iterable[JournalRecord],
        timestamp_ms: int,
        step: Step,
        new_group: Group | None = None,
    ) -> JournalRecord:
        """Return a record in place of those of a decision about one group, which has no offsets.

        `timestamp_ms` is that of their batch. `new_group`: what is replayed into if they first
        delete the group, and then create another one.
        """
        scratch, context = GroupState(self._partition, step), ReplayContext(-1, timestamp_ms)
        group = self.groups.get(group_id)
        if isinstance(group, EpochGroup):
            scratch.groups[group_id] = group.copy()
        for record in stepping(records, step):
            if new_group is not None and group_id not in scratch.groups:
                scratch.groups[group_id] = new_group
            scratch.replay(record, context)
        return JournalRecord(ReplayedGroup(group_id, scratch.groups.get(group_id)))

    def _replay_replayed(self, _key: None, value: ReplayedGroup, _context: ReplayContext) -> None:
        group_id, new = value.group_id, value.group
        self._end_classic_group(group_id)
        old = self.groups.get(group_id)
        if new is None:
            self.groups.pop(group_id, None)
        elif type(old) is type(new):
            vars(old).update(vars(new))  # others hold the group
        else:
            self.groups[group_id] = new

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """Apply a transaction marker: the producer's pending offsets are committed or dropped."""
        self.offsets.end_transaction(producer_id, committed=committed)

    def _replay_group(
        self, key: GroupMetadataKey, value: GroupMetadataValue | None, _context: ReplayContext
    ) -> None:
        if value is None:
            self._end_classic_group(key.group)
            return
        group = self.groups.get(key.group)
        if not isinstance(group, ClassicGroup):
            group = self.groups[key.group] = ClassicGroup(key.group, partition=self._partition)
        group.replay(value, self._step)

    def _replay_consumer_group(
        self, key: Any, value: Message | None, context: ReplayContext
    ) -> None:
        if value is not None:
            self._end_classic_group(key.group_id)
        self._replay_modern_group(CONSUMER_GROUP_RECORDS, key, value, context)

    def _replay_streams_group(
        self, key: Any, value: Message | None, context: ReplayContext
    ) -> None:
        if value is None or self._makes_way(key.group_id):
            self._replay_modern_group(STREAMS_GROUP_RECORDS, key, value, context)

    def _replay_share_group(self, key: Any, value: Message | None, context: ReplayContext) -> None:
        if value is None or self._makes_way(key.group_id):
            self._replay_modern_group(SHARE_GROUP_RECORDS, key, value, context)

    def _replay_modern_group(
        self, records: GroupRecords[Any], key: Any, value: Message | None, context: ReplayContext
    ) -> None:
        records.replay(
            self.groups,
            key,
            value,
            context.timestamp_ms,
            partition=self._partition,
            step=self._step,
        )

    def _replay_offset(
        self, key: OffsetCommitKey, value: OffsetCommitValue | None, context: ReplayContext
    ) -> None:
        self.offsets.replay(key, value, context)
        if value is not None:
            self._ensure_group(key.group)

    def _replay_joined_commits(
        self, _key: None, joined: JoinedCommits, context: ReplayContext
    ) -> None:
        self.offsets.replay_commits(joined, context)
        self._ensure_group(joined.group_id)

    def _replay_joined_tombstones(
        self, _key: None, joined: JoinedTombstones, _context: ReplayContext
    ) -> None:
        self.offsets.replay_tombstones(joined)

    def _ensure_group(self, group_id: str) -> None:
        if group_id not in self.groups:
            self.groups[group_id] = ClassicGroup(group_id, partition=self._partition)

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

    def _makes_way(self, group_id: str) -> bool:
        """End a group that only has offsets, so that one of another type can be created.

        Returns False if the id has another classic or consumer group: that one stays.
        """
        group = self.groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return False
        if isinstance(group, ClassicGroup) and not _is_simple(group):
            return False
        self._end_classic_group(group_id)
        return True

    def _end_classic_group(self, group_id: str) -> None:
        """Remove the group of this id if it is a classic group.

        Offset records may have created it. If the records of a group of another type follow them,
        the offsets belong to that group.
        """
        group = self.groups.get(group_id)
        if isinstance(group, ClassicGroup):
            del self.groups[group_id]
            group.become_dead()

    # By the type of the key: the records whose values are decoded and replayed. Without a key, by
    # that of the value.
    REPLAY_OF: ClassVar[Mapping[type[Any], Callable[..., None]]] = {
        ReplayedGroup: _replay_replayed,
        JoinedCommits: _replay_joined_commits,
        JoinedTombstones: _replay_joined_tombstones,
        GroupMetadataKey: _replay_group,
        OffsetCommitKey: _replay_offset,
        LegacyOffsetCommitKey: _replay_legacy_offset,
        **dict.fromkeys(CONSUMER_GROUP_RECORDS.apply_of, _replay_consumer_group),
        **dict.fromkeys(STREAMS_GROUP_RECORDS.apply_of, _replay_streams_group),
        **dict.fromkeys(SHARE_GROUP_RECORDS.apply_of, _replay_share_group),
    }

    # -- groups by id and type ---------------------------------------------------------------------

    def find_classic(self, group_id: str) -> ClassicGroup | None:
        """Return the classic group of this id; None if there is none."""
        group = self.groups.get(group_id)
        return group if isinstance(group, ClassicGroup) else None

    def find_consumer(self, group_id: str) -> ConsumerGroup | None:
        """Return the consumer group of this id; None if there is none."""
        group = self.groups.get(group_id)
        return group if isinstance(group, ConsumerGroup) else None

    def find_streams(self, group_id: str) -> StreamsGroup | None:
        """Return the streams group of this id; None if there is none."""
        group = self.groups.get(group_id)
        return group if isinstance(group, StreamsGroup) else None

    def refuses_consumers(self, group_id: str) -> bool:
        """Whether no consumer can join: a share group, or a streams group with members."""
        group = self.groups.get(group_id)
        if isinstance(group, StreamsGroup):
            return not group.is_empty
        return isinstance(group, ShareGroup)

    def of_type(self, group_class: type[G]) -> Iterator[G]:
        """Iterate over the groups of one class."""
        return (group for group in self.groups.values() if isinstance(group, group_class))

    def any_group(self, group_id: str) -> Group:
        """Return the group of this id, of any type. Raises ApiError: GROUP_ID_NOT_FOUND."""
        group = self.groups.get(group_id)
        if group is None:
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        return group

    def classic_group(self, group_id: str) -> ClassicGroup:
        """Return the classic group of this id. Raises ApiError: GROUP_ID_NOT_FOUND."""
        group = self.any_group(group_id)
        if not isinstance(group, ClassicGroup):
            raise ApiError(
                ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a classic group."
            )
        return group

    def consumer_group(self, group_id: str) -> ConsumerGroup:
        """Return the consumer group of this id. Raises ApiError: GROUP_ID_NOT_FOUND."""
        group = self.any_group(group_id)
        if not isinstance(group, ConsumerGroup):
            raise ApiError(
                ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group."
            )
        return group

    def streams_group(self, group_id: str) -> StreamsGroup:
        """Return the streams group of this id. Raises ApiError: GROUP_ID_NOT_FOUND."""
        group = self.any_group(group_id)
        if not isinstance(group, StreamsGroup):
            raise ApiError(
                ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a streams group."
            )
        return group

    def share_group(self, group_id: str) -> ShareGroup:
        """Return the share group of this id. Raises ApiError: GROUP_ID_NOT_FOUND."""
        group = self.any_group(group_id)
        if not isinstance(group, ShareGroup):
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a share group.")
        return group

    # -- whole groups ------------------------------------------------------------------------------

    def create(self, group_id: str, now_ms: int) -> Outcome[None]:
        """Create an empty classic group. An empty group of another type is deleted first."""
        replaced = self.groups.get(group_id)
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

    def delete(self, group_id: str, step: Step = no_step) -> Outcome[None]:
        """Delete a group and its offsets. Raises ApiError if it is kept."""
        group = self.any_group(group_id)
        group.check_deletable()
        tombstones = (*self.offsets.tombstones(group_id, step), *group.tombstones())
        return Outcome(reply=None, records=tombstones)


def _is_simple(group: ClassicGroup) -> bool:
    """Whether the group has never had a member."""
    return group.is_empty and group.protocol_type is None and not group.pending_joins
