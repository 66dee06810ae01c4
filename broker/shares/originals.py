"""The keys and values of records that a group has given up, read from the log again.

They are read in windows of a megabyte. Left out is what cannot be read, what is too large for the
queue, and what does not exist, because it was compacted: the queue then gets a record without key
and value. A record counts with its size in the log, with its headers; the records of a compressed
batch count together.

Kafka: ShareGroupDLQRecordFetcher.
"""

from __future__ import annotations

import logging
from typing import NamedTuple

from odradek.broker.disk.cold_reads import ColdReads
from odradek.broker.disk.disk_executor import DiskExecutor
from odradek.coordinator.runtime.steps import Step
from odradek.coordinator.share_partitions.dead_letters import DeadLetters
from odradek.protocol.batch_header import (
    HEADER_BYTES,
    MAGIC_V2,
    BatchHeader,
    CorruptRecordError,
    read_header,
)
from odradek.protocol.compression import MAX_DECOMPRESSED_BYTES, CompressionType
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.record import payload, read_payload, skim_payload
from odradek.storage.files import Files
from odradek.storage.log import PartitionLog

logger = logging.getLogger("odradek.shares")

READ_BYTES = WINDOW_BYTES = 1 << 20
# Larger batches are decompressed in a thread.
SMALL_BYTES = 16 << 10


class Original(NamedTuple):
    """What is copied of a record, and the record's size in the log."""

    key: bytes | None = None
    value: bytes | None = None
    size_bytes: int = 0


NOTHING = Original()


class Originals:
    """The records of a window of offsets."""

    def __init__(self, first_offset: int) -> None:
        self.first_offset = first_offset
        self.last_offset = first_offset - 1
        self.found: dict[int, Original] = {}

    def covers(self, offset: int) -> bool:
        return self.first_offset <= offset <= self.last_offset

    def of(self, offset: int) -> Original:
        return self.found.get(offset, NOTHING)

    def extend(self, last_offset: int) -> None:
        """The window has the offsets up to this one, found or not."""
        self.last_offset = max(self.last_offset, last_offset)


class OriginalsReader:
    """Reads windows."""

    def __init__(self, files: Files, disk: DiskExecutor, cold_reads: ColdReads) -> None:
        self._files = files
        self._disk = disk
        self._cold_reads = cold_reads

    async def read(
        self, log: PartitionLog, letters: DeadLetters, last_offset: int, max_bytes: int, step: Step
    ) -> Originals:
        """Read a window from the first of these letters on.

        It ends at `last_offset` at most, which is that of other letters, and covers at least one.
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
            before, position = window.next_offset, 0
            try:
                data = await self._read(log, before)
            except (ApiError, OSError, EOFError) as error:
                if log.log_start_offset <= before:
                    raise
                _warn(log, before, error)
                window.lose(log.log_start_offset)
                continue
            while position < len(data) and not window.is_complete:
                header = read_header(data, position)
                if header.magic != MAGIC_V2 or header.size_bytes < HEADER_BYTES:
                    raise CorruptRecordError(f"the batch at offset {before} or after it is damaged")
                batch = memoryview(data)[position : position + header.size_bytes]
                position += header.size_bytes
                try:
                    content = await self._content(batch, header, window.max_bytes)
                    window.take(content, header, step)
                except CorruptRecordError as error:
                    _warn(log, window.next_offset, error)
                window.pass_by(header)
            if window.next_offset == before and not window.is_complete:
                raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE, f"the log ends before {before}")

    async def _read(self, log: PartitionLog, offset: int) -> bytes:
        """Read whole batches, at least one if there is one."""
        records = await self._cold_reads.look_up(
            lambda: log.read(offset, READ_BYTES, at_least_one_batch=True)
        )
        if not records.size_bytes:
            return b""
        return await self._disk.run(
            self._files.pread_exact, records.file, records.size_bytes, records.position
        )

    async def _content(self, batch: memoryview, header: BatchHeader, max_bytes: int) -> bytes:
        """The records of a batch. Raises CorruptRecordError, also if they are too many."""
        if header.compression is CompressionType.NONE:
            return payload(batch, header, len(batch))
        if len(batch) <= SMALL_BYTES and max_bytes <= SMALL_BYTES:
            return payload(batch, header, max_bytes)
        limit = min(max_bytes, MAX_DECOMPRESSED_BYTES)
        return await self._disk.run(payload, batch, header, limit)


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
        self._left = WINDOW_BYTES
        self._is_full = False

    @property
    def next_offset(self) -> int:
        return self.originals.last_offset + 1

    @property
    def is_complete(self) -> bool:
        return self._is_full or self.next_offset > self._last_offset

    def take(self, content: bytes, header: BatchHeader, step: Step) -> None:
        """Take the records of a batch, as many as fit, but one at least."""
        originals = self.originals
        records, skims = read_payload(content, header), skim_payload(content, header)
        for record, skim in zip(records, skims, strict=True):
            step()
            if record.offset < self.next_offset:
                continue
            if record.offset > self._last_offset:
                return
            if skim.size_bytes <= self.max_bytes:
                if originals.found and skim.size_bytes > self._left:
                    self._is_full = True
                    return
                self._left -= skim.size_bytes
                originals.found[record.offset] = Original(record.key, record.value, skim.size_bytes)
            originals.extend(record.offset)

    def lose(self, start_offset: int) -> None:
        """The log begins here by now."""
        self.originals.extend(min(start_offset - 1, self._last_offset))

    def pass_by(self, header: BatchHeader) -> None:
        """There are no other records in a batch."""
        if not self._is_full:
            self.originals.extend(min(header.last_offset, self._last_offset))
