"""Writes the records that groups give up to their dead-letter queues, and has them archived then.

This is done after the request that gave them up, in slices, and in order within a share-partition.
A range of records is archived as a whole, when all of it has been written. If the broker is killed
before, all of it is written when the share-partition is opened again. A broker that is stopped
waits for the batch that is being written, and archives the part of the range that has been.
(A DeadLetters is such a range of offsets; its records are read from the log when they are written.)
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

from odradek.broker.turns.slices import SliceRunner, Slices
from odradek.coordinator.runtime.steps import Step
from odradek.coordinator.share_partitions.dead_letters import DeadLetters

from .dead_letter_queues import DeadLetterQueues, QueueWriter, Source
from .led_partition import LedPartition

logger = logging.getLogger("odradek.shares")

# At most this many ranges of records change their state in one turn.
ARCHIVED_AT_ONCE = 500
# Between the attempts to archive records where one has shown a fault in odradek.
FIRST_DELAY_S = 1.0
LONGEST_DELAY_S = 60.0
# How long a stop of the broker waits for what is being written.
LONGEST_END_S = 5.0


class Archiving:
    """The records that wait to be written and archived, by share-partition."""

    def __init__(
        self,
        queues: DeadLetterQueues,
        slices: SliceRunner,
        archive: Callable[[LedPartition, Sequence[DeadLetters], Step], None],
        on_complete: Callable[[LedPartition], None],
        is_open: Callable[[LedPartition], bool],
    ) -> None:
        """`archive` archives records; `on_complete` is called when no more wait.

        `is_open`: whether a share-partition is not closed. Nothing more is written of one that is.
        """
        self.queues = queues
        self._slices = slices
        self._archive = archive
        self._on_complete = on_complete
        self._is_open = is_open
        self._waiting: dict[LedPartition, list[DeadLetters]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_ending = asyncio.Event()

    def add(self, led: LedPartition, letters: Sequence[DeadLetters]) -> None:
        """Write records to the queue, and archive them. They are stored as ARCHIVING."""
        if not letters or self._is_ending.is_set():
            return
        if led in self._waiting:
            self._waiting[led] += letters
            return
        self._waiting[led] = list(letters)
        task = self._slices.run(partial(self._run, led))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def is_busy(self, led: LedPartition) -> bool:
        """Whether records of a share-partition wait."""
        return led in self._waiting

    async def finish(self) -> None:
        """End, because the broker stops.

        What is being written to a queue is archived if that does not take long; else it is written
        again. Nothing else is begun.
        """
        self._is_ending.set()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=LONGEST_END_S)

    def close(self) -> None:
        """End at once."""
        self._is_ending.set()
        for task in self._tasks:
            task.cancel()

    def _goes_on(self, led: LedPartition) -> bool:
        """Whether more is written now. Else it is when the share-partition is opened again."""
        return self._is_open(led) and not self._is_ending.is_set()

    async def _pause(self, led: LedPartition, seconds: float) -> bool:
        """Wait, but not when the broker stops. Returns whether to go on then."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._is_ending.wait(), seconds)
        return self._goes_on(led)

    async def _run(self, led: LedPartition, slices: Slices) -> None:
        source = Source(led.key.group_id, led.key.partition, led.log)
        writer = QueueWriter(self.queues, source, partial(self._pause, led))
        waiting = self._waiting[led]
        count = 0  # of the first records in `waiting` that are written, and not archived yet
        try:
            while waiting and self._goes_on(led):
                first = waiting[0]._replace(first_offset=waiting[0].first_offset + count)
                count += await self._write(writer, [first, *waiting[1:]], slices.step)
                complete = 0
                while complete < len(waiting) and count >= waiting[complete].record_count:
                    count -= waiting[complete].record_count
                    complete += 1
                await self._archive_all(led, waiting[:complete], slices.step)
                del waiting[:complete]
            if count:  # so that it is not written again after the stop
                last_offset = waiting[0].first_offset + count - 1
                part = waiting[0]._replace(last_offset=last_offset)
                await self._archive_all(led, [part], slices.step)
        finally:
            del self._waiting[led]
        self._on_complete(led)

    async def _write(self, writer: QueueWriter, letters: Sequence[DeadLetters], step: Step) -> int:
        """Write some of the records. Returns how many are done with."""
        try:
            return await writer.write(letters, step)
        except Exception:  # a fault in odradek: without this the records would wait for ever
            logger.exception("records are not written to a dead-letter queue, and are archived")
            return sum(letter.record_count for letter in letters)

    async def _archive_all(
        self, led: LedPartition, letters: Sequence[DeadLetters], step: Step
    ) -> None:
        """Archive records. A fault in odradek is logged, and it is tried again some time later."""
        start, delay_s = 0, FIRST_DELAY_S
        while start < len(letters):
            some = letters[start : start + ARCHIVED_AT_ONCE]
            try:
                self._archive(led, some, step)
                start += len(some)
            except Exception:
                logger.exception(
                    "records of %s from offset %d on are not archived; they are in %d s",
                    led.key.text,
                    some[0].first_offset,
                    delay_s,
                )
                if not await self._pause(led, delay_s):
                    return
                delay_s = min(2 * delay_s, LONGEST_DELAY_S)
