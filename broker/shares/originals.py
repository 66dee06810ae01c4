"""The keys and values of records that a group has given up, read from the log again.

They are read in windows, so that a few megabytes are held at most. A window has the keys and values
that fit into one batch of the queue (`max_bytes`). What cannot be read, or is too large, is left
out: the queue then gets a record without key and value. Offsets without a record (it was compacted)
are left out too. Kafka counts bytes as here: a record by its size in the log with its headers, and
a compressed batch as a whole.

Kafka: ShareGroupDLQRecordFetcher.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

from odradek.broker.disk.cold_reads import ColdReads
from odradek.broker.disk.disk_executor import DiskExecutor
from odradek.coordinator.runtime.steps import Step
from odradek.coordinator.share_partitions.dead_letters import DeadLetters
from odradek.protocol.batch_header import (
    MAGIC_V2,
    BatchHeader,
    CorruptRecordError,
    TooManyRecordsError,
    read_header,
)
from odradek.protocol.compression import CompressionType
from odradek.protocol.errors import ApiError
from odradek.protocol.record import Record, payload, read_payload, skim_payload
from odradek.storage.files import Files
from odradek.storage.log import PartitionLog

logger = logging.getLogger("odradek.shares")

READ_BYTES = 1 << 20
# Larger batches are decompressed in a thread.
SMALL_BYTES = 16 << 10

KeyAndValue = tuple[bytes | None, bytes | None]
NOTHING: KeyAndValue = (None, None)


class Originals:
    """The keys and values of a window of offsets."""

    def __init__(self, first_offset: int) -> None:
        self.first_offset = first_offset
        self.last_offset = first_offset - 1
        self._found: dict[int, KeyAndValue] = {}

    def covers(self, offset: int) -> bool:
        return self.first_offset <= offset <= self.last_offset

    def of(self, offset: int) -> KeyAndValue:
        return self._found.get(offset, NOTHING)

    def extend(self, last_offset: int) -> None:
        """The window has the offsets up to this one, found or not."""
        self.last_offset = max(self.last_offset, last_offset)

    def put(self, record: Record) -> None:
        self._found[record.offset] = record.key, record.value
        self.extend(record.offset)


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
            logger.warning(
                "records of %s from offset %d on are written to a dead-letter queue without their "
                "keys and values: %s",
                log.name,
                window.next_offset,
                error,
            )
        if not window.is_full:  # then nothing is read for the rest of these letters, too
            window.found.extend(letters.last_offset)
        return window.found

    async def _fill(self, window: _Window, log: PartitionLog, step: Step) -> None:
        """Read on while there are records that fit. Raises what a read raises."""
        while window.next_offset <= window.last_offset and not window.is_full:
            before = window.next_offset
            data = await self._read(log, before)
            position = 0
            while position < len(data) and not window.is_full:
                header = read_header(data, position)
                if header.base_offset > window.last_offset:
                    break
                if header.magic != MAGIC_V2:
                    raise CorruptRecordError(f"{log.name} has a batch of magic {header.magic}")
                batch = memoryview(data)[position : position + header.size_bytes]
                content = await self._content(batch, header, window.max_bytes)
                if content is None:
                    window.skip(header)
                else:
                    window.take(content, header, step)
                position += header.size_bytes
            if window.next_offset == before:
                return

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

    async def _content(
        self, batch: memoryview, header: BatchHeader, max_bytes: int
    ) -> bytes | None:
        """The records of a batch; None if they are more than `max_bytes`, and compressed."""
        if header.compression is CompressionType.NONE:
            return payload(batch, header, len(batch))
        try:
            if len(batch) <= SMALL_BYTES and max_bytes <= SMALL_BYTES:
                return payload(batch, header, max_bytes)
            return await self._disk.run(payload, batch, header, max_bytes)
        except TooManyRecordsError:
            logger.warning(
                "the records of the batch at offset %d are written to a dead-letter queue without "
                "their keys and values: together they have more than %d bytes",
                header.base_offset,
                max_bytes,
            )
            return None


class _Window:
    """A window that is being read. `is_full`: the next record is for another window."""

    def __init__(self, first_offset: int, last_offset: int, max_bytes: int) -> None:
        self.found = Originals(first_offset)
        self.next_offset = first_offset
        self.last_offset = last_offset
        self.max_bytes = max_bytes
        self._left = max_bytes
        self.is_full = False

    def skip(self, header: BatchHeader) -> None:
        """Leave out a batch that is too large."""
        last = min(header.last_offset, self.last_offset)
        self.found.extend(last)
        self.next_offset = max(self.next_offset, last + 1)

    def take(self, content: bytes, header: BatchHeader, step: Step) -> None:
        """Take the records of a batch, as many as fit."""
        for record, size in _sized_records(content, header):
            step()
            if record.offset < self.next_offset:
                continue
            if record.offset > self.last_offset:
                return
            if size > self.max_bytes:
                self.found.extend(record.offset)
            elif size > self._left:
                self.is_full = True
                return
            else:
                self.found.put(record)
                self._left -= size
            self.next_offset = record.offset + 1
        self.is_full = self._left <= 0


def _sized_records(content: bytes, header: BatchHeader) -> Iterator[tuple[Record, int]]:
    """The records of a batch, and their sizes in bytes."""
    records, skims = read_payload(content, header), skim_payload(content, header)
    for record, skim in zip(records, skims, strict=True):
        yield record, skim.size_bytes
