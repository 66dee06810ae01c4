"""Walks the batches of a segment file for inspection: any format, also damaged files.

The readers that serve clients (storage/batch_scan.py) refuse a batch that fails its checks. This
walk checks nothing by itself. The size field alone decides where a batch ends. The caller can ask
whether the CRC matches. Magic 0, 1 and 2 are all accepted. Each part is parsed when it is asked
for, so damage in one part does not hide the others.

After a batch with an impossible size, the start of the next one is unknown: the walk raises
UnreadableError. An incomplete batch at the end of the file ends the walk without an error.

Messages of magic 0 and 1 are read by raw_message.py. Integers overflow as in Java, so that the
tools print the same numbers for a damaged file as Kafka's tools do.

Kafka: FileLogInputStream, DefaultRecordBatch.iterator.
"""

import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple

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
    TooManyRecordsError,
    read_header,
)
from odradek.protocol.compression import MAX_DECOMPRESSED_BYTES, CompressionType
from odradek.protocol.crc import crc32c
from odradek.protocol.record import SMALLEST_RECORD_BYTES, Record, RecordHeaders, read_records
from odradek.storage.files import Files, OpenFile
from odradek.storage.index_file import MAX_RELATIVE_OFFSET

from .raw_message import (
    OFFSET_AND_SIZE,
    SMALLEST_SIZE,
    RawMessage,
    TooLargeError,
    UnreadableError,
    as_int32,
    as_int64,
    codec_of,
)

_BYTES_TO_MAGIC = MAGIC_POSITION + 1  # of a batch up to and including its magic
_READ_BYTES = 64 << 10  # how much of the file one read fetches
_SEARCH_BYTES = 1 << 20  # the same of a search
_CRC_STEP_BYTES = 1 << 20  # large batches are checksummed in pieces of this size
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
        """In bytes; -1 for a null key."""
        return -1 if self.key is None else len(self.key)

    @property
    def value_size(self) -> int:
        """In bytes; -1 for a null value."""
        return -1 if self.value is None else len(self.value)


AnyRecord = RawRecord | RawMessage


class Fault(NamedTuple):
    """What is wrong with a batch, as a text."""

    what: str
    is_checksum: bool = False

    def __str__(self) -> str:
        return self.what


class RawBatch:
    """One batch of a file. A message of magic 0 or 1 counts as one batch.

    `magic`, `offset`, `position` and `size_bytes` are always known. Every other property and method
    may raise UnreadableError.
    """

    __slots__ = (
        "_data",
        "_file",
        "_files",
        "_head",
        "_header",
        "magic",
        "offset",
        "position",
        "size_bytes",
    )

    def __init__(self, files: Files, file: OpenFile, position: int, head: bytes) -> None:
        """`head` is the file's content from `position`: 61 bytes or more, fewer at the file's end.

        Raises UnreadableError where the size field is smaller than any batch.
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
        self._header: BatchHeader | None = None
        self._data = head[: self.size_bytes] if len(head) >= self.size_bytes else None

    @property
    def is_message(self) -> bool:
        """Whether it has a format from before Kafka 0.11 (magic 0 or 1)."""
        return self.magic < MAGIC_V2

    @property
    def header(self) -> BatchHeader:
        """The header of a v2 batch. Raises UnreadableError if the batch is too small for one."""
        if self._header is None:
            try:
                self._header = read_header(self._head)
            except CorruptRecordError as error:
                raise UnreadableError(str(error)) from None
        return self._header

    @property
    def message(self) -> RawMessage:
        """The message, if the magic is 0 or 1."""
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
        """The name of Kafka's TimestampType."""
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
        """All bytes of the batch."""
        if self._data is None:
            self._data = self._files.pread_exact(self._file, self.size_bytes, self.position)
        return self._data

    def is_valid(self) -> bool:
        """Whether the stored CRC matches the bytes. Large batches are read piece by piece."""
        if self.is_message:
            return self.crc == self._computed_crc(MAGIC_POSITION, is_message=True)
        has_header = self.size_bytes >= HEADER_BYTES
        return has_header and self.crc == self._computed_crc(CHECKED_POSITION, is_message=False)

    def fault(self) -> Fault | None:
        """What is wrong with its magic, CRC, offsets or codec; None if nothing is."""
        try:
            if not 0 <= self.magic <= MAGIC_V2:
                return Fault(f"no batch has magic {self.magic}")
            if not self.is_valid():
                what = f"the checksummed bytes do not match the stored CRC, {self.crc:#010x}"
                return Fault(what, is_checksum=True)
            if self.last_offset < self.offset or self.offset < 0:
                return Fault(f"its offsets are {self.offset} to {self.last_offset}")
            self.compression  # noqa: B018 - raises if the codec is unknown
        except UnreadableError as error:
            return Fault(str(error))
        return None

    def _computed_crc(self, start: int, *, is_message: bool) -> int:
        checksum = zlib.crc32 if is_message else crc32c
        if self._data is not None:
            return int(checksum(memoryview(self._data)[start:]))
        value = 0
        while start < self.size_bytes:
            size = min(_CRC_STEP_BYTES, self.size_bytes - start)
            piece = self._files.pread_exact(self._file, size, self.position + start)
            value = checksum(piece, value)
            start += size
        return value

    def records(self, max_bytes: int = MAX_DECOMPRESSED_BYTES) -> Iterator[AnyRecord]:
        """Yields the records up to the first that cannot be read, then raises UnreadableError.

        A compressed batch yields either all of its records or none. Raises TooLargeError if it
        holds more than `max_bytes`.
        """
        if not self.is_message:
            return self._records(max_bytes)
        message = self.message
        if message.compression is CompressionType.NONE:
            return iter([message])
        return message.inside(max_bytes)

    def _records(self, max_bytes: int) -> Iterator[RawRecord]:
        header = self.header
        data = self.data()
        if self.size_bytes < HEADER_BYTES:
            raise UnreadableError(f"offset {self.offset}: a batch of {self.size_bytes} bytes")
        if header.record_count == 0:
            return iter(())
        readable = self._readable_records(header, data, max_bytes)
        if self.compression is CompressionType.NONE:
            return readable
        return iter(list(readable))

    def _readable_records(
        self, header: BatchHeader, data: bytes, max_bytes: int
    ) -> Iterator[RawRecord]:
        # Kafka returns the last record only after it has checked that no bytes follow it. So each
        # record is held back until the next one has been read.
        read, held = 0, None
        limited = self._with_possible_count(header, data)
        try:
            for record in read_records(data, header=limited, max_bytes=max_bytes):
                if held is not None:
                    yield self._raw(header, held)
                read, held = read + 1, record
        except TooManyRecordsError as error:
            raise TooLargeError(str(error)) from None
        except (CorruptRecordError, ValueError) as error:
            if held is not None and read != header.record_count:
                yield self._raw(header, held)
            raise UnreadableError(str(error)) from None
        if held is not None:
            yield self._raw(header, held)
        if read != header.record_count:
            raise UnreadableError(
                f"the batch at offset {self.offset} claims {header.record_count} records, "
                f"but holds {read}"
            )

    def _with_possible_count(self, header: BatchHeader, data: bytes) -> BatchHeader:
        """The header with its record count limited to what fits into the bytes.

        A count that is too large would make `read_records` refuse the whole batch.
        """
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
    """The complete batches in the bytes [start, end) of a file; a batch must begin at `start`.

    Raises UnreadableError after a batch whose size is impossible.
    """
    position = chunk_at = start
    chunk = b""
    while position < end - _BYTES_TO_MAGIC:
        at = position - chunk_at
        if at + HEADER_BYTES > len(chunk):
            chunk, chunk_at, at = files.pread(file, _READ_BYTES, position), position, 0
        if len(chunk) - at < _BYTES_TO_MAGIC:
            raise UnreadableError(f"{file.path} ends at byte {position + len(chunk) - at}")
        (size,) = _INT32.unpack_from(chunk, at + 8)
        if at and at + LOG_OVERHEAD + size > len(chunk) and size < _READ_BYTES - LOG_OVERHEAD:
            chunk, chunk_at, at = files.pread(file, _READ_BYTES, position), position, 0
        batch = RawBatch(files, file, position, chunk[at : at + max(HEADER_BYTES, size + 12)])
        if position > end - batch.size_bytes:
            return
        yield batch
        position += batch.size_bytes


def find_whole_batch(
    files: Files, file: OpenFile, start: int, end: int, least_offset: int
) -> RawBatch | None:
    """The first valid v2 batch in [start, end) whose offset is not below `least_offset`.

    It may begin at any byte.
    """
    position = start
    while position + HEADER_BYTES <= end:
        chunk = files.pread(file, min(_SEARCH_BYTES, end - position), position)
        last = len(chunk) - HEADER_BYTES
        at = chunk.find(MAGIC_V2, MAGIC_POSITION) - MAGIC_POSITION
        while 0 <= at <= last:
            offset, size = OFFSET_AND_SIZE.unpack_from(chunk, at)
            # Few other bytes look so; checking a CRC costs up to the rest of the file.
            is_possible = 0 <= offset - least_offset <= MAX_RELATIVE_OFFSET
            if is_possible and size >= SMALLEST_SIZE and position + at + LOG_OVERHEAD + size <= end:
                batch = RawBatch(files, file, position + at, chunk[at : at + HEADER_BYTES])
                if batch.is_valid():
                    return batch
            at = chunk.find(MAGIC_V2, at + MAGIC_POSITION + 1) - MAGIC_POSITION
        if last < 0:
            return None
        position += last + 1
    return None


def _next_sequence(sequence: int, increment: int) -> int:
    """Wraps from 2**31-1 to 0. A damaged increment gives the same number as in Java."""
    if sequence > as_int32(MAX_SEQUENCE - increment):
        return as_int32(increment - (MAX_SEQUENCE - sequence) - 1)
    return as_int32(sequence + increment)
