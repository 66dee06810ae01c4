"""What lies in a segment's file, whatever its format and however damaged: to look at, not to serve.

The readers that serve (batch_scan.py) refuse what they cannot vouch for. Here nothing is vouched
for: a batch is what its size says, its CRC is told and not demanded, magic 0 and 1 are as good as
2, and each part is read when it is asked for. Where the next batch begins cannot be known behind
one whose size is impossible: there the walk raises UnreadableError. A tail that is too short ends
it in silence.

Messages of magic 0 and 1 are in raw_message.py. Numbers are Java's: they wrap where a damaged field
makes them too large, so that what the tools print of a damaged file is what Kafka's tools print.

Kafka: FileLogInputStream, DefaultRecordBatch.iterator.
"""

import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple

from crc32c import crc32c

from odradek.protocol.batch_header import (
    CHECKED_POSITION,
    HEADER_BYTES,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    MAGIC_V2,
    MAX_SEQUENCE,
    NO_SEQUENCE,
    BatchHeader,
    CorruptRecordError,
    read_header,
)
from odradek.protocol.compression import CompressionType
from odradek.protocol.record import SMALLEST_RECORD_BYTES, Record, RecordHeaders, read_records

from .files import Files, OpenFile
from .raw_message import (
    OFFSET_AND_SIZE,
    SMALLEST_SIZE,
    RawMessage,
    UnreadableError,
    as_int32,
    as_int64,
    codec_of,
)

_UP_TO_MAGIC = MAGIC_POSITION + 1
_CHUNK_BYTES = 64 << 10
_SUM_BYTES = 1 << 20
_INT32 = struct.Struct(">i")


class RawRecord(NamedTuple):
    """One record of a v2 batch."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    sequence: int
    headers: RecordHeaders

    @property
    def key_size(self) -> int:
        """-1: null."""
        return -1 if self.key is None else len(self.key)

    @property
    def value_size(self) -> int:
        """-1: null."""
        return -1 if self.value is None else len(self.value)


AnyRecord = RawRecord | RawMessage


class RawBatch:
    """One batch of a file: of magic 2, or a message of magic 0 or 1, which is a batch of its own.

    What is asked may raise UnreadableError; `magic`, `position` and `size_bytes` never do.
    """

    __slots__ = ("_data", "_file", "_files", "_head", "magic", "offset", "position", "size_bytes")

    def __init__(self, files: Files, file: OpenFile, position: int, head: bytes) -> None:
        """`head` is what the file holds from `position` on; 61 bytes and more, except at its end.

        Raises UnreadableError for a size that no batch can have.
        """
        self.position = position
        offset, size = OFFSET_AND_SIZE.unpack_from(head)
        self.offset: int = offset
        if size < SMALLEST_SIZE:
            raise UnreadableError(
                f"{file.path} at byte {position}: a batch of {size} bytes is too small"
            )
        self.size_bytes = LOG_OVERHEAD + size
        magic = head[MAGIC_POSITION]
        self.magic = magic if magic < 0x80 else magic - 0x100
        self._files = files
        self._file = file
        self._head = head[:HEADER_BYTES]
        self._data = head[: self.size_bytes] if len(head) >= self.size_bytes else None

    @property
    def is_message(self) -> bool:
        """Whether it is of the formats before Kafka 0.11."""
        return self.magic < MAGIC_V2

    @property
    def header(self) -> BatchHeader:
        """Of a v2 batch, even one that is too small to hold it."""
        try:
            return read_header(self._head)
        except CorruptRecordError as error:
            raise UnreadableError(str(error)) from None

    @property
    def message(self) -> RawMessage:
        """Of magic 0 and 1."""
        return RawMessage(self.offset, self.data()[LOG_OVERHEAD:])

    @property
    def _message_head(self) -> RawMessage:
        if self.magic < 0:
            raise UnreadableError(f"magic {self.magic} is not known")
        return RawMessage(self.offset, self._head[LOG_OVERHEAD:])

    @property
    def last_offset(self) -> int:
        if self.is_message:
            return self.offset
        return as_int64(self.offset + self.header.last_offset_delta)

    @property
    def timestamp_type(self) -> str:
        """As Kafka names it."""
        if self.is_message and self._message_head.magic == 0:
            return "NoTimestampType"
        return "LogAppendTime" if self.is_log_append_time else "CreateTime"

    @property
    def is_log_append_time(self) -> bool:
        if self.is_message:
            return self._message_head.is_log_append_time
        return self.header.is_log_append_time

    @property
    def max_timestamp(self) -> int:
        if self.is_message:
            return self._message_head.timestamp_ms
        return self.header.max_timestamp

    @property
    def compression(self) -> CompressionType:
        attributes = self._message_head if self.is_message else self.header
        return codec_of(attributes.attributes)

    @property
    def is_control(self) -> bool:
        return not self.is_message and self.header.is_control

    @property
    def crc(self) -> int:
        return self._message_head.crc if self.is_message else self.header.crc

    @property
    def last_sequence(self) -> int:
        header = self.header
        if header.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return _next_sequence(header.base_sequence, header.last_offset_delta)

    def data(self) -> bytes:
        """All its bytes."""
        if self._data is None:
            self._data = self._files.pread_exact(self._file, self.size_bytes, self.position)
        return self._data

    def is_valid(self) -> bool:
        """Whether the CRC is that of its bytes. Large batches are summed piece by piece."""
        if self.is_message:
            return self.crc == self._sum(MAGIC_POSITION, is_message=True)
        is_whole = self.size_bytes >= HEADER_BYTES
        return is_whole and self.crc == self._sum(CHECKED_POSITION, is_message=False)

    def fault(self) -> str | None:
        """Why it is unsound by itself: magic, checksum, offsets, codec. None where it is sound."""
        try:
            if not 0 <= self.magic <= MAGIC_V2:
                return f"no batch has magic {self.magic}"
            if not self.is_valid():
                return f"the batch is not what was checksummed, {self.crc:#010x}"
            if self.last_offset < self.offset or self.offset < 0:
                return f"its offsets are {self.offset} to {self.last_offset}"
            self.compression  # noqa: B018 - asked, for it may raise
        except UnreadableError as error:
            return str(error)
        return None

    def _sum(self, start: int, *, is_message: bool) -> int:
        checksum = zlib.crc32 if is_message else crc32c
        if self._data is not None:
            return int(checksum(memoryview(self._data)[start:]))
        value = 0
        while start < self.size_bytes:
            size = min(_SUM_BYTES, self.size_bytes - start)
            piece = self._files.pread_exact(self._file, size, self.position + start)
            value = checksum(piece, value)
            start += size
        return value

    def records(self) -> Iterator[AnyRecord]:
        """Its records, one after the other as far as they can be read.

        Of a compressed batch all or none. Raises UnreadableError on the way.
        """
        if not self.is_message:
            return self._records()
        message = self.message
        if message.compression is CompressionType.NONE:
            return iter([message])
        return message.inside()

    def _records(self) -> Iterator[RawRecord]:
        header = self.header
        data = self.data()
        if self.size_bytes < HEADER_BYTES:
            raise UnreadableError(f"offset {self.offset}: a batch of {self.size_bytes} bytes")
        if header.record_count == 0:
            return iter(())
        whole = self._read_as_far_as_possible(header, data)
        if self.compression is CompressionType.NONE:
            return whole
        return iter(list(whole))

    def _read_as_far_as_possible(self, header: BatchHeader, data: bytes) -> Iterator[RawRecord]:
        # The last record counts only if nothing follows it: Kafka looks before it hands it out.
        read, waiting = 0, None
        try:
            for record in read_records(data, header=self._believable(header, data)):
                if waiting is not None:
                    yield self._raw(header, waiting)
                read, waiting = read + 1, record
        except (CorruptRecordError, ValueError) as error:
            if waiting is not None and read != header.record_count:
                yield self._raw(header, waiting)
            raise UnreadableError(str(error)) from None
        if waiting is not None:
            yield self._raw(header, waiting)
        if read != header.record_count:
            raise UnreadableError(
                f"the batch at offset {self.offset} claims {header.record_count} records, "
                f"it holds {read}"
            )

    def _believable(self, header: BatchHeader, data: bytes) -> BatchHeader:
        """With a count that the bytes may hold: those that are there are to be read."""
        if self.compression is not CompressionType.NONE:
            return header
        most = max((len(data) - HEADER_BYTES) // SMALLEST_RECORD_BYTES, 1)
        return header._replace(record_count=min(header.record_count, most))

    def _raw(self, header: BatchHeader, record: Record) -> RawRecord:
        sequence = NO_SEQUENCE
        if header.base_sequence >= 0:
            sequence = _next_sequence(header.base_sequence, record.offset - header.base_offset)
        offset = as_int64(record.offset)
        return RawRecord(
            offset, record.timestamp_ms, record.key, record.value, sequence, record.headers
        )


def scan_raw(files: Files, file: OpenFile, start: int, end: int) -> Iterator[RawBatch]:
    """The batches that lie whole in [start, end). `start` begins one. Raises UnreadableError."""
    position = chunk_at = start
    chunk = b""
    while position < end - _UP_TO_MAGIC:
        at = position - chunk_at
        if at + HEADER_BYTES > len(chunk):
            chunk, chunk_at, at = files.pread(file, _CHUNK_BYTES, position), position, 0
        if len(chunk) - at < _UP_TO_MAGIC:
            raise UnreadableError(f"{file.path} ends at byte {position + len(chunk) - at}")
        (size,) = _INT32.unpack_from(chunk, at + 8)
        if at and at + LOG_OVERHEAD + size > len(chunk) and size < _CHUNK_BYTES - LOG_OVERHEAD:
            chunk, chunk_at, at = files.pread(file, _CHUNK_BYTES, position), position, 0
        batch = RawBatch(files, file, position, chunk[at : at + max(HEADER_BYTES, size + 12)])
        if position > end - batch.size_bytes:
            return
        yield batch
        position += batch.size_bytes


def _next_sequence(sequence: int, increment: int) -> int:
    """Wrapped from 2**31-1 to 0, with what Java makes of a garbled increment."""
    if sequence > as_int32(MAX_SEQUENCE - increment):
        return as_int32(increment - (MAX_SEQUENCE - sequence) - 1)
    return as_int32(sequence + increment)
