"""The share coordinator: stores what share groups have delivered (KIP-932).

    request -> the shard of the share-partition -> a decision (share_state/) -> append, replay

Every request is answered at once. At intervals, states that were not written for long get a new
snapshot (a cold one), and the records before all newest snapshots are deleted from the logs. A
`step` is called again and again while a large record is encoded, so that others are served
(runtime/steps.py).

Kafka: ShareCoordinatorService.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from itertools import islice

from odradek.coordinator.runtime.alarm import Alarm
from odradek.coordinator.runtime.load_queue import LoadQueue
from odradek.coordinator.runtime.outcome import JournalRecord, Outcome
from odradek.coordinator.runtime.part_queue import PartQueue
from odradek.coordinator.runtime.record_codec import CoordinatorRecordCodec
from odradek.coordinator.runtime.shards import CoordinatorShards, Shard
from odradek.coordinator.runtime.steps import Step, no_step
from odradek.coordinator.runtime.timers import Deadline, Now
from odradek.protocol.errors import ApiError
from odradek.protocol.records.share_group_state import RECORD_TYPES
from odradek.storage.log import PartitionLog
from odradek.storage.topic_names import SHARE_GROUP_STATE_TOPIC

from .settings import ShareCoordinatorSettings
from .share_partition_key import SharePartitionKey
from .state import ShareState, StateWrite
from .table import PartitionCount, ShareStateTable

logger = logging.getLogger("odradek.shares")

# How many states of a shard are written in one turn of the event loop: each record takes 10 us.
STATES_PER_TURN = 200

ShareShard = Shard[ShareStateTable]


class ShareCoordinator:
    """The stored state of all share groups of this broker."""

    def __init__(
        self,
        settings: ShareCoordinatorSettings,
        *,
        loop: asyncio.AbstractEventLoop,
        after_arrivals: Callable[[Callable[[], None]], None],
        clock: Callable[[], Now],
        partition_count: PartitionCount,
    ) -> None:
        """`after_arrivals` calls its argument when the requests that have arrived are served."""
        self._settings = settings
        self._clock = clock
        self._partition_count = partition_count
        self.alarm = Alarm(loop, clock, after_arrivals)
        self.shards: CoordinatorShards[ShareStateTable] = CoordinatorShards(
            SHARE_GROUP_STATE_TOPIC,
            lambda _partition: ShareStateTable(partition_count, settings.updates_per_snapshot),
            CoordinatorRecordCodec(RECORD_TYPES),
            compression=settings.compression,
            logger=logger,
        )
        self._loads = LoadQueue(loop, self._on_shard_loaded)
        self._background_writes = PartQueue(loop.call_soon)
        self._cold = Deadline(self._write_cold_snapshots, None)
        self._prune = Deadline(self._prune_logs, None)

    # -- the topic ---------------------------------------------------------------------------------

    def open_topic(self, logs: Iterable[PartitionLog], partition_count: int) -> None:
        """Load the states from the topic's partitions. A partition without a log is not served."""
        for shard in self.shards.open_topic(logs, partition_count):
            self._on_shard_loaded(shard)
        now = self._clock()
        self._schedule(self._cold, self._settings.cold_snapshot_interval_ms, now)
        self._schedule(self._prune, self._settings.prune_interval_ms, now)
        self.alarm.set(now)

    def partition_online(self, log: PartitionLog) -> None:
        """Load the states of a partition whose log has become readable."""
        self._loads.add(self.shards.load_in_slices(log))

    def partition_offline(self, partition: int) -> None:
        """Stop serving the states of a partition whose log is offline."""
        self.shards.unavailable(partition)

    def close(self) -> None:
        """Stop serving."""
        self.alarm.cancel()
        self._cold.cancel()
        self._prune.cancel()
        self.shards.close()

    def _on_shard_loaded(self, shard: ShareShard) -> None:
        """Delete the states of topics that were deleted while the shard was not served."""
        topic_ids = {key.topic_id for key in shard.state.states}
        self._delete_topics(
            shard, {topic_id for topic_id in topic_ids if self._partition_count(topic_id) < 0}
        )

    # -- states ------------------------------------------------------------------------------------

    def initialize(
        self, key: SharePartitionKey, state_epoch: int, start_offset: int, now_ms: int
    ) -> None:
        """Create the state of a share-partition. Raises ApiError as ShareStateTable.initialize."""
        shard = self.shards.of(key.text)
        outcome = shard.state.initialize(key, state_epoch, start_offset, now_ms)
        shard.journal.commit(outcome, now_ms)

    def read(self, key: SharePartitionKey, leader_epoch: int, now_ms: int) -> ShareState:
        """Return the state to the leader of the partition; a new leader epoch is stored.

        Raises ApiError as ShareStateTable.read.
        """
        shard = self.shards.of(key.text)
        return shard.journal.commit(shard.state.read(key, leader_epoch, now_ms), now_ms)

    def write(
        self,
        key: SharePartitionKey,
        write: StateWrite,
        now_ms: int,
        step: Step = no_step,
        is_current: Callable[[], bool] = lambda: True,
    ) -> bool:
        """Store a change of the state. Returns whether it was stored.

        It is not stored if the stored state has changed during a step, or if `is_current`, which is
        called after the last step, returns False. Raises ApiError as ShareStateTable.write.
        """
        shard = self.shards.of(key.text)
        before = shard.state.states.get(key)
        outcome = shard.state.write(key, write, now_ms)
        prepared = None
        if step is not no_step:
            prepared = shard.journal.prepare(outcome, now_ms, step)
            if self.shards.of(key.text) is not shard or shard.state.states.get(key) is not before:
                return False
            if not is_current():
                return False
        shard.journal.commit(outcome, now_ms, prepared=prepared)
        return True

    def delete(self, key: SharePartitionKey, now_ms: int) -> None:
        """Delete the state, if there is one. Raises ApiError as ShareStateTable.delete."""
        shard = self.shards.of(key.text)
        shard.journal.commit(shard.state.delete(key), now_ms)

    def read_summary(self, key: SharePartitionKey) -> ShareState:
        """Return the state, or an empty one. Raises ApiError as ShareStateTable.summary."""
        return self.shards.of(key.text).state.summary(key)

    # -- in the background -------------------------------------------------------------------------

    def on_topics_deleted(self, topic_ids: Collection[bytes]) -> None:
        """Delete the states of topics that have been deleted."""
        for shard in self.shards.serving():
            self._delete_topics(shard, topic_ids)

    def _delete_topics(self, shard: ShareShard, topic_ids: Collection[bytes]) -> None:
        if topic_ids:
            record_of = partial(shard.state.tombstone_if_of, topic_ids=topic_ids)
            self._background_writes.add(self._write_all(shard, record_of))

    def _write_cold_snapshots(self, _subject: None, now: Now) -> None:
        interval_ms = self._settings.cold_snapshot_interval_ms
        self._schedule(self._cold, interval_ms, now)
        for shard in self.shards.serving():
            if not shard.state.are_all_cold:
                record_of = partial(
                    shard.state.cold_snapshot, now_ms=now.wall_ms, interval_ms=interval_ms
                )
                self._background_writes.add(self._write_all(shard, record_of))

    def _write_all(
        self, shard: ShareShard, record_of: Callable[[SharePartitionKey], JournalRecord | None]
    ) -> Iterator[None]:
        """Write the records of all states of a shard, STATES_PER_TURN at a time."""
        keys = iter(list(shard.state.states))
        while some := list(islice(keys, STATES_PER_TURN)):
            if shard not in self.shards.serving():
                return
            records = [record for record in map(record_of, some) if record is not None]
            self._commit(shard, Outcome(reply=None, records=tuple(records), atomic=False))
            yield

    def _commit(self, shard: ShareShard, outcome: Outcome[None]) -> None:
        """Write records that nobody waits for."""
        try:
            shard.journal.commit(outcome, self._clock().wall_ms)
        except ApiError as error:
            logger.warning("%s could not be written: %s", shard.journal.log.name, error)

    def _prune_logs(self, _subject: None, now: Now) -> None:
        self._schedule(self._prune, self._settings.prune_interval_ms, now)
        for shard in self.shards.serving():
            log = shard.journal.log
            offset = min(shard.state.redundant_before, log.high_watermark)
            try:
                log.increment_log_start_offset(offset)
            except ApiError as error:
                logger.warning("%s could not be pruned: %s", log.name, error)

    def _schedule(self, deadline: Deadline[None], after_ms: int, now: Now) -> None:
        self.alarm.deadlines.schedule(deadline, now.timer_ms + after_ms)
