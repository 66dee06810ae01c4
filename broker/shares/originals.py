"""The records that a share group gives up, read from the log again: their keys and values.

They are copied into the group's dead-letter queue (KIP-1191), if the group wants copies. They are
read in windows of a megabyte. A record that cannot be read, that is too large for the queue, or
that compaction has removed is left out: the queue then gets a record without key and value. A
record counts with its size in the log, with its headers; the records of a compressed batch count
together.

Kafka: ShareGroupDLQRecordFetcher.
"""

from __future__ import annotations

import logging
from typing import NamedTuple

from odradek.broker.disk.batch_reads import BatchReads
from odradek.coordinator.runtime.steps import Step
from odradek.coordinator.share_partitions.dead_letters import DeadLetters
from odradek.protocol.batch_header import BatchHeader, CorruptRecordError
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.record import read_payload, skim_payload
from odradek.storage.log import PartitionLog

logger = logging.getLogger("odradek.shares")

READ_BYTES = WINDOW_BYTES = 1 << 20


class Original(NamedTuple):
    """What is copied of a record, and the record's size in the log."""

    key: bytes | None = None
    value: bytes | None = None
    size_bytes: int = 0


NOTHING = Original()


class Originals:
    """What was found at the offsets of a window, `first_offset` to `last_offset`."""

    def __init__(self, first_offset: int) -> None:
        self.first_offset = first_offset
        self.last_offset = first_offset - 1
        self.found: dict[int, Original] = {}

    def covers(self, offset: int) -> bool:
        return self.first_offset <= offset <= self.last_offset

    def of(self, offset: int) -> Original:
        return self.found.get(offset, NOTHING)

    def extend(self, last_offset: int) -> None:
        """Cover the offsets up to this one, whether their records were found or not."""
        self.last_offset = max(self.last_offset, last_offset)


class OriginalsReader:
    """Reads windows."""

    def __init__(self, reads: BatchReads) -> None:
        self._reads = reads

    async def read(
        self, log: PartitionLog, letters: DeadLetters, last_offset: int, max_bytes: int, step: Step
    ) -> Originals:
        """Read a window from the first offset of these letters on.

        It covers at least that offset, and ends at `last_offset` or before: that is the last offset
        of the letters that wait. `max_bytes` is the largest record that the queue takes.
        """
        window = _Window(letters.first_offset, last_offset, max_bytes)
        try:
            await self._fill(window, log, step)
        except (ApiError, CorruptRecordError, OSError, EOFError) as error:
            _warn(log, window.originals.last_offset + 1, error)
            window.originals.extend(letters.last_offset)
        return window.originals

    async def _fill(self, window: _Window, log: PartitionLog, step: Step) -> None:
        """Read on while there are records that fit. Raises what a read raises."""
        while not window.is_complete:
            before = window.next_offset
            try:
                batches = await self._reads.read(log, before, READ_BYTES)
            except (ApiError, OSError, EOFError) as error:
                if log.log_start_offset <= before:
                    raise
                _warn(log, before, error)
                window.begin_at(log.log_start_offset)
                continue
            for batch in batches:
                try:
                    content = await self._reads.content(batch, window.max_bytes)
                    window.take(content, batch.header, step)
                except CorruptRecordError as error:
                    _warn(log, window.next_offset, error)
                window.end_batch(batch.header)
                if window.is_complete:
                    break
            if window.next_offset == before and not window.is_complete:
                raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE, f"the log ends before {before}")


def _warn(log: PartitionLog, offset: int, error: Exception) -> None:
    logger.warning(
        "records of %s from offset %d on are written to a dead-letter queue without their keys "
        "and values: %s",
        log.name,
        offset,
        error,
    )


class _Window:
    """A window that is being read."""

    def __init__(self, first_offset: int, last_offset: int, max_bytes: int) -> None:
        self.originals = Originals(first_offset)
        self.max_bytes = max_bytes
        self._last_offset = last_offset
        self._left_bytes = WINDOW_BYTES
        self._is_full = False

    @property
    def next_offset(self) -> int:
        return self.originals.last_offset + 1

    @property
    def is_complete(self) -> bool:
        return self._is_full or self.next_offset > self._last_offset

    def take(self, content: bytes, header: BatchHeader, step: Step) -> None:
        """Take the records of a batch, as many as fit. The first of the window always fits."""
        originals = self.originals
        records, skims = read_payload(content, header), skim_payload(content, header)
        for record, skim in zip(records, skims, strict=True):
            step()
            if record.offset < self.next_offset:
                continue
            if record.offset > self._last_offset:
                return
            if skim.body_bytes <= self.max_bytes:
                if originals.found and skim.body_bytes > self._left_bytes:
                    self._is_full = True
                    return
                self._left_bytes -= skim.body_bytes
                originals.found[record.offset] = Original(record.key, record.value, skim.body_bytes)
            originals.extend(record.offset)

    def begin_at(self, start_offset: int) -> None:
        """Cover the offsets before the new start of the log: their records are deleted."""
        self.originals.extend(min(start_offset - 1, self._last_offset))

    def end_batch(self, header: BatchHeader) -> None:
        """Cover the rest of a batch's offsets, unless a record of it did not fit."""
        if not self._is_full:
            self.originals.extend(min(header.last_offset, self._last_offset))
