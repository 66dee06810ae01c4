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

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import NamedTuple, TypeVar

from odradek.coordinator.runtime.steps import Step
from odradek.coordinator.share_groups.group_configs import ShareGroupConfigs
from odradek.coordinator.share_partitions.dead_letters import DeadLetters
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.growing_batch import GrowingBatch
from odradek.protocol.record import Record, RecordHeaders
from odradek.storage.log import PartitionLog

from .originals import NOTHING, Original, Originals, OriginalsReader
from .queue_appends import QueueAppends
from .queue_topics import QueueTopics

logger = logging.getLogger("odradek.shares")

ATTEMPTS = 5
FIRST_DELAY_S = 1.0
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

T = TypeVar("T")
Sleep = Callable[[float], Awaitable[object]]


@dataclass(slots=True)
class QueueCounts:
    """What has been written to one queue. A write is a batch. Kafka: ShareGroupMetrics."""

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
        appends: QueueAppends,
        *,
        is_enabled: Callable[[], bool],
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        """`is_enabled`: whether the metadata allows queues."""
        self.counts: dict[str, QueueCounts] = {}  # by group
        self.configs = configs
        self.topics = topics
        self.originals = originals
        self.appends = appends
        self.sleep = sleep
        self._is_enabled = is_enabled

    def has(self, group_id: str) -> bool:
        """Whether the records that a group gives up go to a queue."""
        return self._is_enabled() and bool(self.configs.dead_letter_queue(group_id))


class Source(NamedTuple):
    """Whose records are given up."""

    group_id: str
    partition: int
    log: PartitionLog


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

    def __init__(self, queues: DeadLetterQueues, source: Source) -> None:
        self._queues = queues
        self._source = source
        self._window = Originals(0)
        self._of_all: RecordHeaders = (
            ("__dlq.errors.topic", source.log.topic.encode()),
            ("__dlq.errors.partition", b"%d" % source.partition),
        )

    async def write(self, letters: Sequence[DeadLetters], step: Step) -> int:
        """Write a batch of the first of these records.

        Returns how many are done with: written, or given up because they cannot be.
        """
        group_id = self._source.group_id
        total = sum(each.record_count for each in letters)
        if not self._queues.configs.broker.writes_queues:
            logger.warning(
                "%s are not written: no class writes dead-letter queues",
                self._text(letters, total),
            )
            return total
        try:
            topic = await self._patiently(partial(self._queues.topics.find, group_id))
        except ApiError as error:
            self._give_up(letters, total, error)
            return total
        batch = await self._batch(letters, topic.max_message_bytes, step)
        count = batch.record_count
        counts = self._queues.counts.setdefault(group_id, QueueCounts())
        counts.writes += 1
        try:
            await self._patiently(partial(self._append, batch.build()))
        except ApiError as error:
            counts.failed_writes += 1
            self._give_up(letters, count, error)
        else:
            counts.records += count
        return count

    async def _append(self, batch: bytearray) -> None:
        """Append a batch to the queue as it is now. Raises ApiError."""
        topic = await self._queues.topics.find(self._source.group_id)
        partition = self._source.partition % topic.partition_count
        await self._queues.appends.append(topic.name, partition, batch)

    async def _patiently(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Do something in several attempts if need be. Raises ApiError."""
        delay_s = FIRST_DELAY_S
        for attempts_left in reversed(range(ATTEMPTS)):
            try:
                return await attempt()
            except ApiError as error:
                if error.code not in PASSING or not attempts_left:
                    raise
            await self._queues.sleep(delay_s)
            delay_s *= 2
        raise AssertionError("the last attempt returns or raises")

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

    def _give_up(self, letters: Sequence[DeadLetters], count: int, error: ApiError) -> None:
        logger.error(
            "%s cannot be written to the dead-letter queue: %s",
            self._text(letters, count),
            error.message,
        )

    def _text(self, letters: Sequence[DeadLetters], count: int) -> str:
        records = "1 record" if count == 1 else f"{count} records"
        return (
            f"{records} that group {self._source.group_id} has given up in "
            f"{self._source.log.name}, from offset {letters[0].first_offset} on,"
        )
