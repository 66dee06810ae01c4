"""The entry point to the share groups: finds the shard, commits decisions, has state stored.

    heartbeat -> checks -> the group's shard -> ShareHeartbeats decides -> append, replay -> then

Partitions whose state has to be created are initialized after the answer, as in Kafka: the member
gets them with a later heartbeat. The share coordinator runs in the same process and answers at
once; only the creation of its topic takes time.

Kafka: GroupCoordinatorService, and the persister that it calls.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Protocol, TypeVar

from odradek.coordinator.any_group.caller import Caller
from odradek.coordinator.assignors.simple import SimpleAssignor
from odradek.coordinator.modern_groups.deadlines import MemberDeadlines
from odradek.coordinator.modern_groups.draft import Draft, DraftResult
from odradek.coordinator.modern_groups.topics_view import ClusterTopics
from odradek.coordinator.runtime.outcome import Outcome
from odradek.coordinator.runtime.part_queue import PartQueue
from odradek.coordinator.runtime.steps import Step, no_step, stepping
from odradek.coordinator.runtime.timers import DeadlineQueue, Now
from odradek.coordinator.share_groups.group import ShareGroup
from odradek.coordinator.share_groups.group_configs import ShareGroupConfigs
from odradek.coordinator.share_groups.heartbeat import (
    Answer,
    HeartbeatReply,
    Initialization,
    ShareHeartbeats,
    check_heartbeat,
    not_a_share_group,
)
from odradek.coordinator.share_groups.member import ShareMember
from odradek.coordinator.share_groups.records import epoch_record, state_partitions_record
from odradek.coordinator.share_groups.start_offsets import (
    Altered,
    Deletion,
    Partitions,
    alter,
    begin_deletion,
    begin_group_deletion,
    complete_deletion,
)
from odradek.coordinator.share_groups.state_partitions import StatePartitions
from odradek.coordinator.share_state.batches import NO_OFFSET
from odradek.coordinator.share_state.share_partition_key import SharePartitionKey
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)
from odradek.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequestTopic,
    DeleteShareGroupOffsetsResponseTopic,
)
from odradek.protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)

from .fencing import Fencing
from .group_decisions import GroupDecisions, while_unchanged
from .group_shards import GroupShard, GroupShards
from .modern_group_commits import commit

logger = logging.getLogger("odradek.groups")

R = TypeVar("R")

# At most this many states are created in one turn of the loop: each takes 60 us.
STATES_PER_TURN = 20
# At most this many groups are asked for deleted topics in one turn.
GROUPS_PER_TURN = 500

# Topic id and partition.
StateOf = tuple[bytes, int]


class ShareStates(Protocol):
    """The share coordinator, as the groups use it. Each method raises ApiError."""

    def initialize(
        self, key: SharePartitionKey, state_epoch: int, start_offset: int, now_ms: int
    ) -> None:
        """Create the state of a partition."""

    def delete(self, key: SharePartitionKey, now_ms: int) -> None:
        """Delete the state of a partition."""


class ShareGroupService:
    """The share groups of all shards."""

    def __init__(
        self,
        *,
        shards: GroupShards,
        deadlines: DeadlineQueue,
        topics: ClusterTopics,
        configs: ShareGroupConfigs,
        loop: asyncio.AbstractEventLoop,
        decisions: GroupDecisions,
        states: ShareStates,
        when_states_exist: Callable[[Callable[[], None]], None],
    ) -> None:
        """`when_states_exist` calls its argument when the topic of `states` exists.

        `on_state_reset` is called with each state that is deleted or created again, in that turn.
        """
        self.on_state_reset: set[Callable[[SharePartitionKey], None]] = set()
        self._shards = shards
        self._topics = topics
        self._configs = configs
        self._loop = loop
        self._clock = decisions.clock
        self._decisions = decisions
        self._states = states
        self._when_states_exist = when_states_exist
        self._initializations = PartQueue(loop.call_soon)
        self._deletions = PartQueue(loop.call_soon)
        self.deadlines = Fencing(
            shards,
            decisions,
            ShareGroup,
            make_deadlines=partial(MemberDeadlines, deadlines),
            remove=self._removal,
        ).deadlines
        self._heartbeats = ShareHeartbeats(
            topics=topics, configs=configs, deadlines=self.deadlines, assignor=SimpleAssignor()
        )

    def heartbeat(
        self, request: ShareGroupHeartbeatRequest, caller: Caller, now: Now
    ) -> ShareGroupHeartbeatResponse | Awaitable[ShareGroupHeartbeatResponse]:
        """Serve a ShareGroupHeartbeat. Returns an awaitable if the decision takes long."""
        decide = partial(self._decide, request, caller)
        try:
            check_heartbeat(request)
            shard = self._shards.of(request.group_id)
            reply = self._decisions.decide(shard, request.group_id, decide, now, _refusal)
        except ApiError as error:
            return _refusal(error).response
        if isinstance(reply, HeartbeatReply):
            return self._respond(reply)
        return self._respond_later(reply)

    def _decide(
        self,
        request: ShareGroupHeartbeatRequest,
        caller: Caller,
        shard: GroupShard,
        now: Now,
        step: Step,
    ) -> Answer:
        group = shard.state.groups.get(request.group_id)
        return self._heartbeats.serve(group, shard.partition, request, caller, now, step)

    async def _respond_later(self, reply: Awaitable[HeartbeatReply]) -> ShareGroupHeartbeatResponse:
        return self._respond(await reply)

    def _respond(self, reply: HeartbeatReply) -> ShareGroupHeartbeatResponse:
        """Return the response, and have the state created that the heartbeat needs."""
        if reply.initialization is not None:
            self._loop.call_soon(
                self._when_states_exist, partial(self._initialize, reply.initialization)
            )
        return reply.response

    # -- stored state ------------------------------------------------------------------------------

    def _initialize(self, wanted: Initialization) -> None:
        """Create the state of partitions, some in each turn of the loop.

        Those that fail are tried again by a later heartbeat.
        """
        self._initializations.add(self._initialize_in_parts(wanted))

    def _initialize_in_parts(self, wanted: Initialization) -> Iterator[None]:
        """A topic with an error is not initialized. It is tried again at once if it has no state.

        Else it stays in the group's record, so that a deletion of the group deletes the state, and
        is tried again later.
        """
        left = _partitions_of(wanted)
        errors: dict[StateOf, ApiError] = {}
        try:
            while True:
                shard = self._shards.of(wanted.group_id)
                group = shard.state.share_group(wanted.group_id)  # it may be deleted meanwhile
                if wanted.topics.keys().isdisjoint(group.state_partitions.initializing):
                    raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "their state is deleted")
                some = list(islice(left, STATES_PER_TURN))
                errors |= self._create_states(wanted, some)
                if len(some) < STATES_PER_TURN:
                    break
                yield
            failed = Counter(topic_id for topic_id, _ in errors)
            created, absent = {}, {}
            for topic_id, topic in wanted.topics.items():
                if not failed[topic_id]:
                    created[topic_id] = topic
                elif failed[topic_id] == len(topic.partitions) and (
                    topic_id not in wanted.begun_before
                ):
                    absent[topic_id] = topic
            state = group.state_partitions.without_initializing(absent).with_initialized(created)
            self._write_states(shard, group, state)
        except ApiError as error:
            logger.warning("group %s: partitions not initialized: %s", wanted.group_id, error)

    def _create_states(
        self, wanted: Initialization, partitions: Iterable[StateOf]
    ) -> dict[StateOf, ApiError]:
        """Create the state of partitions. Returns the errors."""
        now_ms = self._clock().wall_ms
        errors = {}
        for topic_id, partition in partitions:
            offset = wanted.start_offsets.get((topic_id, partition), NO_OFFSET)
            key = SharePartitionKey(wanted.group_id, topic_id, partition)
            try:
                self._check_wanted(wanted, topic_id)
                self._states.initialize(key, wanted.epoch, offset, now_ms)
                self._was_reset(key)
            except ApiError as error:
                logger.warning("the state of %s is not initialized: %s", key, error)
                errors[topic_id, partition] = error.with_traceback(None)
        return errors

    def _was_reset(self, key: SharePartitionKey) -> None:
        for notify in self.on_state_reset:
            notify(key)

    def _check_wanted(self, wanted: Initialization, topic_id: bytes) -> None:
        """Raise ApiError if the group or the topic has been deleted: nobody would own the state.

        A later group of the same name begins at a lower epoch, and could not use it.
        """
        group = self._shards.of(wanted.group_id).state.share_group(wanted.group_id)
        is_initializing = topic_id in group.state_partitions.initializing
        if group.epoch < wanted.epoch or not is_initializing:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "its state is deleted")

    def create_lost_state(self, key: SharePartitionKey) -> bool:
        """Create the state of a partition again, if the group's record says that it is there.

        A power cut may take the state, and leave the record. All records of the partition are
        delivered then, because nobody knows which were accepted. Raises ApiError.
        """
        group = self._shards.of(key.group_id).state.groups.get(key.group_id)
        if not isinstance(group, ShareGroup):
            return False
        is_lost = key.partition in group.state_partitions.assignable().get(key.topic_id, ())
        if is_lost:
            logger.warning("the state of %s is lost: its records are delivered again", key.text)
            self._states.initialize(key, group.epoch, 0, self._clock().wall_ms)
        return is_lost

    def _delete_states(
        self, group_id: str, partitions: Partitions, step: Step
    ) -> dict[bytes, ApiError]:
        """Delete the state of partitions. Returns an error of each topic that has one.

        A topic whose state is created again, after a step, keeps what is left of it.
        """
        now_ms = self._clock().wall_ms
        errors = {}
        for topic_id, of_topic in partitions.items():
            for partition in stepping(of_topic, step):
                try:
                    group = self._shards.of(group_id).state.share_group(group_id)
                    if topic_id not in group.state_partitions.deleting:
                        raise ApiError(ErrorCode.NON_EMPTY_GROUP, "the group is used again")
                    key = SharePartitionKey(group_id, topic_id, partition)
                    self._states.delete(key, now_ms)
                    self._was_reset(key)
                except ApiError as error:
                    errors[topic_id] = error.with_traceback(None)
        return errors

    def _write_states(self, shard: GroupShard, group: ShareGroup, state: StatePartitions) -> None:
        now = self._clock()
        draft = Draft(group, now, epoch_record)
        draft.records.append(state_partitions_record(group.group_id, state, self._topics.name_of))
        commit(shard, draft.outcome(None), now)

    def on_topics_deleted(self) -> None:
        """Forget the stored state of topics that have been deleted, one group in each turn."""
        for shard in self._shards.serving():
            self._deletions.add(self._forget_topics(shard))

    def _forget_topics(self, shard: GroupShard) -> Iterator[None]:
        for number, group in enumerate(list(shard.state.of_type(ShareGroup))):
            missing = self._topics.missing_of(group.state_partitions.topic_ids())
            if missing and shard.state.groups.get(group.group_id) is group:
                try:
                    self._write_states(shard, group, group.state_partitions.without_topics(missing))
                except ApiError as error:
                    logger.warning("group %s keeps deleted topics: %s", group.group_id, error)
            if missing or number % GROUPS_PER_TURN == 0:
                yield
                if shard not in self._shards.serving():
                    return

    # -- administrators ----------------------------------------------------------------------------

    def alter_offsets(
        self,
        group_id: str,
        wanted: Iterable[AlterShareGroupOffsetsRequestTopic],
        step: Step = no_step,
    ) -> list[AlterShareGroupOffsetsResponseTopic]:
        """Set start offsets of a group, which is created if it does not exist.

        A partition with an error is tried again later, by a heartbeat, without its start offset.

        Raises ApiError: GROUP_ID_NOT_FOUND for a group of another type, NON_EMPTY_GROUP.
        """
        now = self._clock()

        def decide(shard: GroupShard) -> Outcome[DraftResult[Altered]]:
            group = shard.state.groups.get(group_id) or ShareGroup(group_id, shard.partition)
            if not isinstance(group, ShareGroup):
                raise not_a_share_group(group_id)
            return alter(group, wanted, self._topics, now, step)

        results, initialization = self._commit_in_steps(group_id, decide, now)
        partitions = stepping(_partitions_of(initialization), step)
        errors = self._create_states(initialization, partitions)
        created = {
            topic_id: topic._replace(
                partitions=frozenset(
                    partition
                    for partition in stepping(topic.partitions, step)
                    if (topic_id, partition) not in errors
                )
            )
            for topic_id, topic in initialization.topics.items()
        }
        if created:
            shard = self._shards.of(group_id)
            group = shard.state.share_group(group_id)
            self._write_states(shard, group, group.state_partitions.with_initialized(created))
        for topic in stepping(results, step):
            topic.partitions[:] = [
                _with_error(partition, errors.get((topic.topic_id, partition.partition_index)))
                for partition in stepping(topic.partitions, step)
            ]
        return results

    def delete_offsets(
        self,
        group_id: str,
        wanted: Iterable[DeleteShareGroupOffsetsRequestTopic],
        step: Step = no_step,
    ) -> list[DeleteShareGroupOffsetsResponseTopic]:
        """Delete start offsets of topics. Raises ApiError: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP."""
        now = self._clock()

        def decide(shard: GroupShard) -> Outcome[DraftResult[Deletion]]:
            group = shard.state.share_group(group_id)
            return begin_deletion(group, wanted, self._topics, now, step)

        without_offsets, partitions = self._commit_in_steps(group_id, decide, now)
        errors = self._delete_states(group_id, partitions, step)
        deleted = [topic_id for topic_id in partitions if topic_id not in errors]
        failed = [
            DeleteShareGroupOffsetsResponseTopic(
                topic_name=self._topics.name_of(topic_id) or "",
                topic_id=topic_id,
                error_code=error.code,
                error_message=error.message,
            )
            for topic_id, error in errors.items()
        ]
        if not deleted:
            return [*without_offsets, *failed]
        shard = self._shards.of(group_id)
        group = shard.state.share_group(group_id)
        commit(shard, complete_deletion(group, deleted, self._topics, now), now)
        return [
            *(
                DeleteShareGroupOffsetsResponseTopic(
                    topic_name=self._topics.name_of(topic_id) or "", topic_id=topic_id
                )
                for topic_id in deleted
            ),
            *without_offsets,
            *failed,
        ]

    def _commit_in_steps(
        self, group_id: str, decide: Callable[[GroupShard], Outcome[DraftResult[R]]], now: Now
    ) -> R:
        """Commit a decision that is made in steps; it is made again if the group changes in them.

        Raises ApiError.
        """
        shard, outcome = while_unchanged(
            group_id, partial(self._shards.of, group_id), lambda shard: (shard, decide(shard))
        )
        return commit(shard, outcome, now)

    def delete_states(self, group: ShareGroup, step: Step = no_step) -> None:
        """Delete all stored state of a group, so that the group can be deleted.

        Raises ApiError: NON_EMPTY_GROUP, or an error of the share coordinator.
        """
        now = self._clock()
        shard = self._shards.at(group.partition)
        partitions = commit(shard, begin_group_deletion(group, self._topics, now), now)
        for error in self._delete_states(group.group_id, partitions, step).values():
            raise error

    def remove(
        self, shard: GroupShard, group: ShareGroup, member_ids: Iterable[str], now: Now
    ) -> None:
        """Remove members as if their sessions had expired. Unknown ones are ignored."""
        for member_id in member_ids:
            member = group.members.get(member_id)
            if member is not None:
                commit(shard, self._removal(group, member, now), now)

    # -- deadlines ---------------------------------------------------------------------------------

    def on_shard_loaded(self, shard: GroupShard, now: Now) -> None:
        """Start the sessions of the members that have just been loaded.

        Topics that were deleted while the shard was not served are forgotten.
        """
        for group in shard.state.of_type(ShareGroup):
            group.note_timestamps(now)
            session_ms = now.timer_ms + self._configs.session_timeout_ms(group.group_id)
            for member_id in group.members:
                self.deadlines.sessions.schedule(group.key_of(member_id), session_ms)
        self._deletions.add(self._forget_topics(shard))

    def on_shard_unloaded(self, shard: GroupShard) -> None:
        """Cancel the deadlines of groups that are no longer served here."""
        for group in shard.state.of_type(ShareGroup):
            for member_id in group.members:
                self.deadlines.cancel_all(group.key_of(member_id))

    def _removal(
        self, group: ShareGroup, member: ShareMember, now: Now, step: Step = no_step
    ) -> Outcome[DraftResult[None]]:
        return self._heartbeats.remove(group, member, now, None, step)


def _refusal(error: ApiError) -> HeartbeatReply:
    response = ShareGroupHeartbeatResponse(error_code=error.code, error_message=error.message)
    return HeartbeatReply(response)


def _partitions_of(wanted: Initialization) -> Iterator[StateOf]:
    for topic_id, topic in wanted.topics.items():
        for partition in sorted(topic.partitions):
            yield topic_id, partition


def _with_error(
    result: AlterShareGroupOffsetsResponsePartition, error: ApiError | None
) -> AlterShareGroupOffsetsResponsePartition:
    if error is None:
        return result
    return AlterShareGroupOffsetsResponsePartition(
        partition_index=result.partition_index,
        error_code=error.code,
        error_message=error.message,
    )
