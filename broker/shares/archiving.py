"""Writes the records that groups give up to their dead-letter queues, and has them archived then.

This is done after the request that gave them up, in slices, and in order within a share-partition.
A range of records is archived as a whole, when all of it has been written. If the broker stops
before, all of it is written when the share-partition is opened again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial

from odradek.broker.turns.slices import SliceRunner, Slices
from odradek.coordinator.runtime.steps import Step
from odradek.coordinator.share_partitions.dead_letters import DeadLetters

from .dead_letter_queues import DeadLetterQueues, QueueWriter, Source
from .led_partition import LedPartition

logger = logging.getLogger("odradek.shares")

# So many ranges of records change their state in one turn.
ARCHIVED_AT_ONCE = 500


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
        """`archive` archives records; `on_complete` is called when no more wait."""
        self.queues = queues
        self._slices = slices
        self._archive = archive
        self._on_complete = on_complete
        self._is_open = is_open
        self._waiting: dict[LedPartition, list[DeadLetters]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def add(self, led: LedPartition, letters: Sequence[DeadLetters]) -> None:
        """Write records to the queue, and archive them. They are stored as ARCHIVING."""
        if not letters:
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

    def close(self) -> None:
        """End, because the broker stops."""
        for task in self._tasks:
            task.cancel()

    async def _run(self, led: LedPartition, slices: Slices) -> None:
        writer = QueueWriter(self.queues, Source(led.key.group_id, led.key.partition, led.log))
        waiting = self._waiting[led]
        count = 0  # of the first records in `waiting`, which are done with
        try:
            while waiting and self._is_open(led):  # else it is done when that is opened again
                first = waiting[0]._replace(first_offset=waiting[0].first_offset + count)
                count += await self._write(writer, [first, *waiting[1:]], slices.step)
                complete = 0
                while complete < len(waiting) and count >= waiting[complete].record_count:
                    count -= waiting[complete].record_count
                    complete += 1
                for start in range(0, complete, ARCHIVED_AT_ONCE):
                    some = waiting[start : min(start + ARCHIVED_AT_ONCE, complete)]
                    self._archive(led, some, slices.step)
                del waiting[:complete]
        finally:
            del self._waiting[led]
        self._on_complete(led)

    async def _write(self, writer: QueueWriter, letters: Sequence[DeadLetters], step: Step) -> int:
        """Write some of the records. Returns how many are done with."""
        try:
            return await writer.write(letters, step)
        except Exception:  # a fault in odradek: without this the records would wait for ever
            logger.exception("records are not written to a dead-letter queue, and are archived")
            return sum(each.record_count for each in letters)
