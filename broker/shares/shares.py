"""All share-partitions that this broker leads.

A share-partition is opened by the first ShareFetch of it, and closed when the group has no session
left, when its log is deleted or goes offline, or when its stored state has a new life. What is not
stored, the locks, is lost then: the records are delivered again.

The session of a member with many partitions or records ends in slices. The member may open another
one meanwhile, and must not lose what it acquires in that: it opens it after the last slice.

Kafka: SharePartitionManager, SharePartitionCache.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Container, Sequence
from functools import partial

from odradek.broker.security.session import Session
from odradek.broker.turns.slices import SliceRunner, Slices
from odradek.coordinator.runtime.alarm import Alarm
from odradek.coordinator.runtime.steps import Step, no_step, stepping
from odradek.coordinator.runtime.timers import RETRY_FAILED_MS, KeyedDeadlines, Now
from odradek.coordinator.share_groups.group_configs import ShareGroupConfigs
from odradek.coordinator.share_partitions.changes import (
    AcknowledgeCall,
    Acknowledgement,
    Changes,
    StaleDecisionError,
    acknowledge,
    archive,
    expire,
    next_lock_end_ms,
    release,
)
from odradek.coordinator.share_partitions.dead_letters import DeadLetters, unfinished
from odradek.coordinator.share_partitions.in_flight import DeliveryRules
from odradek.coordinator.share_state.share_coordinator import ShareCoordinator
from odradek.coordinator.share_state.share_partition_key import SharePartitionKey
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.storage.log import PartitionLog

from .archiving import Archiving
from .dead_letter_queues import DeadLetterQueues
from .led_partition import STALE_STATE, LedPartition, NoStateError, state_error
from .sessions import Place, SessionKey, ShareSession, ShareSessions

logger = logging.getLogger("odradek.shares")

# The end of sessions with more partitions, or beside more open ones, takes several turns.
MAX_AT_ONCE = 64
MAX_LED_AT_ONCE = 1024
# So does the release of records where more are in flight: 200 take a millisecond.
MAX_IN_FLIGHT_AT_ONCE = 200
# At most this many share-partitions are looked at, and closed, in one turn.
CLOSED_AT_ONCE = 256
# The shortest time between two warnings that a stored state cannot be read.
WARN_EVERY_MS = 60_000


class Shares:
    """The share-partitions by key, and the sessions of the members that read them."""

    def __init__(  # noqa: PLR0913 # the parts of the broker that it connects
        self,
        *,
        loop: asyncio.AbstractEventLoop,
        clock: Callable[[], Now],
        after_arrivals: Callable[[Callable[[], None]], None],
        states: ShareCoordinator,
        configs: ShareGroupConfigs,
        find_log: Callable[[bytes, int], PartitionLog],
        slices: SliceRunner,
        queues: DeadLetterQueues,
        create_lost_state: Callable[[SharePartitionKey], bool],
    ) -> None:
        """`find_log` returns the log of a topic id and partition, or raises ApiError.

        `create_lost_state` returns whether a state should have been there, and now is.

        `after_arrivals` calls its argument when the requests that have arrived are served.
        """
        self.sessions = ShareSessions(configs.broker.max_share_sessions)
        self.configs = configs
        self.alarm = Alarm(loop, clock, after_arrivals)
        self._clock = clock
        self._states = states
        self._find_log = find_log
        self._slices = slices
        self._create_lost_state = create_lost_state
        # The partitions of sessions that have ended, of which nothing has been released yet.
        self._unreleased: dict[SessionKey, list[Place]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._led: dict[SharePartitionKey, LedPartition] = {}
        self._warn_again_ms = 0
        self._keys_to_end: list[SharePartitionKey] = []
        self._lock_ends = KeyedDeadlines(self.alarm.deadlines, self._locks_ended)
        self._archiving = Archiving(queues, slices, self._archive, self._archived, self.is_open)

    # -- share-partitions --------------------------------------------------------------------------

    def find(self, key: SharePartitionKey) -> LedPartition | None:
        """Return a share-partition that is open; None if it is not. Raises ApiError: no log."""
        log = self._find_log(key.topic_id, key.partition)
        led = self._led.get(key)
        is_current = led is not None and led.log is log and led.leader_epoch == log.leader_epoch
        return led if is_current else None

    def open(self, key: SharePartitionKey, step: Step = no_step) -> LedPartition:
        """Return a share-partition; its stored state is read at first. Raises as LedPartition."""
        try:
            return self._open(key, step)
        except ApiError as error:
            if error.code is ErrorCode.COORDINATOR_NOT_AVAILABLE:  # clients are not told
                self._warn(key, error)
            raise

    def _open(self, key: SharePartitionKey, step: Step) -> LedPartition:
        for each_step in (step, no_step):
            led = self.find(key)
            if led is not None:
                return led
            self._close(key)
            try:
                opened = self._read(key, each_step)
            except NoStateError:
                if not self._is_created_again(key):
                    raise
                opened = self._read(key, each_step)
            letters = unfinished(opened.partition, opened.max_delivery_count, each_step)
            if key not in self._led and opened.is_as_stored:  # else something came in a step
                break
        self._led[key] = opened
        self._archiving.add(opened, letters)
        return opened

    def _warn(self, key: SharePartitionKey, error: ApiError) -> None:
        """Log that a stored state cannot be read, but not at each attempt."""
        timer_ms = self._clock().timer_ms
        if timer_ms >= self._warn_again_ms:
            self._warn_again_ms = timer_ms + WARN_EVERY_MS
            logger.warning("the stored state of %s cannot be read now: %s", key.text, error)

    def _read(self, key: SharePartitionKey, step: Step) -> LedPartition:
        log = self._find_log(key.topic_id, key.partition)
        return LedPartition(key, log, self._states, self.configs, self._clock().wall_ms, step)

    def _is_created_again(self, key: SharePartitionKey) -> bool:
        try:
            return self._create_lost_state(key)
        except ApiError as error:
            raise state_error(error) from error

    def is_open(self, led: LedPartition) -> bool:
        """Whether a share-partition has not been closed."""
        return self._led.get(led.key) is led

    def in_flight_count(self, key: SharePartitionKey) -> int:
        """The number of records in flight; 0 if the share-partition is not open."""
        led = self._led.get(key)
        return 0 if led is None else led.partition.in_flight_count

    def batches_to_open(self, key: SharePartitionKey) -> int:
        """How many stored batches are read when the share-partition is opened; 0 if it is open."""
        if key in self._led:
            return 0
        try:
            return len(self._states.read_summary(key).batches)
        except ApiError:  # it cannot be opened
            return 0

    def _close(self, key: SharePartitionKey) -> None:
        led = self._led.pop(key, None)
        if led is not None:
            self._lock_ends.cancel(key)
            led.notify()

    def leaders_moved(self) -> None:
        """Close the share-partitions that have, or may have, another leader.

        Kafka: SharePartitionManager.ShareGroupListener, onBecomingFollower.
        """
        for key in list(self._led):
            try:
                is_current = self.find(key) is not None
            except ApiError:  # another node leads it
                is_current = False
            if not is_current:
                self._close(key)

    def topics_deleted(self, topic_ids: Container[bytes]) -> None:
        """Close the share-partitions of topics that have been deleted."""
        for key in [key for key in self._led if key.topic_id in topic_ids]:
            self._close(key)

    def state_reset(self, key: SharePartitionKey) -> None:
        """Close a share-partition whose stored state was deleted or created again.

        In the same turn: an acknowledgement would write the old start offset over the new one.
        """
        self._close(key)

    async def finish_archiving(self) -> None:
        """Wait for what is being written to queues, because the broker stops."""
        await self._archiving.finish()

    def close(self) -> None:
        """Close all, because the broker stops."""
        for task in self._tasks:
            task.cancel()
        self._archiving.close()
        self.alarm.cancel()
        self._led.clear()

    # -- locks -------------------------------------------------------------------------------------

    def lock_duration_ms(self, group_id: str) -> int:
        """How long an acquired record is locked."""
        return self.configs.record_lock_duration_ms(group_id)

    def locked(self, key: SharePartitionKey, until_ms: int) -> None:
        """Records have been locked until `until_ms` (timer time).

        Other locks may end before, or after, because the group's duration has changed since.
        """
        self._lock_ends.schedule_no_later(key, until_ms)
        self.alarm.set(self._clock())

    def _locks_ended(self, key: SharePartitionKey, now: Now) -> int | None:
        """Release the records whose locks have ended. Returns when the next lock ends.

        Where many records are in flight, this is done in slices.
        """
        led = self._led[key]
        if led.partition.in_flight_count <= MAX_IN_FLIGHT_AT_ONCE:
            return self._end_locks(led, now, no_step)
        self._keys_to_end.append(key)
        if len(self._keys_to_end) == 1:
            self._run_in_slices(self._end_locks_later)
        return None

    def _end_locks_later(self, step: Step) -> None:
        keys, self._keys_to_end = self._keys_to_end, []
        for key in stepping(keys, step):
            led = self._led.get(key)
            if led is None:
                continue
            try:
                until_ms = self._end_locks(led, self._clock(), step)
            except Exception:  # a fault in odradek: the other locks end, and this is tried again
                logger.exception("locks of %s have not ended", key.text)
                until_ms = self._clock().timer_ms + RETRY_FAILED_MS
            if until_ms is not None:
                self.locked(key, until_ms)

    def _end_locks(self, led: LedPartition, now: Now, step: Step) -> int | None:
        def expired(each_step: Step) -> Changes:
            return expire(led.partition, now.timer_ms, self._rules(led), each_step)

        self._store_and_apply(led, expired, step)
        next_ms = next_lock_end_ms(led.partition, step)
        return next_ms if self.is_open(led) else None

    def _run_in_slices(self, work: Callable[[Step], None]) -> None:
        async def in_slices(slices: Slices) -> None:
            work(slices.step)

        task = self._slices.run(in_slices)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _store_and_apply(
        self,
        led: LedPartition,
        decide: Callable[[Step], Changes],
        step: Step,
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> None:
        """Change records that no member has, or that none has any more.

        They are changed also if that cannot be stored: then they are locked nowhere, or are written
        to a queue again after a restart. `is_wanted` is asked before each decision.
        """
        for each_step in (step, step, no_step):
            if not (self.is_open(led) and is_wanted()):
                return  # the stored state still has them, for when it is opened again
            changes = decide(each_step)
            if not changes.is_current:
                continue
            try:
                if not self._store(led, changes, each_step):
                    continue
            except ApiError as error:
                logger.warning("changed records of %s are not stored: %s", led.key.text, error)
            self._apply(led, changes)
            return

    def _apply(self, led: LedPartition, changes: Changes) -> None:
        """Apply changes, and write the records that they give up to the group's queue."""
        if changes.apply():
            led.notify()
        self._archiving.add(led, changes.dead_letters)

    def _rules(self, led: LedPartition) -> DeliveryRules:
        has_queue = self._archiving.queues.has(led.key.group_id)
        return DeliveryRules(led.max_delivery_count, has_queue)

    # -- acknowledgements --------------------------------------------------------------------------

    def acknowledge(
        self,
        key: SharePartitionKey,
        member_id: str,
        acknowledgements: Sequence[Acknowledgement],
        step: Step = no_step,
    ) -> None:
        """Acknowledge records of a member. Nothing changes in a step.

        Raises ApiError: UNKNOWN_TOPIC_OR_PARTITION if the share-partition is not open,
        INVALID_RECORD_STATE, INVALID_REQUEST, or that the changes could not be stored.
        """
        for each_step in (step, step, no_step):
            decided = self._decide(key, member_id, acknowledgements, each_step)
            if decided is not None and self._store(*decided[:2], each_step):
                break
        else:
            error = ErrorCode.NOT_LEADER_OR_FOLLOWER
            raise ApiError(error, f"{key} was closed while acknowledgements were stored")
        led, changes, until_ms = decided
        self._apply(led, changes)
        if changes.renews:
            self.locked(key, until_ms)

    def _store(self, led: LedPartition, changes: Changes, step: Step) -> bool:
        """Store changes. Returns False if they are not current any more after a step."""

        def is_current() -> bool:
            return changes.is_current and self.is_open(led)

        try:
            return led.store(changes, self._clock().wall_ms, step, is_current)
        except ApiError as error:
            if not is_current():
                return False
            if error.code in STALE_STATE:
                self._close(led.key)
            raise

    def _decide(
        self,
        key: SharePartitionKey,
        member_id: str,
        acknowledgements: Sequence[Acknowledgement],
        step: Step,
    ) -> tuple[LedPartition, Changes, int] | None:
        """Decide about acknowledgements. Returns None if something has changed in a step.

        Returns also until when renewed locks last. Raises as `acknowledge`.
        """
        led = self._led.get(key)
        if led is None:
            text = f"nothing of {key.text} is in flight"
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
        may_renew = self.configs.may_renew(key.group_id)
        until_ms = self._clock().timer_ms + self.lock_duration_ms(key.group_id)
        call = AcknowledgeCall(member_id, self._rules(led), until_ms if may_renew else None)
        try:
            changes = acknowledge(led.partition, call, acknowledgements, step)
        except StaleDecisionError:
            return None
        return (led, changes, until_ms) if self.is_open(led) else None

    # -- dead letters ------------------------------------------------------------------------------

    def _archive(self, led: LedPartition, letters: Sequence[DeadLetters], step: Step) -> None:
        """Archive records that the queue of the group has got, or cannot get."""
        self._store_and_apply(led, partial(archive, led.partition, letters), step)

    def _archived(self, led: LedPartition) -> None:
        """Close a share-partition that was kept open for that only."""
        if self.is_open(led) and led.key.group_id not in self.sessions.groups():
            self._close(led.key)

    # -- sessions ----------------------------------------------------------------------------------

    def release_session(self, key: SessionKey) -> None:
        """End a session: the member's records become available again.

        Raises ApiError SHARE_SESSION_NOT_FOUND.
        """
        session = self.sessions.find(key)
        self.sessions.remove(key)
        self._ended([session], closes_groups=False)

    def _ended(self, sessions: Sequence[ShareSession], *, closes_groups: bool) -> None:
        """Release what members have acquired, and close the groups that have no session left."""
        for session in sessions:
            self._unreleased.setdefault(session.key, []).extend(session.partitions)
        keys = [session.key for session in sessions]

        def release_all(step: Step) -> None:
            for key in keys:
                self.finish_release(key, step)
            if closes_groups:
                self._close_unused(step)

        if self._are_few(sessions):
            release_all(no_step)
        else:
            self._run_in_slices(release_all)

    def _are_few(self, sessions: Sequence[ShareSession]) -> bool:
        """Whether these sessions can end in one turn."""
        count = sum(len(session.partitions) for session in sessions)
        if count > MAX_AT_ONCE or len(self._led) > MAX_LED_AT_ONCE:
            return False
        in_flight = sum(
            self.in_flight_count(SharePartitionKey(session.key.group_id, *place))
            for session in sessions
            for place in session.partitions
        )
        return in_flight <= MAX_IN_FLIGHT_AT_ONCE

    def is_releasing(self, group_id: str | None, member_id: str | None) -> bool:
        """Whether records of the member's sessions that have ended are not released yet."""
        return SessionKey(group_id or "", member_id or "") in self._unreleased

    def finish_release(self, key: SessionKey, step: Step) -> None:
        """Release what is left of the member's sessions that have ended.

        Another caller may do the same between two steps. When the first one returns, the member may
        acquire records again, and the other must not release these.
        """
        places = self._unreleased.get(key, [])
        while places:
            step()
            if places:  # else another caller has done the rest
                self._release(key, places, step)
        if self._unreleased.get(key) is places:
            del self._unreleased[key]

    def _release(self, key: SessionKey, places: list[Place], step: Step) -> None:
        """Release the records of the last place, and remove it."""
        place = places[-1]
        led = self._led.get(SharePartitionKey(key.group_id, *place))

        def is_left() -> bool:
            return bool(places) and places[-1] is place

        def released(each_step: Step) -> Changes:
            assert led is not None
            return release(led.partition, key.member_id, self._rules(led), each_step)

        try:
            if led is not None:
                self._store_and_apply(led, released, step, is_left)
        finally:  # after a fault in odradek, the locks end as those of others
            if is_left():
                places.pop()

    def _close_unused(self, step: Step) -> None:
        """Close the share-partitions of groups without sessions."""
        keys = list(self._led)
        for start in stepping(range(0, len(keys), CLOSED_AT_ONCE), step):
            groups = self.sessions.groups()
            for key in keys[start : start + CLOSED_AT_ONCE]:
                led = self._led.get(key)
                if led is None:  # closed in a step
                    continue
                if key.group_id not in groups and not self._archiving.is_busy(led):
                    self._close(key)

    def disconnected(self, connection: Session) -> None:
        """End the sessions of a connection that has closed.

        The share-partitions of groups without sessions are closed.
        """
        if not self.sessions.has_opened(connection):
            return
        self._ended(self.sessions.remove_connection(connection), closes_groups=True)
