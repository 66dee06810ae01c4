"""Converts record batches to message sets for clients of Kafka 0.8 to 0.10 (Fetch v0-3).

These clients cannot read record batches. Every record is written again, in Python, which is slow.
So their answers are kept small, and a worker process converts the records (record_walks).

    v0-1    messages of magic 0      v2-3    messages of magic 1, with timestamps

Up to v2 a client does not accept more bytes than it asked for (KIP-74 came with v3). If not even
one batch fits, the answer is the head of a message that is larger than the answer. The client then
knows that it must ask for more bytes.

Kafka removed this in 4.0. Up to 3.9: LazyDownConversionRecords, RecordsUtil.downConvert.
"""

from __future__ import annotations

import struct
from functools import partial

from odradek.broker.disk.disk_executor import DiskExecutor
from odradek.broker.maintenance.workers.record_walks import RecordWalks
from odradek.protocol.any_batch import read_any_header
from odradek.protocol.batch_header import CorruptRecordError
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.fetch import FetchPartitionData
from odradek.storage.files import Files
from odradek.storage.log import PartitionLog, RecordsSlice
from odradek.storage.record_walk import convert_stored

LAST_VERSION_WITH_MESSAGE_SETS = 3
LAST_VERSION_WITH_MAGIC_0 = 1
LAST_VERSION_WITH_HARD_LIMIT = 2
# The most that one answer converts of one partition: some ten thousand small records.
MAX_BYTES = 1024 * 1024
# The head of a message with offset -1 and a size that no answer can hold.
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
        self, answer: FetchPartitionData, log: PartitionLog, first_offset: int, api_version: int
    ) -> FetchPartitionData:
        """Return the answer with its records as messages.

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
        """The converted records: at least one message, unless the log has none after the offset."""
        records, offset = answer.records, first_offset
        while isinstance(records, RecordsSlice) and records.size_bytes:
            try:
                data, offset = await self._convert(records, magic, offset)
            except (CorruptRecordError, EOFError, OSError) as error:
                raise ApiError(ErrorCode.CORRUPT_MESSAGE, f"{log.name}: {error}") from error
            if data:
                return data
            # The slice has only transaction markers, which the message format does not have.
            records = log.read(offset, MAX_BYTES, at_least_one_batch=True)
        return records if isinstance(records, bytes) else b""

    async def _convert(
        self, records: RecordsSlice, magic: int, first_offset: int
    ) -> tuple[bytes, int]:
        """The messages of a slice from `first_offset` on, and the offset at which to go on."""
        data = await self._disk.run(
            self._files.pread_exact, records.file, records.size_bytes, records.position
        )
        walk = partial(convert_stored, magic=magic, first_offset=first_offset)
        converted = await self._walks.run(walk, data)
        return converted, first_offset if converted else _next_offset(data)


def _next_offset(data: bytes) -> int:
    """The offset after the last of `data`, which is whole batches."""
    position = 0
    while True:
        header = read_any_header(data, position)
        position += header.size_bytes
        if position >= len(data):
            return header.next_offset
