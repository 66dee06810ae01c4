"""All share-partitions that this broker leads.

A share-partition is opened by the first ShareFetch of it, and closed when the group has no session
left, when its log is deleted or goes offline, or when its stored state has a new life. What is not
stored, the locks, is lost then: the records are delivered again.

Kafka: SharePartitionManager, SharePartitionCache.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Container, Iterable

from odradek.broker.requests.session import Session
from odradek.coordinator.alarm import Alarm
from odradek.coordinator.share_coordinator import ShareCoordinator
from odradek.coordinator.share_groups.group_configs import ShareGroupConfigs
from odradek.coordinator.share_partition_key import SharePartitionKey
from odradek.coordinator.share_partitions.changes import (
    AcknowledgeCall,
    Acknowledgement,
    Changes,
    acknowledge,
    expire,
    next_lock_end_ms,
    release,
)
from odradek.coordinator.timers import KeyedDeadlines, Now
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.storage.log import PartitionLog

from .led_partition import STALE_STATE, LedPartition
from .sessions import SessionKey, ShareSession, ShareSessions

logger = logging.getLogger("odradek.shares")


class Shares:
    """The share-partitions by key, and the sessions of the members that read them."""

    def __init__(
        self,
        *,
        loop: asyncio.AbstractEventLoop,
        clock: Callable[[], Now],
        after_arrivals: Callable[[Callable[[], None]], None],
        states: ShareCoordinator,
        configs: ShareGroupConfigs,
        find_log: Callable[[bytes, int], PartitionLog],
    ) -> None:
        """`find_log` returns the log of a topic id and partition, or raises ApiError."""
        self.sessions = ShareSessions(configs.broker.max_share_sessions)
        self.configs = configs
        self.alarm = Alarm(loop, clock, after_arrivals)
        self._clock = clock
        self._states = states
        self._find_log = find_log
        self._led: dict[SharePartitionKey, LedPartition] = {}
        self._lock_ends = KeyedDeadlines(self.alarm.deadlines, self._locks_ended)

    # -- share-partitions --------------------------------------------------------------------------

    def find(self, key: SharePartitionKey) -> LedPartition | None:
        """Return a share-partition that is open; None if it is not. Raises ApiError: no log."""
        log = self._find_log(key.topic_id, key.partition)
        led = self._led.get(key)
        is_current = led is not None and led.log is log and led.leader_epoch == log.leader_epoch
        return led if is_current else None

    def open(self, key: SharePartitionKey) -> LedPartition:
        """Return a share-partition; its stored state is read at first. Raises as LedPartition."""
        led = self.find(key)
        if led is not None:
            return led
        self._close(key)
        log = self._find_log(key.topic_id, key.partition)
        opened = LedPartition(key, log, self._states, self.configs, self._clock().wall_ms)
        self._led[key] = opened
        return opened

    def _close(self, key: SharePartitionKey) -> None:
        led = self._led.pop(key, None)
        if led is not None:
            self._lock_ends.cancel(key)
            led.notify()

    def topics_deleted(self, topic_ids: Container[bytes]) -> None:
        """Close the share-partitions of topics that have been deleted."""
        for key in [key for key in self._led if key.topic_id in topic_ids]:
            self._close(key)

    def close(self) -> None:
        """Close all, because the broker stops."""
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
        """Release the records whose locks have ended. Returns when the next lock ends."""
        led = self._led[key]
        changes = expire(led.partition, now.timer_ms, led.max_delivery_count)
        self._store_and_apply(led, changes, now)
        return next_lock_end_ms(led.partition)

    def _store_and_apply(self, led: LedPartition, changes: Changes, now: Now) -> None:
        """Release records, also if that cannot be stored: then they are locked nowhere."""
        try:
            led.store(changes, now.wall_ms)
        except ApiError as error:
            logger.warning("released records of %s are not stored: %s", led.key.text, error)
        if changes.apply():
            led.notify()

    # -- acknowledgements --------------------------------------------------------------------------

    def acknowledge(
        self, key: SharePartitionKey, member_id: str, acknowledgements: Iterable[Acknowledgement]
    ) -> None:
        """Acknowledge records of a member.

        Raises ApiError: UNKNOWN_TOPIC_OR_PARTITION if the share-partition is not open,
        INVALID_RECORD_STATE, INVALID_REQUEST, or that the changes could not be stored.
        """
        led = self._led.get(key)
        if led is None:
            text = f"nothing of {key.text} is in flight"
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
        now = self._clock()
        may_renew = self.configs.may_renew(key.group_id)
        until_ms = now.timer_ms + self.lock_duration_ms(key.group_id)
        call = AcknowledgeCall(member_id, led.max_delivery_count, until_ms if may_renew else None)
        changes = acknowledge(led.partition, call, acknowledgements)
        try:
            led.store(changes, now.wall_ms)
        except ApiError as error:
            if error.code in STALE_STATE:
                self._close(key)
            raise
        if changes.apply():
            led.notify()
        if changes.renews:
            self.locked(key, until_ms)

    # -- sessions ----------------------------------------------------------------------------------

    def release_session(self, key: SessionKey) -> None:
        """End a session: the member's records become available again.

        Raises ApiError SHARE_SESSION_NOT_FOUND.
        """
        session = self.sessions.find(key)
        self.sessions.remove(key)
        self._release(session)

    def _release(self, session: ShareSession) -> None:
        now = self._clock()
        group_id, member_id = session.key
        for place in session.partitions:
            led = self._led.get(SharePartitionKey(group_id, *place))
            if led is not None:
                changes = release(led.partition, member_id, led.max_delivery_count)
                self._store_and_apply(led, changes, now)

    def disconnected(self, connection: Session) -> None:
        """End the sessions of a connection that has closed.

        The share-partitions of groups without sessions are closed.
        """
        if not self.sessions.has_opened(connection):
            return
        for session in self.sessions.remove_connection(connection):
            self._release(session)
        groups = self.sessions.groups()
        for key in [key for key in self._led if key.group_id not in groups]:
            self._close(key)
