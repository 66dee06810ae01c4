"""The entry point to committed offsets: finds the shard and commits what offset_requests decides.

Topics are those that exist, each with its name and id. Kafka: GroupCoordinatorService.
"""

from collections.abc import Callable, Sequence

from odradek.coordinator.any_group.group_settings import GroupSettings
from odradek.coordinator.runtime.alarm import Alarm
from odradek.coordinator.runtime.producer import ProducerIdAndEpoch
from odradek.coordinator.runtime.timers import Now
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponseTopic,
)
from odradek.protocol.messages.offset_delete import (
    OffsetDeleteRequestTopic,
    OffsetDeleteResponseTopic,
)
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchResponseTopic,
)
from odradek.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from odradek.storage.append import EndMarker

from .classic_group_service import ClassicGroupService
from .group_shards import GroupShards
from .offset_requests import commit_in_transaction, commit_offsets, delete_offsets, fetch_offsets


class OffsetService:
    """The committed offsets of all groups. Each method raises ApiError for a refused request."""

    def __init__(
        self,
        settings: GroupSettings,
        *,
        shards: GroupShards,
        classic: ClassicGroupService,
        alarm: Alarm,
        clock: Callable[[], Now],
    ) -> None:
        """`classic` extends the session of a member that commits."""
        self._max_metadata_units = settings.offset_metadata_max_units
        self._shards = shards
        self._classic = classic
        self._alarm = alarm
        self._clock = clock

    def commit(
        self,
        request: OffsetCommitRequest,
        topics: Sequence[OffsetCommitRequestTopic],
        api_version: int,
    ) -> list[OffsetCommitResponseTopic]:
        """Commit offsets."""
        now = self._clock()
        shard = self._shards.of(request.group_id)
        outcome = commit_offsets(
            shard.state,
            request,
            topics,
            api_version,
            now_ms=now.wall_ms,
            max_metadata_units=self._max_metadata_units,
        )
        self._classic.on_commit(shard, request.group_id, request.member_id, now)
        answers = shard.journal.commit(outcome, now.wall_ms)
        self._alarm.set(now)
        return answers

    def commit_in_transaction(
        self,
        request: TxnOffsetCommitRequest,
        topics: Sequence[OffsetCommitRequestTopic],
        api_version: int,
    ) -> list[OffsetCommitResponseTopic]:
        """Commit offsets that take effect when the producer's transaction is committed."""
        now = self._clock()
        shard = self._shards.of(request.group_id)
        outcome = commit_in_transaction(
            shard.state,
            request,
            topics,
            api_version,
            now_ms=now.wall_ms,
            max_metadata_units=self._max_metadata_units,
        )
        producer = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
        return shard.journal.commit(outcome, now.wall_ms, producer)

    def end_transaction(self, partition: int, marker: EndMarker, now_ms: int) -> None:
        """Write a marker to a partition of `__consumer_offsets`; its offsets take effect."""
        self._shards.at(partition).journal.end_transaction(marker, now_ms)

    def fetch(
        self,
        wanted: OffsetFetchRequestGroup,
        topics: Sequence[OffsetFetchRequestTopic] | None,
        *,
        stable: bool = False,
    ) -> list[OffsetFetchResponseTopic]:
        """Return the group's offsets in `topics`; None: in all topics.

        `stable`: a partition for which an open transaction has an offset gets an error instead.
        """
        return fetch_offsets(self._shards.of(wanted.group_id).state, wanted, topics, stable=stable)

    def delete(
        self, group_id: str, topics: Sequence[OffsetDeleteRequestTopic]
    ) -> list[OffsetDeleteResponseTopic]:
        """Delete offsets."""
        if not group_id:
            raise ApiError(ErrorCode.INVALID_GROUP_ID, "the group id is empty")
        shard = self._shards.of(group_id)
        outcome = delete_offsets(shard.state, group_id, topics)
        return shard.journal.commit(outcome, self._clock().wall_ms)
