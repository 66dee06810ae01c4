"""Deletes offsets that have expired, and offsets in topics that have been deleted.

No caller waits for this. If tombstones cannot be written, the next check makes those of expired
offsets again, and the next load of the shard those of deleted topics.

Kafka: GroupCoordinatorShard.cleanupGroupMetadata, GroupCoordinatorShard.onTopicsDeleted.
"""

import asyncio
import logging
from collections.abc import Callable, Container, Iterator, Sequence
from itertools import islice

from odradek.protocol.errors import ApiError

from .group_settings import GroupSettings
from .group_shards import GroupShard, GroupShards
from .offset_expiry import expired_records
from .outcome import JournalRecord, Outcome
from .timers import Deadline, DeadlineQueue, Now

logger = logging.getLogger("odradek.groups")

# After a shard is loaded, its groups are checked for offsets of deleted topics: this many in one
# turn of the loop.
GROUPS_PER_TURN = 10


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

    # -- expired offsets ---------------------------------------------------------------------------

    def start(self, now: Now) -> None:
        """Check all offsets, each time that the interval between two checks has passed."""
        interval_ms = self._settings.offsets_retention_check_interval_ms
        self._deadlines.schedule(self._next_check, now.timer_ms + interval_ms)

    def stop(self) -> None:
        """Cancel the next check."""
        self._next_check.cancel()

    def _check(self, _subject: None, now: Now) -> None:
        self.start(now)
        self._expire(self._shards.serving())

    def _expire(self, shards: Iterator[GroupShard]) -> None:
        """Delete the expired offsets of all groups, one shard in each turn of the loop."""
        shard = next(shards, None)
        if shard is not None:
            self._loop.call_soon(self._expire, shards)  # first: a failure loses no other shard
            now = self._clock()
            retention_ms = self._settings.offsets_retention_ms
            self._delete(shard, expired_records(shard.state, now.wall_ms, retention_ms), now)

    # -- deleted topics ----------------------------------------------------------------------------

    def on_topics_deleted(self, deleted: Sequence[tuple[str, bytes]]) -> None:
        """Delete the offsets in topics (name, id) that have just been deleted."""
        now = self._clock()
        for shard in self._shards.serving():
            self._delete(shard, shard.state.offsets.tombstones_of_topics(deleted), now)

    def delete_of_missing_topics(self, shard: GroupShard) -> None:
        """Delete the offsets in topics that no longer exist.

        Such a topic was deleted while the broker was stopped or the shard's log was offline.
        """
        self._delete_of_missing_topics(shard, shard.state.offsets.group_ids)

    def delete_of_missing_topics_in_slices(self, shard: GroupShard) -> None:
        """The same, GROUPS_PER_TURN groups in each turn of the loop."""
        self._loop.call_soon(self._delete_slice, shard, iter(shard.state.offsets.group_ids))

    def _delete_slice(self, shard: GroupShard, group_ids: Iterator[str]) -> None:
        some = list(islice(group_ids, GROUPS_PER_TURN))
        if some and shard in self._shards.serving():
            self._delete_of_missing_topics(shard, some)
            self._loop.call_soon(self._delete_slice, shard, group_ids)

    def _delete_of_missing_topics(self, shard: GroupShard, group_ids: Sequence[str]) -> None:
        found = shard.state.offsets.tombstones_of_missing_topics(group_ids, self._topic_ids)
        self._delete(shard, found, self._clock())

    @staticmethod
    def _delete(shard: GroupShard, tombstones: list[JournalRecord], now: Now) -> None:
        outcome = Outcome(reply=None, records=tuple(tombstones), atomic=False)
        try:
            shard.journal.commit(outcome, now.wall_ms)
        except ApiError as error:
            logger.warning("offsets could not be deleted: %s", error)
