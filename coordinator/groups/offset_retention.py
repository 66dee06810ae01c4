"""Deletes offsets that have expired, and offsets in topics that have been deleted.

No caller waits for this. If tombstones cannot be written, the next check makes those of expired
offsets again, and the next load of the shard those of deleted topics.

Kafka: GroupCoordinatorShard.cleanupGroupMetadata, GroupCoordinatorShard.onTopicsDeleted.
"""

import asyncio
import logging
from collections.abc import Callable, Container, Iterator, Sequence

from odradek.coordinator.any_group.group_settings import GroupSettings
from odradek.coordinator.any_group.offsets import in_parts
from odradek.coordinator.runtime.outcome import JournalRecord, Outcome
from odradek.coordinator.runtime.part_queue import PartQueue
from odradek.coordinator.runtime.timers import Deadline, DeadlineQueue, Now
from odradek.protocol.errors import ApiError

from .group_shards import GroupShard, GroupShards
from .offset_expiry import expired_in_parts

logger = logging.getLogger("odradek.groups")


class OffsetRetention:
    """How long the offsets of all groups are kept."""

    def __init__(
        self,
        settings: GroupSettings,
        *,
        shards: GroupShards,
        deadlines: DeadlineQueue,
        loop: asyncio.AbstractEventLoop,
        clock: Callable[[], Now],
        topic_ids: Container[bytes],
    ) -> None:
        """`topic_ids`: the ids of the topics that exist now, whenever it is asked."""
        self._settings = settings
        self._shards = shards
        self._deadlines = deadlines
        self._loop = loop
        self._clock = clock
        self._topic_ids = topic_ids
        self._next_check = Deadline(self._check, None)
        self._deletions = PartQueue(loop.call_soon)
        self._in_check: set[GroupShard] = set()

    # -- expired offsets ---------------------------------------------------------------------------

    def start(self, now: Now) -> None:
        """Check all offsets, each time that the interval between two checks has passed."""
        interval_ms = self._settings.offsets_retention_check_interval_ms
        self._deadlines.schedule(self._next_check, now.timer_ms + interval_ms)

    def stop(self) -> None:
        """Cancel the next check."""
        self._next_check.cancel()

    def _check(self, _subject: None, now: Now) -> None:
        """Check the shards whose last check has ended: it may take longer than the interval."""
        self.start(now)
        for shard in self._shards.serving():
            if shard not in self._in_check:
                self._in_check.add(shard)
                self._deletions.add(self._checked(shard, now.wall_ms))

    def _checked(self, shard: GroupShard, now_ms: int) -> Iterator[None]:
        parts = expired_in_parts(shard.state, now_ms, self._settings.offsets_retention_ms)
        try:
            yield from self._deleted(shard, parts)
        finally:
            self._in_check.remove(shard)

    # -- deleted topics ----------------------------------------------------------------------------

    def on_topics_deleted(self, deleted: Sequence[tuple[str, bytes]]) -> None:
        """Delete the offsets in topics (name, id) that have just been deleted."""
        for shard in self._shards.serving():
            before = shard.journal.log.log_end_offset
            self._delete_in_parts(shard, in_parts(shard.state.offsets.in_topics(deleted, before)))

    def delete_of_missing_topics(self, shard: GroupShard) -> None:
        """Delete the offsets in topics that no longer exist.

        Such a topic was deleted while the broker was stopped or the shard's log was offline.
        """
        for part in in_parts(shard.state.offsets.in_missing_topics(self._topic_ids)):
            self._delete(shard, part)

    def delete_of_missing_topics_in_slices(self, shard: GroupShard) -> None:
        """The same, a part in each turn of the loop."""
        found = shard.state.offsets.in_missing_topics(self._topic_ids)
        self._loop.call_soon(self._delete_in_parts, shard, in_parts(found))

    # -- tombstones --------------------------------------------------------------------------------

    def _delete_in_parts(self, shard: GroupShard, parts: Iterator[list[JournalRecord]]) -> None:
        """Write a part in each turn of the loop, in turn with those of other deletions."""
        self._deletions.add(self._deleted(shard, parts))

    def _deleted(self, shard: GroupShard, parts: Iterator[list[JournalRecord]]) -> Iterator[None]:
        for part in parts:
            if shard not in self._shards.serving():
                return
            self._delete(shard, part)
            yield

    def _delete(self, shard: GroupShard, tombstones: list[JournalRecord]) -> None:
        outcome = Outcome(reply=None, records=tuple(tombstones), atomic=False)
        try:
            shard.journal.commit(outcome, self._clock().wall_ms)
        except ApiError as error:
            logger.warning("offsets could not be deleted: %s", error)
