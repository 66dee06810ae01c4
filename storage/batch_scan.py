"""Iterates over the batches of a segment's file, in bounded memory.

`scan_headers` reads headers only: a few kilobytes per read if batches are small, one header per
read if they are large. `scan_checked` reads every byte and verifies structure and CRC. It holds one
chunk in memory; the CRC of a larger batch is computed piece by piece. `read_batches` returns whole
batches with their CRC verified.

All of them stop silently at a batch that the file does not hold completely (a torn tail), as
Kafka's FileLogInputStream does. They raise CorruptBatchError at bytes that cannot be a batch.

A message of magic 0 or 1 is returned as a batch of one message, see protocol/any_batch.py. Its
checksum is always verified, because a v2 batch with a damaged magic byte could look like one.
"""

import zlib
from collections.abc import Callable, Iterator

from odradek.protocol.any_batch import SMALLEST_MESSAGE_BYTES, read_message_header
from odradek.protocol.batch_header import (
    CHECKED_POSITION,
    HEADER,
    HEADER_BYTES,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    MAGIC_V2,
    BatchHeader,
    CorruptRecordError,
    read_header,
)
from odradek.protocol.crc import crc32c

from .files import Files, OpenFile

HEADER_CHUNK_BYTES = 4096
CHUNK_BYTES = 1 << 20
SMALLEST_LENGTH = HEADER_BYTES - LOG_OVERHEAD
_ZEROS = bytes(HEADER_BYTES)

Checksum = Callable[[bytes | memoryview, int], int]


class CorruptBatchError(CorruptRecordError):
    """The bytes at `position` of a segment are no batch, or not the batch that was written."""

    def __init__(self, file: OpenFile, position: int, reason: str) -> None:
        super().__init__(f"{file.path} at byte {position}: {reason}")
        self.position = position


class ZerosError(CorruptBatchError):
    """There are zeros where a batch should begin, as in the unused end of a preallocated file."""


# A valid batch: its position, header and bytes (None if it is larger than a chunk). A plain tuple,
# because recovery makes one for every batch that it reads.
ScannedBatch = tuple[int, BatchHeader, memoryview | None]


def scan_headers(
    files: Files, file: OpenFile, start: int, end: int
) -> Iterator[tuple[int, BatchHeader]]:
    """Position and header of every whole batch in [start, end). A batch begins at `start`."""
    position = chunk_at = start
    chunk = b""
    while position + HEADER_BYTES <= end:
        at = position - chunk_at
        if at + HEADER_BYTES > len(chunk):
            chunk = files.pread(file, min(HEADER_CHUNK_BYTES, end - position), position)
            chunk_at, at = position, 0
            if len(chunk) < HEADER_BYTES:
                return
        header = read_header(chunk, at)
        is_message = header.magic != MAGIC_V2
        if is_message:
            header = _message_header(file, position, chunk, at)
        else:
            check_structure(file, position, header)
        size = header.batch_length + LOG_OVERHEAD
        if position + size > end:
            return
        if is_message:
            whole = memoryview(chunk)[at : at + size] if at + size <= len(chunk) else None
            _check_crc(files, file, position, header, whole)
        yield position, header
        position += size
    for at, header, _ in _last_messages(files, file, position, end):
        yield at, header


def header_at(files: Files, file: OpenFile, position: int, end: int) -> BatchHeader | None:
    """The header of the batch at `position`; None if no whole batch begins there before `end`.

    As the first of `scan_headers`, without reading more than the header.
    """
    if position + HEADER_BYTES <= end:
        data = files.pread(file, HEADER_BYTES, position)
        if len(data) == HEADER_BYTES and data[MAGIC_POSITION] == MAGIC_V2:
            header = read_header(data)
            check_structure(file, position, header)
            return header if position + header.size_bytes <= end else None
    for _, header in scan_headers(files, file, position, end):
        return header
    return None


def scan_checked(
    files: Files, file: OpenFile, start: int, end: int, *, chunk_bytes: int = CHUNK_BYTES
) -> Iterator[ScannedBatch]:
    """Every whole batch in [start, end), with its CRC verified.

    Valid batches of usual size take no further call: after a crash this reads all that was not
    synced.
    """
    position = chunk_at = start
    chunk = memoryview(b"")
    while position + HEADER_BYTES <= end:
        if position - chunk_at + HEADER_BYTES > len(chunk):
            chunk, chunk_at = _chunk(files, file, position, min(chunk_bytes, end - position))
            if len(chunk) < HEADER_BYTES:
                return
        fields = HEADER.unpack_from(chunk, position - chunk_at)
        base_offset, length, _, magic, crc, _, delta, _, _, _, _, _, _ = fields
        header = BatchHeader._make(fields)
        if magic != MAGIC_V2:
            header = _message_header(file, position, chunk, position - chunk_at)
            length = header.batch_length
        elif length < SMALLEST_LENGTH or base_offset < 0 or delta < 0:
            check_structure(file, position, header)
        size = length + LOG_OVERHEAD
        if position + size > end:
            return
        if position - chunk_at + size > len(chunk) and size <= chunk_bytes:
            chunk, chunk_at = _chunk(files, file, position, min(chunk_bytes, end - position))
        at = position - chunk_at
        data = chunk[at : at + size] if at + size <= len(chunk) else None
        if data is None or magic != MAGIC_V2 or crc32c(data[CHECKED_POSITION:]) != crc:
            _check_crc(files, file, position, header, data, chunk_bytes)
        yield position, header, data
        position += size
    yield from _last_messages(files, file, position, end)


def read_batches(
    files: Files, file: OpenFile, start: int, end: int
) -> Iterator[tuple[BatchHeader, memoryview]]:
    """Header and bytes of every whole batch in [start, end), with its CRC verified."""
    for position, header, data in scan_checked(files, file, start, end):
        if data is None:
            data = memoryview(files.pread_exact(file, header.size_bytes, position))
        yield header, data


def check_structure(file: OpenFile, position: int, header: BatchHeader) -> None:
    """Raise CorruptBatchError for a header that no v2 batch can have."""
    if header.batch_length < SMALLEST_LENGTH:
        reason = f"a batch length of {header.batch_length} is too small for a header"
        raise CorruptBatchError(file, position, reason)
    if header.base_offset < 0 or header.last_offset_delta < 0:
        last = header.base_offset + header.last_offset_delta
        raise CorruptBatchError(file, position, f"offsets {header.base_offset} to {last}")


def _message_header(
    file: OpenFile, position: int, chunk: bytes | memoryview, at: int
) -> BatchHeader:
    try:
        return read_message_header(chunk, at)
    except CorruptRecordError as error:
        is_zero = chunk[at : at + HEADER_BYTES] == _ZEROS
        raise (ZerosError if is_zero else CorruptBatchError)(file, position, str(error)) from None


def _check_crc(
    files: Files,
    file: OpenFile,
    position: int,
    header: BatchHeader,
    data: memoryview | None,
    chunk_bytes: int = CHUNK_BYTES,
) -> None:
    """Verify the checksum of a v2 batch, or of a message of magic 0 or 1."""
    checked, what = CHECKED_POSITION, "the CRC"
    checksum: Checksum = crc32c
    if header.magic != MAGIC_V2:
        checked, checksum = MAGIC_POSITION, zlib.crc32
        what = f"the CRC of this message of magic {header.magic}"
    if data is None:
        start, end = position + checked, position + header.size_bytes
        crc = _checksum(files, file, start, end, chunk_bytes, checksum)
    else:
        crc = checksum(data[checked:], 0)
    if crc != header.crc:
        raise CorruptBatchError(file, position, f"{what} is not {header.crc:#010x}")


def _last_messages(files: Files, file: OpenFile, position: int, end: int) -> Iterator[ScannedBatch]:
    """Messages of magic 0 or 1 in a rest too short for a v2 batch; other bytes are a torn tail."""
    if end - position < SMALLEST_MESSAGE_BYTES:
        return
    data = memoryview(files.pread(file, end - position, position))
    at = 0
    while at < len(data):
        try:
            header = read_message_header(data, at)
        except CorruptRecordError:
            return
        message = data[at : at + header.size_bytes]
        if len(message) < header.size_bytes:
            return
        _check_crc(files, file, position + at, header, message)
        yield position + at, header, message
        at += header.size_bytes


def _chunk(files: Files, file: OpenFile, position: int, size: int) -> tuple[memoryview, int]:
    return memoryview(files.pread(file, size, position)), position


def _checksum(
    files: Files,
    file: OpenFile,
    start: int,
    end: int,
    chunk_bytes: int,
    checksum: Checksum,
) -> int | None:
    """The checksum of [start, end), read piece by piece; None if the file ends before."""
    value = 0
    while start < end:
        piece = files.pread(file, min(chunk_bytes, end - start), start)
        if not piece:
            return None
        value = checksum(piece, value)
        start += len(piece)
    return value
