"""The groups and offsets of one partition of `__consumer_offsets`: the sum of its records.

A group lives in the partition that its name hashes to, and all that is known of it is in that log.
Here is what the records mean, and the decisions that concern offsets or whole groups; how a group's
members come and go is in classic_join.py and classic_sync.py.

Groups of other types (a directory that Apache Kafka has used may hold some) are known by name only:
nobody may join or commit under such a name, or the log would say two things at once; their offsets
can be read, and never expire here. Kafka: GroupCoordinatorShard.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from ..protocol.errors import ApiError, ErrorCode
from ..protocol.messages.delete_groups import DeleteGroupsResult
from ..protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from ..protocol.messages.offset_fetch import (
    OffsetFetchRequestTopic,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)
from ..protocol.records.consumer_group import ConsumerGroupMetadataKey
from ..protocol.records.consumer_offsets import (
    GroupMetadataKey,
    GroupMetadataValue,
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from ..protocol.records.share_group import ShareGroupMetadataKey
from ..protocol.records.streams_group import StreamsGroupMetadataKey
from .classic_group import ClassicGroup, ClassicState
from .group_settings import GroupSettings
from .offsets import NO_EXPIRY, CommittedOffset, Offsets, commit_record
from .outcome import JournalRecord, Outcome, ReplayContext

NO_OFFSET = -1
FIRST_WITH_GROUP_ID_NOT_FOUND = 9


class GroupState:
    """Groups and offsets. Read them freely; only `replay` adds and removes them."""

    def __init__(self, settings: GroupSettings) -> None:
        self._settings = settings
        self.groups: dict[str, ClassicGroup] = {}
        self.offsets = Offsets()
        self.of_other_types: set[str] = set()

    # -- replay ------------------------------------------------------------------------------------

    def replay(self, record: JournalRecord, context: ReplayContext) -> None:
        """Apply one record of the log."""
        self.REPLAY_OF[type(record.key)](self, record.key, record.value, context)

    def _replay_group(
        self, key: GroupMetadataKey, value: GroupMetadataValue | None, _context: ReplayContext
    ) -> None:
        if value is None:
            group = self.groups.pop(key.group, None)
            if group is not None:
                group.die()
            return
        group = self.groups.get(key.group)
        if group is None:
            group = self.groups[key.group] = ClassicGroup(key.group)
        group.replay(value)

    def _replay_offset(
        self, key: OffsetCommitKey, value: OffsetCommitValue | None, context: ReplayContext
    ) -> None:
        self.offsets.replay(key, value, context)
        known = key.group in self.groups or key.group in self.of_other_types
        if value is not None and not known:
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

    def _replay_other_type(
        self,
        key: ConsumerGroupMetadataKey | ShareGroupMetadataKey | StreamsGroupMetadataKey,
        value: object,
        _context: ReplayContext,
    ) -> None:
        if value is None:
            self.of_other_types.discard(key.group_id)
            return
        self.of_other_types.add(key.group_id)
        # A simple group that only its offsets had made: they were this group's.
        self.groups.pop(key.group_id, None)

    # The keys of the records that count here.
    REPLAY_OF: ClassVar[Mapping[type[Any], Callable[..., None]]] = {
        GroupMetadataKey: _replay_group,
        OffsetCommitKey: _replay_offset,
        LegacyOffsetCommitKey: _replay_legacy_offset,
        ConsumerGroupMetadataKey: _replay_other_type,
        ShareGroupMetadataKey: _replay_other_type,
        StreamsGroupMetadataKey: _replay_other_type,
    }

    # -- groups ------------------------------------------------------------------------------------

    def group(self, group_id: str) -> ClassicGroup:
        """The group of this name. Raises ApiError GROUP_ID_NOT_FOUND."""
        group = self.groups.get(group_id)
        if group is None:
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no classic group {group_id}")
        return group

    def create(self, group_id: str, now_ms: int) -> Outcome[None]:
        """Make an empty group."""
        value = GroupMetadataValue(
            protocol_type="",
            generation=0,
            protocol=None,
            leader=None,
            current_state_timestamp=now_ms,
            members=[],
        )
        return Outcome(reply=None, records=(ClassicGroup(group_id).record(value),))

    def delete(self, group_ids: Iterable[str]) -> Outcome[list[DeleteGroupsResult]]:
        """Forget groups and their offsets, or say why not."""
        records: list[JournalRecord] = []
        results = []
        for group_id in group_ids:
            try:
                self.group(group_id).check_deletable()
            except ApiError as error:
                results.append(
                    DeleteGroupsResult(
                        group_id=group_id, error_code=error.code, error_message=error.message
                    )
                )
                continue
            records += self.offsets.tombstones(group_id)
            records.append(_group_tombstone(group_id))
            results.append(DeleteGroupsResult(group_id=group_id))
        return Outcome(reply=results, records=tuple(records))

    # -- offsets -----------------------------------------------------------------------------------

    def commit(
        self,
        request: OffsetCommitRequest,
        topics: Sequence[OffsetCommitRequestTopic],
        api_version: int,
        now_ms: int,
    ) -> Outcome[list[OffsetCommitResponseTopic]]:
        """Commit offsets of those topics that exist; each carries its name and its id.

        Raises ApiError when the group refuses the commit as a whole.
        """
        self._check_commit(request, api_version)
        expires_ms = NO_EXPIRY
        if request.retention_time_ms != NO_EXPIRY:
            expires_ms = now_ms + request.retention_time_ms
        records: list[JournalRecord] = []
        answers = []
        for topic in topics:
            answer, topic_records = self._commit_topic(request.group_id, topic, now_ms, expires_ms)
            answers.append(answer)
            records += topic_records
        return Outcome(reply=answers, records=tuple(records))

    def _check_commit(self, request: OffsetCommitRequest, api_version: int) -> None:
        generation_id = request.generation_id_or_member_epoch
        group = self.groups.get(request.group_id)
        if group is not None:
            group.check_commit(request.member_id, request.group_instance_id, generation_id)
        elif request.group_id in self.of_other_types:
            raise ApiError(
                ErrorCode.UNKNOWN_MEMBER_ID, f"group {request.group_id} is no classic group"
            )
        elif generation_id >= 0:
            code = ErrorCode.ILLEGAL_GENERATION
            if api_version >= FIRST_WITH_GROUP_ID_NOT_FOUND:
                code = ErrorCode.GROUP_ID_NOT_FOUND
            raise ApiError(code, f"there is no group {request.group_id}")

    def _commit_topic(
        self, group_id: str, topic: OffsetCommitRequestTopic, now_ms: int, expires_ms: int
    ) -> tuple[OffsetCommitResponseTopic, list[JournalRecord]]:
        records = []
        partitions = []
        for wanted in topic.partitions:
            error = ErrorCode.NONE
            if _utf16_units(wanted.committed_metadata) > self._settings.offset_metadata_max_units:
                error = ErrorCode.OFFSET_METADATA_TOO_LARGE
            else:
                identity = (topic.name, topic.topic_id)
                records.append(commit_record(group_id, identity, wanted, now_ms, expires_ms))
            partitions.append(
                OffsetCommitResponsePartition(
                    partition_index=wanted.partition_index, error_code=error
                )
            )
        answer = OffsetCommitResponseTopic(
            name=topic.name, topic_id=topic.topic_id, partitions=partitions
        )
        return answer, records

    def fetch(
        self, group_id: str, topics: Sequence[OffsetFetchRequestTopic] | None
    ) -> list[OffsetFetchResponseTopic]:
        """Committed offsets of the topics asked for, -1 where there is none; None: of all."""
        known = self.offsets.of_group(group_id)
        if topics is None:
            return [
                OffsetFetchResponseTopic(
                    name=name,
                    partitions=[_fetched(index, found) for index, found in partitions.items()],
                )
                for name, partitions in known.items()
            ]
        return [
            OffsetFetchResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    _fetched(index, known.get(topic.name, {}).get(index), topic.topic_id)
                    for index in topic.partition_indexes
                ],
            )
            for topic in topics
        ]

    def expire(self, now_ms: int) -> Outcome[None]:
        """Forget offsets that have expired, and empty groups that have none left."""
        records: list[JournalRecord] = []
        for group in self.groups.values():
            expired = self.offsets.expired(group, now_ms, self._settings.offsets_retention_ms)
            records += expired
            left = sum(len(p) for p in self.offsets.of_group(group.group_id).values())
            if len(expired) == left and group.state is ClassicState.EMPTY:
                records.append(_group_tombstone(group.group_id))
        return Outcome(reply=None, records=tuple(records), atomic=False)

    def on_topics_deleted(self, deleted: Sequence[tuple[str, bytes]]) -> Outcome[None]:
        """Forget the offsets of topics (name, id) that are no more."""
        records = tuple(self.offsets.tombstones_of_topics(deleted))
        return Outcome(reply=None, records=records, atomic=False)


def _group_tombstone(group_id: str) -> JournalRecord:
    return JournalRecord(None, 0, GroupMetadataKey(group=group_id))


def _utf16_units(text: str | None) -> int:
    """The length of a text as Java counts it."""
    if text is None or text.isascii():
        return len(text or "")
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _fetched(
    index: int, found: CommittedOffset | None, topic_id: bytes | None = None
) -> OffsetFetchResponsePartition:
    if found is None or (topic_id is not None and not found.is_of(topic_id)):
        return OffsetFetchResponsePartition(
            partition_index=index, committed_offset=NO_OFFSET, metadata=""
        )
    return OffsetFetchResponsePartition(
        partition_index=index,
        committed_offset=found.offset,
        committed_leader_epoch=found.leader_epoch,
        metadata=found.metadata,
    )
