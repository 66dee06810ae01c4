"""Reads the v2 batches of a log for the broker itself: the topic of schemas, dead letters.

Clients have written them, so a small batch may unpack to very much: the disk threads read and
decompress them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from odradek.protocol.batch_header import (
    HEADER_BYTES,
    MAGIC_V2,
    BatchHeader,
    CorruptRecordError,
    read_header,
)
from odradek.protocol.compression import MAX_DECOMPRESSED_BYTES, CompressionType
from odradek.protocol.record import payload
from odradek.storage.files import Files
from odradek.storage.log import PartitionLog

from .cold_reads import ColdReads
from .disk_executor import DiskExecutor

# Larger batches are decompressed in a thread.
SMALL_BYTES = 16 << 10


class StoredBatch(NamedTuple):
    """A batch as it is in the log."""

    header: BatchHeader
    data: memoryview


class BatchReads:
    """Reads any log. Must be created on the thread of the event loop."""

    def __init__(self, files: Files, disk: DiskExecutor, cold_reads: ColdReads) -> None:
        self._files = files
        self._disk = disk
        self._cold_reads = cold_reads

    async def read(self, log: PartitionLog, offset: int, max_bytes: int) -> Iterator[StoredBatch]:
        """Read the batches from an offset on: at most `max_bytes`, but at least one batch.

        The first may begin before the offset. There are none if the log ends there. Raises
        ApiError, OSError, EOFError; the iterator raises CorruptRecordError.
        """
        found = await self._cold_reads.look_up(
            lambda: log.read(offset, max_bytes, at_least_one_batch=True)
        )
        if not found.size_bytes:
            return iter(())
        data = await self._disk.run(
            self._files.pread_exact, found.file, found.size_bytes, found.position
        )
        return _batches(data)

    async def content(self, batch: StoredBatch, max_bytes: int) -> bytes:
        """Return the records of a batch, for `read_payload`.

        Raises CorruptRecordError, also if they are compressed and more than `max_bytes` or
        MAX_DECOMPRESSED_BYTES.
        """
        header, data = batch
        if header.compression is CompressionType.NONE:
            return payload(data, header, len(data))
        if len(data) <= SMALL_BYTES and max_bytes <= SMALL_BYTES:
            return payload(data, header, max_bytes)
        return await self._disk.run(payload, data, header, min(max_bytes, MAX_DECOMPRESSED_BYTES))


def _batches(data: bytes) -> Iterator[StoredBatch]:
    position = 0
    while position < len(data):
        header = read_header(data, position)
        if header.magic != MAGIC_V2 or header.size_bytes < HEADER_BYTES:
            raise CorruptRecordError(f"the batch at offset {header.base_offset} is damaged")
        yield StoredBatch(header, memoryview(data)[position : position + header.size_bytes])
        position += header.size_bytes
