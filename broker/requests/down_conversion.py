"""Message sets for clients of the 0.8 to 0.10 days, made of what the log holds (Fetch v0-3).

Such a client cannot read record batches, so their records are written again, one by one, in Python:
that is slow. So an answer to it is kept small, and the work is done in a process (record_walks).

    v0-1    messages of magic 0      v2-3    messages of magic 1, with timestamps

Up to v2 a client does not expect more bytes than it asked for (KIP-74 came with v3). Where not even
one batch fits, it gets the head of a message that is larger than the answer: this is how it learns
that it must ask for more.

Kafka dropped this in 4.0; up to 3.9: LazyDownConversionRecords, RecordsUtil.downConvert.
"""

from __future__ import annotations

import struct
from functools import partial
from typing import TYPE_CHECKING

from odradek.protocol.any_batch import read_any_header
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.fetch import FetchPartitionData
from odradek.protocol.record_batch import CorruptRecordError
from odradek.storage.log import PartitionLog, RecordsSlice
from odradek.storage.record_walk import convert_stored

if TYPE_CHECKING:
    from odradek.broker.disk.disk_executor import DiskExecutor
    from odradek.broker.maintenance.workers.record_walks import RecordWalks
    from odradek.storage.files import Files

LAST_VERSION_WITH_MESSAGE_SETS = 3
LAST_VERSION_WITH_MAGIC_0 = 1
LAST_VERSION_WITH_HARD_LIMIT = 2
# What one answer converts of one partition: some ten thousand small records.
MAX_BYTES = 1024 * 1024
# Offset -1, and a size that no answer can hold.
TOO_LARGE = struct.pack(">qi", -1, 0x7FFFFFFF)


def magic_for(api_version: int) -> int:
    """The message format that a client of this Fetch version reads."""
    return 0 if api_version <= LAST_VERSION_WITH_MAGIC_0 else 1


class DownConverter:
    """Makes message sets of slices."""

    def __init__(self, files: Files, disk: DiskExecutor, walks: RecordWalks) -> None:
        self._files = files
        self._disk = disk
        self._walks = walks

    async def convert(
        self, answer: FetchPartitionData, log: PartitionLog, first_offset: int, api_version: int
    ) -> FetchPartitionData:
        """The same answer with its records as messages.

        Raises ApiError: CORRUPT_MESSAGE, KAFKA_STORAGE_ERROR.
        """
        data = await self._converted(answer, log, first_offset, magic_for(api_version))
        return FetchPartitionData(
            partition_index=answer.partition_index,
            high_watermark=answer.high_watermark,
            records=data,
        )

    async def _converted(
        self, answer: FetchPartitionData, log: PartitionLog, first_offset: int, magic: int
    ) -> bytes:
        """At least one message, unless there is none up to the log's end."""
        records, offset = answer.records, first_offset
        while isinstance(records, RecordsSlice) and records.size_bytes:
            try:
                data, offset = await self._convert(records, magic, offset)
            except (CorruptRecordError, EOFError, OSError) as error:
                raise ApiError(ErrorCode.CORRUPT_MESSAGE, f"{log.name}: {error}") from error
            if data:
                return data
            # Nothing but markers of transactions, of which such a client knows nothing.
            records = log.read(offset, MAX_BYTES, at_least_one_batch=True)
        return records if isinstance(records, bytes) else b""

    async def _convert(
        self, records: RecordsSlice, magic: int, first_offset: int
    ) -> tuple[bytes, int]:
        """The messages of a slice from `first_offset` on, and the offset behind it."""
        data = await self._disk.run(
            self._files.pread_exact, records.file, records.size_bytes, records.position
        )
        walk = partial(convert_stored, magic=magic, first_offset=first_offset)
        converted = await self._walks.run(walk, data)
        return converted, first_offset if converted else _offset_behind(data)


def _offset_behind(data: bytes) -> int:
    """The offset that follows the last of some whole batches."""
    position = 0
    while True:
        header = read_any_header(data, position)
        position += header.size_bytes
        if position >= len(data):
            return header.next_offset
