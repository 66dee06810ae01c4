"""The entry point to committed offsets: finds the shard and commits what offset_requests decides.

Topics are those that exist, each with its name and id. Kafka: GroupCoordinatorService.
"""

from collections.abc import Callable, Container, Sequence
from functools import partial

from odradek.coordinator.any_group.group import PartitionCheck
from odradek.coordinator.any_group.group_settings import GroupSettings
from odradek.coordinator.runtime.alarm import Alarm
from odradek.coordinator.runtime.producer import NO_PRODUCER, ProducerIdAndEpoch
from odradek.coordinator.runtime.steps import Step, free, no_step
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
from .group_decisions import MAX_ATTEMPTS
from .group_shards import GroupShard, GroupShards
from .offset_deletion import commit_in_steps
from .offset_requests import (
    Commit,
    commit_in_transaction,
    commit_offsets,
    delete_offsets,
    fetch_offsets,
)


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
        topic_ids: Container[bytes],
    ) -> None:
        """`classic` extends the session of a member that commits.

        `topic_ids`: the ids of the topics that exist now, whenever it is asked.
        """
        self._max_metadata_units = settings.offset_metadata_max_units
        self._shards = shards
        self._classic = classic
        self._alarm = alarm
        self._clock = clock
        self._topic_ids = topic_ids

    def commit(
        self,
        request: OffsetCommitRequest,
        topics: Sequence[OffsetCommitRequestTopic],
        api_version: int,
        step: Step = no_step,
    ) -> list[OffsetCommitResponseTopic]:
        """Commit offsets."""
        now = self._clock()
        commit = commit_offsets(
            request,
            topics,
            api_version,
            now_ms=now.wall_ms,
            max_metadata_units=self._max_metadata_units,
        )

        def extend_session(shard: GroupShard) -> None:
            self._classic.on_commit(shard, request.group_id, request.member_id, self._clock())

        answers = self._commit(request.group_id, commit, now, step, confirm=extend_session)
        self._alarm.set(self._clock())  # the commit may have taken long
        return answers

    def commit_in_transaction(
        self,
        request: TxnOffsetCommitRequest,
        topics: Sequence[OffsetCommitRequestTopic],
        api_version: int,
        step: Step = no_step,
        verify: Callable[[], None] = lambda: None,
    ) -> list[OffsetCommitResponseTopic]:
        """Commit offsets that take effect when the producer's transaction is committed.

        `verify` raises if the transaction has ended meanwhile; it is called after the last step.
        """
        now = self._clock()
        commit = commit_in_transaction(
            request,
            topics,
            api_version,
            now_ms=now.wall_ms,
            max_metadata_units=self._max_metadata_units,
        )
        producer = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)

        def confirm(_shard: GroupShard) -> None:
            if step is not no_step:
                verify()

        return self._commit(request.group_id, commit, now, step, producer, confirm=confirm)

    def _commit(
        self,
        group_id: str,
        commit: Commit,
        now: Now,
        step: Step,
        producer: ProducerIdAndEpoch = NO_PRODUCER,
        *,
        confirm: Callable[[GroupShard], None],
    ) -> list[OffsetCommitResponseTopic]:
        """Write a commit. It is encoded in steps; after them its topics must still exist.

        The group must allow it after them too. `confirm` is called when the group has allowed it.
        """
        shard = self._shards.of(group_id)
        passed = commit.check(shard.state, step)
        outcome = commit.outcome(step)
        prepared = None
        if step is not no_step:
            prepared = shard.journal.prepare(outcome, now.wall_ms, step, producer)
            shard = self._allowed_still(group_id, commit, passed, step)
            commit.check_topics(self._topic_ids)
        confirm(shard)
        answers = shard.journal.commit(outcome, now.wall_ms, producer, prepared)
        if prepared is not None:
            free(step, prepared.joined)
        return answers

    def _allowed_still(
        self, group_id: str, commit: Commit, passed: PartitionCheck | None, step: Step
    ) -> GroupShard:
        """Return the group's shard when the group allows a commit that it has allowed before.

        If the member has changed meanwhile, its partitions are checked again, in steps. Raises
        ApiError.
        """
        for _ in range(MAX_ATTEMPTS):
            shard, before = self._shards.of(group_id), passed
            passed = commit.check(shard.state, step, before)
            if passed == before:
                return shard
        text = f"the member has changed during {MAX_ATTEMPTS} checks of its commit"
        raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, text)

    def end_transaction(self, partition: int, marker: EndMarker, now_ms: int) -> None:
        """Write a marker to a partition of `__consumer_offsets`; its offsets take effect."""
        self._shards.at(partition).journal.end_transaction(marker, now_ms)

    def fetch(
        self,
        wanted: OffsetFetchRequestGroup,
        topics: Sequence[OffsetFetchRequestTopic] | None,
        *,
        stable: bool = False,
        step: Step = no_step,
    ) -> list[OffsetFetchResponseTopic]:
        """Return the group's offsets in `topics`; None: in all topics.

        `stable`: a partition for which an open transaction has an offset gets an error instead.
        """
        state = self._shards.of(wanted.group_id).state
        return fetch_offsets(state, wanted, topics, stable=stable, step=step)

    def delete(
        self, group_id: str, topics: Sequence[OffsetDeleteRequestTopic], step: Step = no_step
    ) -> list[OffsetDeleteResponseTopic]:
        """Delete offsets."""
        if not group_id:
            raise ApiError(ErrorCode.INVALID_GROUP_ID, "the group id is empty")
        return commit_in_steps(
            partial(self._shards.of, group_id),
            group_id,
            lambda state, each_step: delete_offsets(state, group_id, topics, each_step),
            self._clock().wall_ms,
            step,
        )
