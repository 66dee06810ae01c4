"""Requests that commit, read or delete offsets of one group.

A commit or deletion makes its records and its response, and changes nothing. The group decides
whether the request is allowed (group.py). Topics are those that exist, each with its name and id.
All records of a request go into one batch, so that a consumer's position is never half of one
commit and half of another. A request whose records do not fit into one batch is refused.

Kafka: OffsetMetadataManager.commitOffset, fetchOffsets, fetchAllOffsets, deleteOffsets.
"""

from collections.abc import Container, Iterable, Sequence

from odradek.coordinator.any_group.group import Committer, PartitionCheck
from odradek.coordinator.any_group.group_offsets import (
    CommittedOffset,
    PartitionOffsets,
    TopicOffsets,
)
from odradek.coordinator.any_group.offsets import GroupTopicPartition, tombstones_of
from odradek.coordinator.classic_groups.group import ClassicGroup
from odradek.coordinator.java.java_hash import utf16_units
from odradek.coordinator.runtime.outcome import JournalRecord, Outcome
from odradek.coordinator.runtime.steps import Step, no_step, stepping
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from odradek.protocol.messages.offset_delete import (
    OffsetDeleteRequestTopic,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)
from odradek.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from odradek.protocol.primitives import ZERO_UUID
from odradek.protocol.record import MAX_INT64
from odradek.protocol.records.consumer_offsets import OffsetCommitKey, OffsetCommitValue

from .group_state import GroupState
from .offset_expiry import NO_EXPIRY

OFFSET_VERSION = 4
OFFSET_VERSION_WITH_EXPIRY = 1
NO_OFFSET = -1
FIRST_WITH_GROUP_ID_NOT_FOUND = 9

Committed = Outcome[list[OffsetCommitResponseTopic]]
Deleted = Outcome[list[OffsetDeleteResponseTopic]]


# -- committing ----------------------------------------------------------------------------------


def commit_offsets(
    request: OffsetCommitRequest,
    topics: Sequence[OffsetCommitRequestTopic],
    api_version: int,
    *,
    now_ms: int,
    max_metadata_units: int,
) -> "Commit":
    """Return the commit of a request."""
    committer = _committer(request, api_version, is_transactional=False)
    expires_ms = NO_EXPIRY
    if request.retention_time_ms != NO_EXPIRY:
        expires_ms = min(now_ms + request.retention_time_ms, MAX_INT64)
    return Commit(request.group_id, committer, topics, now_ms, max_metadata_units, expires_ms)


def commit_in_transaction(
    request: TxnOffsetCommitRequest,
    topics: Sequence[OffsetCommitRequestTopic],
    api_version: int,
    *,
    now_ms: int,
    max_metadata_units: int,
) -> "Commit":
    """Return the commit of a request whose offsets take effect with the producer's transaction."""
    committer = _committer(request, api_version, is_transactional=True)
    return Commit(request.group_id, committer, topics, now_ms, max_metadata_units)


def _committer(
    request: OffsetCommitRequest | TxnOffsetCommitRequest,
    api_version: int,
    *,
    is_transactional: bool,
) -> Committer:
    return Committer(
        request.member_id,
        request.group_instance_id,
        request.generation_id_or_member_epoch,
        api_version,
        is_transactional=is_transactional,
    )


def _check_commit(state: GroupState, group_id: str, committer: Committer) -> PartitionCheck | None:
    group = state.groups.get(group_id)
    if group is not None:
        return group.check_commit(committer)
    if committer.generation_id >= 0:
        code = ErrorCode.ILLEGAL_GENERATION
        if committer.api_version >= FIRST_WITH_GROUP_ID_NOT_FOUND:
            code = ErrorCode.GROUP_ID_NOT_FOUND
        raise ApiError(code, f"there is no group {group_id}")
    return None  # a simple consumer: its commit creates the group


class Commit:
    """One commit. Its records depend on the request alone; the group only allows or refuses it."""

    def __init__(
        self,
        group_id: str,
        committer: Committer,
        topics: Sequence[OffsetCommitRequestTopic],
        now_ms: int,
        max_metadata_units: int,
        expires_ms: int = NO_EXPIRY,
    ) -> None:
        self._group_id = group_id
        self._committer = committer
        self._topics = topics
        self._now_ms = now_ms
        self._max_metadata_units = max_metadata_units
        self._expires_ms = expires_ms

    def check(
        self, state: GroupState, step: Step = no_step, passed: PartitionCheck | None = None
    ) -> PartitionCheck | None:
        """Raise ApiError when the group refuses the whole commit.

        Returns the check that all partitions have passed, or None if the group needs none. If it is
        equal to `passed`, it has not been called again, and there was no step. In a transaction, a
        member epoch that is not the current one is ILLEGAL_GENERATION, because the client is a
        producer.
        """
        try:
            check = _check_commit(state, self._group_id, self._committer)
            if check is not None and check != passed:
                for topic in stepping(self._topics, step):
                    for each in stepping(topic.partitions, step):
                        if not self._is_too_large(each):
                            check(topic.name, topic.topic_id, each.partition_index)
        except ApiError as error:
            if self._committer.is_transactional and error.code is ErrorCode.STALE_MEMBER_EPOCH:
                raise ApiError(ErrorCode.ILLEGAL_GENERATION, error.message) from None
            raise
        return check

    def check_topics(self, topic_ids: Container[bytes]) -> None:
        """Raise ApiError, which can be retried, if a topic is not among those that exist.

        It has been deleted meanwhile, and the tombstones of its offsets have been written already.
        A later topic of its name would begin with an offset that is written after them.
        """
        for topic in self._topics:
            if topic.topic_id not in topic_ids:
                text = f"topic {topic.name} has been deleted during the commit"
                raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, text)

    def outcome(self, step: Step = no_step) -> Committed:
        """Make the records and the response."""
        records: list[JournalRecord] = []
        answers = [self._topic(topic, records, step) for topic in stepping(self._topics, step)]
        return Outcome(reply=answers, records=tuple(records))

    def _topic(
        self, topic: OffsetCommitRequestTopic, records: list[JournalRecord], step: Step
    ) -> OffsetCommitResponseTopic:
        """Add the records of a topic, and return its part of the response."""
        return OffsetCommitResponseTopic(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=[
                OffsetCommitResponsePartition(
                    partition_index=wanted.partition_index,
                    error_code=self._partition(topic, wanted, records),
                )
                for wanted in stepping(topic.partitions, step)
            ],
        )

    def _partition(
        self,
        topic: OffsetCommitRequestTopic,
        wanted: OffsetCommitRequestPartition,
        records: list[JournalRecord],
    ) -> ErrorCode:
        if self._is_too_large(wanted):
            return ErrorCode.OFFSET_METADATA_TOO_LARGE
        records.append(self._record(topic, wanted))
        return ErrorCode.NONE

    def _is_too_large(self, wanted: OffsetCommitRequestPartition) -> bool:
        return utf16_units(wanted.committed_metadata or "") > self._max_metadata_units

    def _record(
        self, topic: OffsetCommitRequestTopic, wanted: OffsetCommitRequestPartition
    ) -> JournalRecord:
        # OffsetCommit v1 (Kafka 0.8) may contain a commit timestamp; the retention counts from it.
        said_ms = wanted.commit_timestamp
        value = OffsetCommitValue(
            offset=wanted.committed_offset,
            leader_epoch=wanted.committed_leader_epoch,
            metadata=wanted.committed_metadata or "",
            commit_timestamp=self._now_ms if said_ms < 0 else said_ms,
            expire_timestamp=self._expires_ms,
            topic_id=topic.topic_id,
        )
        key = OffsetCommitKey(
            group=self._group_id, topic=topic.name, partition=wanted.partition_index
        )
        expires = self._expires_ms != NO_EXPIRY
        return JournalRecord(value, OFFSET_VERSION_WITH_EXPIRY if expires else OFFSET_VERSION, key)


# -- reading -------------------------------------------------------------------------------------


# A topic, its id, and for each partition what is committed.
_Read = tuple[str, bytes, Iterable[tuple[int, CommittedOffset | None]]]


def fetch_offsets(
    state: GroupState,
    wanted: OffsetFetchRequestGroup,
    topics: Sequence[OffsetFetchRequestTopic] | None,
    *,
    stable: bool,
    step: Step = no_step,
) -> list[OffsetFetchResponseTopic]:
    """Return the committed offsets in `topics`, -1 for none; None: in all topics.

    They are those of one moment, of which the response is made in steps. `stable`: a partition for
    which an open transaction has an offset gets an error instead. Raises ApiError when the group
    refuses the request.
    """
    group_id = wanted.group_id
    group = state.groups.get(group_id)
    if group is not None:
        group.check_fetch(wanted.member_id, wanted.member_epoch)
    known = state.offsets.of_group(group_id)
    if step is not no_step:  # they may change in a step
        known = _copied(known, topics)
    read: Iterable[_Read]
    if topics is None:
        read = ((name, ZERO_UUID, iter(found.items())) for name, found in known.items())
    else:
        read = (_read_topic(known.get(topic.name, {}), topic) for topic in topics)
    unstable = state.offsets.pending(group_id) if stable else frozenset()
    return [
        OffsetFetchResponseTopic(
            name=name,
            topic_id=topic_id,
            partitions=[
                _no_offset(index, ErrorCode.UNSTABLE_OFFSET_COMMIT)
                if (name, index) in unstable
                else _fetched(index, committed, topic_id)
                for index, committed in stepping(offsets, step)
            ],
        )
        for name, topic_id, offsets in stepping(read, step)
    ]


def _copied(known: TopicOffsets, topics: Sequence[OffsetFetchRequestTopic] | None) -> TopicOffsets:
    """Copy the tables of some topics; None: of all. One of 100,000 offsets takes a millisecond."""
    names: Iterable[str] = known
    if topics is not None and len(topics) < len(known):
        names = {topic.name for topic in topics} & known.keys()
    return {name: known[name].copy() for name in names}


def _read_topic(known: PartitionOffsets, topic: OffsetFetchRequestTopic) -> _Read:
    offsets = ((index, known.get(index)) for index in topic.partition_indexes)
    return topic.name, topic.topic_id, offsets


def _fetched(
    index: int, found: CommittedOffset | None, topic_id: bytes
) -> OffsetFetchResponsePartition:
    if found is None or not found.is_of(topic_id):
        return _no_offset(index)
    return OffsetFetchResponsePartition(
        partition_index=index,
        committed_offset=found.offset,
        committed_leader_epoch=found.leader_epoch,
        metadata=found.metadata,
    )


def _no_offset(index: int, error: ErrorCode = ErrorCode.NONE) -> OffsetFetchResponsePartition:
    return OffsetFetchResponsePartition(
        partition_index=index, committed_offset=NO_OFFSET, metadata="", error_code=error
    )


# -- deleting ------------------------------------------------------------------------------------


def delete_offsets(
    state: GroupState,
    group_id: str,
    topics: Sequence[OffsetDeleteRequestTopic],
    step: Step = no_step,
) -> Deleted:
    """Delete offsets in topics to which no member is subscribed.

    Raises ApiError when there is no group or it allows no deletion.
    """
    group = state.any_group(group_id)
    group.check_offset_deletion()
    if isinstance(group, ClassicGroup):
        for _ in stepping(group.subscriptions.decode(), step):
            pass
    answers = []
    to_delete: list[GroupTopicPartition] = []
    for topic in stepping(topics, step):
        subscribed = group.is_subscribed_to(topic.name)
        answers.append(_deletion_answer(topic, step, subscribed=subscribed))
        if not subscribed:
            to_delete += (
                GroupTopicPartition(group.group_id, topic.name, p.partition_index)
                for p in stepping(topic.partitions, step)
            )
    known = (key for key in stepping(to_delete, step) if state.offsets.is_known(key))
    return Outcome(reply=answers, records=tuple(tombstones_of(known, step)))


def _deletion_answer(
    topic: OffsetDeleteRequestTopic, step: Step, *, subscribed: bool
) -> OffsetDeleteResponseTopic:
    error = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if subscribed else ErrorCode.NONE
    return OffsetDeleteResponseTopic(
        name=topic.name,
        partitions=[
            OffsetDeleteResponsePartition(
                partition_index=partition.partition_index, error_code=error
            )
            for partition in stepping(topic.partitions, step)
        ],
    )
