"""Walks over the batches of a segment's file, in bounded memory.

`scan_headers` reads headers only: a few kilobytes per read while batches are small, one header per
read once they are large. `scan_checked` reads every byte and verifies structure and CRC, holding
one chunk; a batch larger than that is checksummed piece by piece. `read_batches` gives whole
batches, checked, to whoever needs what is inside.

All stop without a word at a batch that the file does not hold completely (a torn tail; Kafka's
FileLogInputStream does the same) and raise CorruptBatchError at one that cannot be a batch.
"""

import struct
import zlib
from collections.abc import Callable, Iterator
from typing import NamedTuple

from crc32c import crc32c

from ..protocol.batch_header import (
    CHECKED_POSITION,
    HEADER_BYTES,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    MAGIC_V2,
    BatchHeader,
    CorruptRecordError,
    read_header,
)
from .files import Files, OpenFile

HEADER_CHUNK_BYTES = 4096
CHUNK_BYTES = 1 << 20
SMALLEST_LENGTH = HEADER_BYTES - LOG_OVERHEAD
_SMALLEST_OLD_LENGTH = 14  # CRC, magic, attributes, two lengths
_CRC32 = struct.Struct(">I")


class CorruptBatchError(CorruptRecordError):
    """What lies at `position` of a segment is no batch, or not the one that was written."""

    def __init__(self, file: OpenFile, position: int, reason: str) -> None:
        super().__init__(f"{file.path} at byte {position}: {reason}")
        self.position = position


class OldFormatError(Exception):
    """A batch of message format v0 or v1: from before Kafka 0.11, and not served."""


class ScannedBatch(NamedTuple):
    """A sound batch: where it starts, its header, its bytes (None where they exceed a chunk)."""

    position: int
    header: BatchHeader
    data: memoryview | None


def scan_headers(
    files: Files, file: OpenFile, start: int, end: int
) -> Iterator[tuple[int, BatchHeader]]:
    """Position and header of every batch that lies whole in [start, end). `start` begins one."""
    position = chunk_at = start
    chunk = b""
    while position + HEADER_BYTES <= end:
        if position - chunk_at + HEADER_BYTES > len(chunk):
            chunk = files.pread(file, min(HEADER_CHUNK_BYTES, end - position), position)
            chunk_at = position
            if len(chunk) < HEADER_BYTES:
                return
        header = read_header(chunk, position - chunk_at)
        check_structure(files, file, position, header)
        size = header.batch_length + LOG_OVERHEAD
        if position + size > end:
            return
        yield position, header
        position += size


def scan_checked(
    files: Files, file: OpenFile, start: int, end: int, *, chunk_bytes: int = CHUNK_BYTES
) -> Iterator[ScannedBatch]:
    """Every batch that lies whole in [start, end), its CRC verified."""
    position = chunk_at = start
    chunk = memoryview(b"")
    while position + HEADER_BYTES <= end:
        if position - chunk_at + HEADER_BYTES > len(chunk):
            chunk, chunk_at = _chunk(files, file, position, min(chunk_bytes, end - position))
            if len(chunk) < HEADER_BYTES:
                return
        header = read_header(chunk, position - chunk_at)
        check_structure(files, file, position, header)
        size = header.batch_length + LOG_OVERHEAD
        if position + size > end:
            return
        if position - chunk_at + size > len(chunk) and size <= chunk_bytes:
            chunk, chunk_at = _chunk(files, file, position, min(chunk_bytes, end - position))
        at = position - chunk_at
        data = chunk[at : at + size] if at + size <= len(chunk) else None
        if data is None:
            start = position + CHECKED_POSITION
            crc = _checksum(files, file, start, position + size, chunk_bytes)
        else:
            crc = crc32c(data[CHECKED_POSITION:])
        if crc != header.crc:
            raise CorruptBatchError(file, position, f"the CRC is not {header.crc:#010x}")
        yield ScannedBatch(position, header, data)
        position += size


def read_batches(
    files: Files, file: OpenFile, start: int, end: int
) -> Iterator[tuple[BatchHeader, memoryview]]:
    """Every batch that lies whole in [start, end), its CRC verified, with all its bytes."""
    for position, header, data in scan_checked(files, file, start, end):
        if data is None:
            data = memoryview(files.pread_exact(file, header.size_bytes, position))
        yield header, data


def check_structure(files: Files, file: OpenFile, position: int, header: BatchHeader) -> None:
    """Raises CorruptBatchError or OldFormatError for a header that no v2 batch can have."""
    if header.magic != MAGIC_V2:
        if _is_old_format(files, file, position, header):
            raise OldFormatError(
                f"{file.path} at byte {position}: message format v{header.magic} is not served; "
                "rewrite the topic with Apache Kafka 0.11 or later"
            )
        raise CorruptBatchError(file, position, f"no batch has magic {header.magic}")
    if header.batch_length < SMALLEST_LENGTH:
        reason = f"a batch length of {header.batch_length} holds no header"
        raise CorruptBatchError(file, position, reason)
    if header.base_offset < 0 or header.last_offset_delta < 0:
        last = header.base_offset + header.last_offset_delta
        raise CorruptBatchError(file, position, f"offsets {header.base_offset} to {last}")


def _is_old_format(files: Files, file: OpenFile, position: int, header: BatchHeader) -> bool:
    """Whether a sound v0 or v1 message lies here, rather than garbage: those must not be cut."""
    if header.magic not in (0, 1) or header.batch_length < _SMALLEST_OLD_LENGTH:
        return False
    (stored,) = _CRC32.unpack_from(files.pread(file, _CRC32.size, position + LOG_OVERHEAD))
    start, end = position + MAGIC_POSITION, position + header.batch_length + LOG_OVERHEAD
    return bool(_checksum(files, file, start, end, CHUNK_BYTES, zlib.crc32) == stored)


def _chunk(files: Files, file: OpenFile, position: int, size: int) -> tuple[memoryview, int]:
    return memoryview(files.pread(file, size, position)), position


def _checksum(
    files: Files,
    file: OpenFile,
    start: int,
    end: int,
    chunk_bytes: int,
    checksum: Callable[[bytes, int], int] = crc32c,
) -> int | None:
    """The checksum of [start, end), read piece by piece; None where the file ends before."""
    value = 0
    while start < end:
        piece = files.pread(file, min(chunk_bytes, end - start), start)
        if not piece:
            return None
        value = checksum(piece, value)
        start += len(piece)
    return value
