"""The group coordinator: serves the requests of groups and keeps their deadlines.

    request -> the group's shard -> a decision (classic_groups, consumer_groups, group_state)
            -> journal.commit: append, replay -> parked replies are released

A request runs through these steps without an await. A reply that must wait for other members is
parked as a future (parked_replies.py). When its client disconnects, the future is cancelled. The
group is not notified: the member's session expires like that of any silent member.

One timer of the event loop, the alarm, is set for the earliest deadline. When it fires, `tick`
calls the deadlines that are due. A deadline that is due at once still waits for the loop's next
turn, as an event of Kafka's waits for those queued before it. So members that join at the same time
begin one generation even where no rebalance delay is configured.

Kafka: GroupCoordinatorService, CoordinatorRuntime.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Container, Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple, TypeVar

from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from odradek.protocol.messages.delete_groups import DeleteGroupsResult
from odradek.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from odradek.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from odradek.protocol.messages.leave_group import (
    LeaveGroupMemberIdentity,
    LeaveGroupMemberResponse,
    LeaveGroupResponse,
)
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
from odradek.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from odradek.storage.log import PartitionLog
from odradek.storage.topic_names import CONSUMER_OFFSETS_TOPIC

from .caller import Caller
from .classic_groups.deadlines import ClassicDeadlines, Expiries
from .classic_groups.group import ClassicGroup
from .classic_groups.join import ClassicJoin, JoinCall
from .classic_groups.rebalance import ClassicRebalance
from .classic_groups.sync import ClassicSync
from .consumer_group_service import ConsumerGroupService
from .consumer_groups.group import ConsumerGroup
from .consumer_groups.group_configs import ConsumerGroupConfigs
from .group import Group
from .group_settings import GroupSettings
from .group_shards import GroupShard, group_shards
from .modern_groups.topics_view import ClusterTopics
from .offset_expiry import expired_records
from .offset_requests import commit_offsets, delete_offsets, fetch_offsets
from .outcome import NOTHING_TO_WRITE, JournalRecord, Outcome
from .parked_replies import Parked, ReleaseQueue
from .timers import Deadline, DeadlineQueue, Now

logger = logging.getLogger("odradek.groups")

R = TypeVar("R")

# An alarm that fires later than this means that the loop, or the process, was blocked.
LATE_MS = 100
# After a partition is loaded, its groups are checked for offsets of deleted topics: this many in
# one turn of the loop.
GROUPS_PER_TURN = 10

# A JoinGroup response with one of these errors has an empty member id.
CODES_WITHOUT_MEMBER_ID = frozenset(
    {
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    }
)


class NewIds(NamedTuple):
    """Make the random part of a classic member's id, and the id of a consumer group's member."""

    uuid: Callable[[], str]
    consumer_member_id: Callable[[], str]


class GroupCoordinator:
    """All groups of this broker."""

    def __init__(
        self,
        settings: GroupSettings,
        *,
        loop: asyncio.AbstractEventLoop,
        clock: Callable[[], Now],
        after_arrivals: Callable[[Callable[[], None]], None],
        new_ids: NewIds,
        ensure_offsets_topic: Callable[[], Awaitable[None] | None],
        topics: ClusterTopics,
        consumer_configs: ConsumerGroupConfigs,
    ) -> None:
        """`after_arrivals` calls its argument when the requests that have arrived are served.
        `ensure_offsets_topic` creates `__consumer_offsets` and calls `open_topic`.

        Raises ConfigError for an unknown assignor.
        """
        self._settings = settings
        self._loop = loop
        self._releases = ReleaseQueue(loop)
        self._clock = clock
        self._after_arrivals = after_arrivals
        self._ensure_offsets_topic = ensure_offsets_topic
        self._deadlines = DeadlineQueue()
        classic_deadlines = ClassicDeadlines(
            self._deadlines,
            Expiries(
                session=self._expire_session, joins=self._expire_joins, syncs=self._expire_syncs
            ),
        )
        self._rebalances = ClassicRebalance(settings, classic_deadlines)
        self._joins = ClassicJoin(self._rebalances, settings, classic_deadlines, new_ids.uuid)
        self._syncs = ClassicSync(self._rebalances, classic_deadlines)
        self._retention = Deadline(self._check_retention, None)
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_at_ms = 0
        self._loads: deque[tuple[Iterator[GroupShard | None], Container[bytes]]] = deque()
        self.shards = group_shards(settings)
        self.consumer_groups = ConsumerGroupService(
            shards=self.shards,
            deadlines=self._deadlines,
            topics=topics,
            configs=consumer_configs,
            loop=loop,
            clock=clock,
            new_member_id=new_ids.consumer_member_id,
            classic_rebalance=self._rebalances,
        )

    # -- the offsets topic -------------------------------------------------------------------------

    def ensure_topic(self) -> Awaitable[None] | None:
        """Create `__consumer_offsets` if it is missing. Returns None if it exists."""
        return None if self.shards.is_open else self._ensure_offsets_topic()

    def open_topic(self, logs: Iterable[PartitionLog], partition_count: int) -> None:
        """Load the groups from the topic's partitions. A partition without a log is not served.

        This blocks until all are loaded: at start no client is connected yet, and the logs of a new
        topic are empty.
        """
        self.shards.prepare(partition_count)
        missing = set(range(partition_count))
        for log in logs:
            missing.discard(log.partition)
            shard = self.shards.load(log)
            if shard is not None:
                self._loaded(shard)
        for partition in missing:
            self.shards.unavailable(partition)
        now = self._clock()
        interval_ms = self._settings.offsets_retention_check_interval_ms
        self._deadlines.schedule(self._retention, now.timer_ms + interval_ms)
        self._set_alarm(now)

    def _loaded(self, shard: GroupShard) -> None:
        """Restart all sessions, and rebalance the groups that exceed a lowered group.max.size."""
        now = self._clock()
        self.consumer_groups.loaded(shard, now)
        for group in shard.state.of_type(ClassicGroup):
            for member in group.members.values():
                self._rebalances.deadlines.extend_session(group, member, now)
            if len(group.members) > self._settings.max_size:
                reason = f"{len(group.members)} members are more than group.max.size"
                self._commit_group(shard, self._rebalances.rebalance(group, reason, now), now)

    def close(self) -> None:
        """Stop serving: parked requests are answered NOT_COORDINATOR."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        self._retention.cancel()
        for shard in self.shards.serving():
            self._unloaded(shard)
        self.shards.close()

    def partition_offline(self, partition: int) -> None:
        """Stop serving the groups of a partition whose log is offline."""
        shard = self.shards.unavailable(partition)
        if shard is not None:
            self._unloaded(shard)

    def _unloaded(self, shard: GroupShard) -> None:
        """Answer the parked requests of a shard's groups NOT_COORDINATOR; cancel the deadlines."""
        for group in shard.state.of_type(ClassicGroup):
            group.roster.refuse_all(ErrorCode.NOT_COORDINATOR)
            group.cancel_deadlines()
        self.consumer_groups.unloaded(shard)

    def partition_online(self, log: PartitionLog, topic_ids: Container[bytes]) -> None:
        """Load the groups of a partition whose log has become readable, and serve them then.

        `topic_ids`: the topics that exist then. Others may have been deleted while the log was
        offline. Partitions are loaded one after another, a slice in each turn of the loop.
        """
        self._loads.append((self.shards.load_in_slices(log), topic_ids))
        if len(self._loads) == 1:
            self._loop.call_soon(self._load_slice)

    def _load_slice(self) -> None:
        slices, topic_ids = self._loads[0]
        is_over = True
        try:
            for shard in slices:
                if shard is None:
                    is_over = False
                    break
                self._loaded(shard)
                self._set_alarm(self._clock())
                group_ids = iter(shard.state.offsets.group_ids)
                self._loop.call_soon(self._delete_offsets_slice, shard, group_ids, topic_ids)
        finally:
            if is_over:
                self._loads.popleft()
            if self._loads:
                self._loop.call_soon(self._load_slice)

    def _delete_offsets_slice(
        self, shard: GroupShard, group_ids: Iterator[str], topic_ids: Container[bytes]
    ) -> None:
        """Delete the groups' offsets in deleted topics, GROUPS_PER_TURN groups in each turn."""
        some = list(islice(group_ids, GROUPS_PER_TURN))
        if some and shard in self.shards.serving():
            found = shard.state.offsets.tombstones_of_missing_topics(some, topic_ids)
            self._delete_offsets(shard, found, self._clock())
            self._loop.call_soon(self._delete_offsets_slice, shard, group_ids, topic_ids)

    # -- membership --------------------------------------------------------------------------------

    def join_group(
        self, request: JoinGroupRequest, caller: Caller
    ) -> JoinGroupResponse | Awaitable[JoinGroupResponse]:
        """Serve a JoinGroup. Returns an awaitable while the group waits for other members."""
        parked: Parked[JoinGroupResponse] = Parked(self._releases)
        now = self._clock()
        try:
            self._check_join(request)
            shard = self.shards.of(request.group_id)
            call = JoinCall.of(request, caller, parked)
            consumers = shard.state.find_consumer(request.group_id)
            if consumers is not None and not consumers.is_empty:
                parked(self.consumer_groups.join_classic(shard, consumers, call, now))
            elif shard.state.is_share_group(request.group_id):
                parked(JoinGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
            else:
                group = self._group_to_join(shard, request, now)
                self._commit_group(shard, self._joins.join(group, call, now), now)
        except ApiError as error:
            member_id = "" if error.code in CODES_WITHOUT_MEMBER_ID else request.member_id
            parked(JoinGroupResponse(error_code=error.code, member_id=member_id))
        self._set_alarm(now)
        return parked.result()

    def _check_join(self, request: JoinGroupRequest) -> None:
        if not request.group_id:
            raise ApiError(ErrorCode.INVALID_GROUP_ID, "the group id is empty")
        lowest = self._settings.min_session_timeout_ms
        highest = self._settings.max_session_timeout_ms
        if not lowest <= request.session_timeout_ms <= highest:
            raise ApiError(
                ErrorCode.INVALID_SESSION_TIMEOUT,
                f"{request.session_timeout_ms} is not between {lowest} and {highest}",
            )

    def _group_to_join(
        self, shard: GroupShard, request: JoinGroupRequest, now: Now
    ) -> ClassicGroup:
        """Return the group. A request without a member id creates it if it does not exist."""
        group_id = request.group_id
        group = shard.state.find_classic(group_id)
        if group is not None:
            return group
        if request.member_id:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"there is no group {group_id}")
        shard.journal.commit(shard.state.create(group_id, now.wall_ms), now.wall_ms)
        return shard.state.classic_group(group_id)

    def sync_group(
        self, request: SyncGroupRequest
    ) -> SyncGroupResponse | Awaitable[SyncGroupResponse]:
        """Serve a SyncGroup. Returns an awaitable until the leader has sent the assignment."""
        parked: Parked[SyncGroupResponse] = Parked(self._releases)
        now = self._clock()
        try:
            shard, group = self._group_of_member(request.group_id)
            if isinstance(group, ConsumerGroup):
                parked(self.consumer_groups.classic_members.sync(group, request, now))
            else:
                self._commit_group(shard, self._syncs.sync(group, request, parked, now), now)
        except ApiError as error:
            parked(SyncGroupResponse(error_code=error.code))
        self._set_alarm(now)
        return parked.result()

    def heartbeat(self, request: HeartbeatRequest) -> HeartbeatResponse:
        """Serve a Heartbeat. While the group is loading, every heartbeat succeeds, as in Kafka."""
        now = self._clock()
        try:
            _, group = self._group_of_member(request.group_id)
            if isinstance(group, ConsumerGroup):
                code = self.consumer_groups.classic_members.heartbeat(group, request, now)
            else:
                code = self._syncs.heartbeat(group, request, now)
        except ApiError as error:
            code = error.code
            if code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                code = ErrorCode.NONE
        self._set_alarm(now)
        return HeartbeatResponse(error_code=code)

    def leave_group(
        self, group_id: str, leaving: Sequence[LeaveGroupMemberIdentity]
    ) -> LeaveGroupResponse:
        """Serve a LeaveGroup: one error for all members, or a result for each."""
        now = self._clock()
        try:
            shard, group = self._group_of_member(group_id)
            if isinstance(group, ConsumerGroup):
                left = self.consumer_groups.classic_members.leave(group, leaving, now)
                response = self.consumer_groups.commit(shard, left, now)
            else:
                response = self._leave_classic(shard, group, leaving, now)
        except ApiError as refusal:
            response = _refuse_leave(leaving, refusal.code)
        self._set_alarm(now)
        return response

    def _leave_classic(
        self,
        shard: GroupShard,
        group: ClassicGroup,
        leaving: Sequence[LeaveGroupMemberIdentity],
        now: Now,
    ) -> LeaveGroupResponse:
        outcome, answers = self._syncs.leave(group, leaving, now)
        shard.journal.commit(outcome, now.wall_ms)
        return LeaveGroupResponse(members=answers)

    def _group_of_member(self, group_id: str) -> tuple[GroupShard, ClassicGroup | ConsumerGroup]:
        """Find the group that a member names. Raises ApiError: UNKNOWN_MEMBER_ID if none exists."""
        if not group_id:
            raise ApiError(ErrorCode.INVALID_GROUP_ID, "the group id is empty")
        shard = self.shards.of(group_id)
        group = shard.state.groups.get(group_id)
        if not isinstance(group, (ClassicGroup, ConsumerGroup)):
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"there is no group {group_id}")
        return shard, group

    def consumer_group_heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, caller: Caller
    ) -> ConsumerGroupHeartbeatResponse:
        """Serve a ConsumerGroupHeartbeat. It never waits."""
        now = self._clock()
        response = self.consumer_groups.heartbeat(request, caller, now)
        self._set_alarm(now)
        return response

    # -- offsets -----------------------------------------------------------------------------------

    def commit_offsets(
        self,
        request: OffsetCommitRequest,
        topics: Sequence[OffsetCommitRequestTopic],
        api_version: int,
    ) -> list[OffsetCommitResponseTopic]:
        """Commit offsets in existing topics; `topics` have names and ids.

        Raises ApiError when the whole request is refused.
        """
        now = self._clock()
        shard = self.shards.of(request.group_id)
        outcome = commit_offsets(
            shard.state,
            request,
            topics,
            api_version,
            now_ms=now.wall_ms,
            max_metadata_units=self._settings.offset_metadata_max_units,
        )
        group = shard.state.find_classic(request.group_id)
        if group is not None:
            self._syncs.committed(group, request.member_id, now)
        answers = shard.journal.commit(outcome, now.wall_ms)
        self._set_alarm(now)
        return answers

    def fetch_offsets(
        self,
        wanted: OffsetFetchRequestGroup,
        topics: Sequence[OffsetFetchRequestTopic] | None,
        *,
        stable: bool = False,
    ) -> list[OffsetFetchResponseTopic]:
        """Return the group's offsets in `topics` (with names and ids); None: in all topics.

        `stable`: see offset_requests. Raises ApiError.
        """
        return fetch_offsets(self.shards.of(wanted.group_id).state, wanted, topics, stable=stable)

    def delete_offsets(
        self, group_id: str, topics: Sequence[OffsetDeleteRequestTopic]
    ) -> list[OffsetDeleteResponseTopic]:
        """Delete offsets in existing topics. Raises ApiError when the whole request is refused."""
        if not group_id:
            raise ApiError(ErrorCode.INVALID_GROUP_ID, "the group id is empty")
        shard = self.shards.of(group_id)
        outcome = delete_offsets(shard.state, group_id, topics)
        return shard.journal.commit(outcome, self._clock().wall_ms)

    def on_topics_deleted(self, deleted: Sequence[tuple[str, bytes]]) -> None:
        """Delete the offsets in topics (name, id) that have just been deleted."""
        if any(name == CONSUMER_OFFSETS_TOPIC for name, _ in deleted):
            self.close()
        now = self._clock()
        for shard in self.shards.serving():
            self._delete_offsets(shard, shard.state.offsets.tombstones_of_topics(deleted), now)

    def delete_offsets_of_missing_topics(self, topic_ids: Container[bytes]) -> None:
        """At start: delete offsets in topics that no longer exist; `topic_ids`: those that do."""
        now = self._clock()
        for shard in self.shards.serving():
            offsets = shard.state.offsets
            found = offsets.tombstones_of_missing_topics(offsets.group_ids, topic_ids)
            self._delete_offsets(shard, found, now)

    def _expire_offsets(self, shards: Iterator[GroupShard]) -> None:
        """Delete the expired offsets of all groups, one shard in each turn of the loop."""
        shard = next(shards, None)
        if shard is not None:
            now = self._clock()
            expired = expired_records(shard.state, now.wall_ms, self._settings.offsets_retention_ms)
            self._delete_offsets(shard, expired, now)
            self._loop.call_soon(self._expire_offsets, shards)

    # -- administration ----------------------------------------------------------------------------

    def group(self, group_id: str) -> ClassicGroup:
        """Return a classic group, to be read only. Raises ApiError: GROUP_ID_NOT_FOUND."""
        return self.shards.of(group_id).state.classic_group(group_id)

    def consumer_group(self, group_id: str) -> ConsumerGroup:
        """Return a consumer group, to be read only. Raises ApiError: GROUP_ID_NOT_FOUND."""
        return self.shards.of(group_id).state.consumer_group(group_id)

    def groups(self) -> Iterator[Group]:
        """Iterate over all groups. Raises ApiError while some are still loading."""
        return (group for shard in self.shards.all() for group in shard.state.groups.values())

    def delete_groups(self, group_ids: Iterable[str]) -> list[DeleteGroupsResult]:
        """Delete groups that are empty. Returns one result for each id."""
        return [self._delete_group(group_id) for group_id in group_ids]

    def _delete_group(self, group_id: str) -> DeleteGroupsResult:
        try:
            shard = self.shards.of(group_id)
            return shard.journal.commit(shard.state.delete([group_id]), self._clock().wall_ms)[0]
        except ApiError as error:
            return DeleteGroupsResult(
                group_id=group_id, error_code=error.code, error_message=error.message
            )

    # -- writes that no caller waits for -----------------------------------------------------------

    def _commit_group(self, shard: GroupShard, outcome: Outcome[None], now: Now) -> None:
        """Write a classic group's decision; the outcome itself answers the parked requests."""
        if outcome is not NOTHING_TO_WRITE:  # of a thousand joins all but the last only wait
            self._commit_or_log(shard, outcome, now, "a group's metadata could not be written")

    def _delete_offsets(self, shard: GroupShard, tombstones: list[JournalRecord], now: Now) -> None:
        """Write tombstones of offsets. If that fails, a later pass makes them again."""
        outcome = Outcome(reply=None, records=tuple(tombstones), atomic=False)
        self._commit_or_log(shard, outcome, now, "offsets could not be deleted")

    @staticmethod
    def _commit_or_log(shard: GroupShard, outcome: Outcome[None], now: Now, failure: str) -> None:
        try:
            shard.journal.commit(outcome, now.wall_ms)
        except ApiError as error:
            logger.warning("%s: %s", failure, error)

    # -- deadlines -------------------------------------------------------------------------------

    def tick(self, now: Now | None = None) -> None:
        """Call the deadlines that are due, and set the alarm for the next one."""
        now = now or self._clock()
        try:
            self._deadlines.expire_due(now)
        finally:
            self._set_alarm(now)

    def _expire_session(self, key: tuple[str, str], now: Now) -> None:
        group_id, member_id = key
        shard = self.shards.of(group_id)
        group = shard.state.classic_group(group_id)
        self._commit_group(shard, self._syncs.expire_session(group, member_id, now), now)

    def _expire_joins(self, group_id: str, now: Now) -> None:
        shard = self.shards.of(group_id)
        group = shard.state.classic_group(group_id)
        self._commit_group(shard, self._rebalances.expire_join(group, now), now)

    def _expire_syncs(self, group_id: str, now: Now) -> None:
        shard = self.shards.of(group_id)
        group = shard.state.classic_group(group_id)
        self._commit_group(shard, self._syncs.expire_sync(group, now), now)

    def _check_retention(self, _subject: None, now: Now) -> None:
        interval_ms = self._settings.offsets_retention_check_interval_ms
        self._deadlines.schedule(self._retention, now.timer_ms + interval_ms)
        self._expire_offsets(self.shards.serving())

    def _set_alarm(self, now: Now) -> None:
        """Set the alarm for the next deadline. One that is set for an earlier time stays."""
        at_ms = self._deadlines.next_deadline_ms
        if at_ms is None or (self._alarm is not None and self._alarm_at_ms <= at_ms):
            return
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm_at_ms = at_ms
        self._alarm = self._loop.call_later(max(at_ms - now.timer_ms, 0) / 1000, self._on_alarm)

    def _on_alarm(self) -> None:
        """Call the deadlines that are due; if the alarm is late, serve the waiting requests first.

        The process may have been stopped for longer than a session timeout, while the heartbeats of
        its members arrived. Until those are served `_alarm` keeps the handle of the alarm that has
        fired, so that no other is set for the same deadlines.
        """
        if self._clock().timer_ms - self._alarm_at_ms > LATE_MS:
            self._after_arrivals(self._expire_due)
        else:
            self._expire_due()

    def _expire_due(self) -> None:
        self._alarm = None
        self.tick()


def _refuse_leave(
    leaving: Sequence[LeaveGroupMemberIdentity], error: ErrorCode
) -> LeaveGroupResponse:
    """Make the response of a refused LeaveGroup.

    When the group does not exist, each member gets UNKNOWN_MEMBER_ID; other errors are given once.
    """
    if error is not ErrorCode.UNKNOWN_MEMBER_ID:
        return LeaveGroupResponse(error_code=error)
    return LeaveGroupResponse(
        members=[
            LeaveGroupMemberResponse(
                member_id=identity.member_id,
                group_instance_id=identity.group_instance_id,
                error_code=error,
            )
            for identity in leaving
        ]
    )
