"""The dead-letter queues of share groups (KIP-1191): topics that get the records a group gives up.

A record of a queue has headers that say which record was given up, and why. If the group wants it,
it has the record's key and value, too. Its timestamp is the time at which it is written.

    __dlq.errors.topic, .partition, .offset   which record
    __dlq.errors.group, .delivery.count       which group gave it up, after how many deliveries
    __dlq.errors.message                      why

Records of partition 7 are written to partition 7 of the queue, or to the remainder if it has fewer.
A queue that cannot be written for the moment (its log is offline, its disk full) is tried a few
times. Records that cannot be written are archived without, as in Kafka, and the log has a line.

Kafka: ShareGroupDLQStateManager.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from odradek.broker.maintenance.own_appends import OwnAppends
from odradek.coordinator.runtime.steps import Step
from odradek.coordinator.share_groups.group_configs import ShareGroupConfigs
from odradek.coordinator.share_partitions.dead_letters import DeadLetters
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.growing_batch import GrowingBatch
from odradek.protocol.record import Record, RecordHeaders
from odradek.storage.log import PartitionLog

from .originals import NOTHING, Original, Originals, OriginalsReader
from .queue_topics import QueueTopics
from .refusals import Refusal, Refusals

# The delays before the attempts to write after the first one.
DELAYS_S = (1.0, 2.0, 4.0, 8.0)
# A larger batch would take more than a turn, also where the topic allows it. It is Kafka's default
# of max.message.bytes.
LARGEST_BATCH_BYTES = 1_048_588
# Records so near to each other are read from the log together.
NEAR = 100
# Errors of a partition that may be served again in a few seconds.
PASSING = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)

# Waits for this many seconds. Returns whether there is to be another attempt.
Pause = Callable[[float], Awaitable[bool]]


@dataclass(slots=True)
class QueueCounts:
    """What a group has written to its queue. A write is an attempt. Kafka: ShareGroupMetrics."""

    records: int = 0
    writes: int = 0
    failed_writes: int = 0


class DeadLetterQueues:
    """The queues of all groups."""

    def __init__(
        self,
        configs: ShareGroupConfigs,
        topics: QueueTopics,
        originals: OriginalsReader,
        appends: OwnAppends,
        *,
        is_enabled: Callable[[], bool],
    ) -> None:
        """`is_enabled`: whether the metadata allows queues."""
        self.counts: dict[str, QueueCounts] = {}  # by group
        self.refusals = Refusals()
        self.configs = configs
        self.topics = topics
        self.originals = originals
        self.appends = appends
        self._is_enabled = is_enabled

    def has(self, group_id: str) -> bool:
        """Whether the records that a group gives up go to a queue."""
        return self._is_enabled() and bool(self.configs.dead_letter_queue(group_id))

    def forget(self, group_id: str) -> None:
        """The group has been deleted."""
        self.counts.pop(group_id, None)
        self.refusals.forget(group_id)


class Source(NamedTuple):
    """Whose records are given up."""

    group_id: str
    partition: int
    log: PartitionLog


@dataclass(slots=True)
class Attempt:
    """What an attempt to write deals with: all records, until a batch of some has been made."""

    record_count: int
    counts: QueueCounts | None = None


def end_of_group(letters: Sequence[DeadLetters], index: int) -> int:
    """The last offset of the letters from an index on that can be read at once."""
    last_offset = letters[index].last_offset
    for each in islice(letters, index + 1, None):
        if not 0 < each.first_offset - last_offset <= NEAR:
            break
        last_offset = each.last_offset
    return last_offset


class QueueWriter:
    """Writes records that a group has given up in one partition."""

    def __init__(self, queues: DeadLetterQueues, source: Source, pause: Pause) -> None:
        self._queues = queues
        self._source = source
        self._pause = pause
        self._window = Originals(0)
        self._of_all: RecordHeaders = (
            ("__dlq.errors.topic", source.log.topic.encode()),
            ("__dlq.errors.partition", b"%d" % source.partition),
        )

    async def write(self, letters: Sequence[DeadLetters], step: Step) -> int:
        """Write a batch of the first of these records.

        Returns how many are done with: written, or given up because they cannot be. None are if it
        is to be tried again, but not now.
        """
        delays_s = iter(DELAYS_S)
        while True:
            attempt = Attempt(sum(each.record_count for each in letters))
            try:
                await self._attempt(attempt, letters, step)
                return attempt.record_count
            except ApiError as error:
                delay_s = next(delays_s, None) if error.code in PASSING else None
                if delay_s is None:
                    self._give_up(attempt, letters, error)
                    return attempt.record_count
            if not await self._pause(delay_s):
                return 0

    async def _attempt(self, attempt: Attempt, letters: Sequence[DeadLetters], step: Step) -> None:
        """Write a batch to the queue as it is now. Raises ApiError.

        As in Kafka, the batch is made again, because the topic may take less than before.
        """
        queues, source = self._queues, self._source
        if not queues.configs.broker.writes_queues:
            raise ApiError(ErrorCode.INVALID_CONFIG, "no class writes dead-letter queues")
        topic = await queues.topics.find(source.group_id)
        batch = await self._batch(letters, topic.max_message_bytes, step)
        attempt.record_count = batch.record_count
        attempt.counts = counts = queues.counts.setdefault(source.group_id, QueueCounts())
        counts.writes += 1
        partition = source.partition % topic.partition_count
        await queues.appends.append(topic.name, partition, batch.build())
        counts.records += batch.record_count
        queues.refusals.written(source.group_id)

    async def _batch(
        self, letters: Sequence[DeadLetters], max_bytes: int, step: Step
    ) -> GrowingBatch:
        """Make a batch of the first records, as many as fit.

        As in Kafka, the records that were copied into it must have fitted, too.
        """
        batch_bytes = min(max_bytes, LARGEST_BATCH_BYTES)
        batch = GrowingBatch(batch_bytes)
        copies = self._queues.configs.copies_dead_letters(self._source.group_id)
        for index, each in enumerate(letters):
            copied_bytes = 0
            for offset in range(each.first_offset, each.last_offset + 1):
                step()
                if copies and not self._window.covers(offset):
                    rest = each._replace(first_offset=offset)
                    self._window = await self._queues.originals.read(
                        self._source.log, rest, end_of_group(letters, index), max_bytes, step
                    )
                original = self._window.of(offset) if copies else NOTHING
                copied_bytes += original.size_bytes
                if copied_bytes > batch_bytes and offset != each.first_offset:
                    return batch
                if not batch.add(self._record(each, offset, original)):
                    return batch
        return batch

    def _record(self, letters: DeadLetters, offset: int, original: Original) -> Record:
        headers = (
            *self._of_all,
            ("__dlq.errors.offset", b"%d" % offset),
            ("__dlq.errors.group", self._source.group_id.encode()),
            ("__dlq.errors.delivery.count", b"%d" % letters.delivery_count),
            ("__dlq.errors.message", letters.cause.encode()),
        )
        now_ms = self._queues.appends.now_ms()
        return Record(original.key, original.value, now_ms, headers)

    def _give_up(self, attempt: Attempt, letters: Sequence[DeadLetters], error: ApiError) -> None:
        if attempt.counts is not None:
            attempt.counts.failed_writes += 1
        self._queues.refusals.log(
            Refusal(
                self._source.group_id,
                self._source.log.name,
                letters[0].first_offset,
                attempt.record_count,
            ),
            error,
        )
