"""Converts record batches to message sets for clients of Kafka 0.8 to 0.10 (Fetch v0-3).

These clients cannot read record batches. Every record is read and written again in Python, which is
slow. So at most MAX_BYTES of a partition are converted for one response. RecordWalks converts them
in a worker process, so that the event loop goes on meanwhile.

    v0-1    messages of magic 0      v2-3    messages of magic 1, with timestamps

Up to v2 a client does not accept more bytes than it asked for (KIP-74 came with v3). If not even
one batch fits, it gets TOO_LARGE: only a message header, which announces a message that is larger
than the response. So the client knows that it must ask for more bytes.

Kafka removed this in 4.0. Up to 3.9: LazyDownConversionRecords, RecordsUtil.downConvert.
"""

from __future__ import annotations

import struct
from collections.abc import Hashable
from functools import partial

from odradek.broker.disk.disk_executor import DiskExecutor
from odradek.broker.processes.record_walks import RecordWalks
from odradek.protocol.any_batch import read_any_header
from odradek.protocol.batch_header import CorruptRecordError
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.fetch import FetchPartitionData
from odradek.protocol.schema import Records
from odradek.storage.files import Files
from odradek.storage.log import PartitionLog, RecordsSlice
from odradek.storage.record_walk import convert_stored

LAST_VERSION_WITH_MESSAGE_SETS = 3
LAST_VERSION_WITH_MAGIC_0 = 1
LAST_VERSION_WITH_HARD_LIMIT = 2
# How many stored bytes of one partition are converted for a response: some ten thousand small
# records.
MAX_BYTES = 1024 * 1024
# The start of a message: the offset -1, and a size that no response can have.
TOO_LARGE = struct.pack(">qi", -1, 0x7FFFFFFF)


def magic_for(api_version: int) -> int:
    """The message format that a client of this Fetch version reads."""
    return 0 if api_version <= LAST_VERSION_WITH_MAGIC_0 else 1


class DownConverter:
    """Converts slices of logs to message sets."""

    def __init__(self, files: Files, disk: DiskExecutor, walks: RecordWalks) -> None:
        self._files = files
        self._disk = disk
        self._walks = walks

    async def convert(
        self,
        partition: FetchPartitionData,
        log: PartitionLog,
        first_offset: int,
        api_version: int,
        client: Hashable,
    ) -> FetchPartitionData:
        """Return the response's part for one partition, with its records as messages.

        `client`: who has asked, see RecordWalks.

        Raises ApiError: CORRUPT_MESSAGE if the records cannot be read, REQUEST_TIMED_OUT if too
        many batches wait for a worker process, UNKNOWN_SERVER_ERROR if the process ended early, and
        the errors of `PartitionLog.read`.
        """
        magic = magic_for(api_version)
        messages = await self._first_messages(partition.records, log, first_offset, magic, client)
        return FetchPartitionData(
            partition_index=partition.partition_index,
            high_watermark=partition.high_watermark,
            records=messages,
        )

    async def _first_messages(
        self,
        records: Records | None,
        log: PartitionLog,
        offset: int,
        magic: int,
        client: Hashable,
    ) -> bytes:
        """The messages of the first slice that has any; empty if the log ends before that."""
        while isinstance(records, RecordsSlice) and records.size_bytes:
            try:
                messages, offset = await self._convert_slice(records, magic, offset, client)
            except (CorruptRecordError, EOFError, OSError) as error:
                raise ApiError(ErrorCode.CORRUPT_MESSAGE, f"{log.name}: {error}") from error
            if messages:
                return messages
            # The slice has only transaction markers, which the message format does not have.
            records = log.read(offset, MAX_BYTES, at_least_one_batch=True)
        return records if isinstance(records, bytes) else b""

    async def _convert_slice(
        self, records: RecordsSlice, magic: int, first_offset: int, client: Hashable
    ) -> tuple[bytes, int]:
        """The messages from `first_offset` on, and the offset to read next if there are none."""
        batches = await self._disk.run(
            self._files.pread_exact, records.file, records.size_bytes, records.position
        )
        walk = partial(convert_stored, magic=magic, first_offset=first_offset)
        messages = await self._walks.run(walk, batches, client)
        return messages, first_offset if messages else _next_offset(batches)


def _next_offset(batches: bytes) -> int:
    """The offset after the last of the batches."""
    position = 0
    while True:
        header = read_any_header(batches, position)
        position += header.size_bytes
        if position >= len(batches):
            return header.next_offset
