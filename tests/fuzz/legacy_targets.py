"""Targets: message sets of magic 0 and 1, and what becomes of records between them and v2 batches.

    message_sets  a message set
    conversions   which way | a message set (up), or stored batches of any magic (down)

The checksums of outer messages and of v2 batches are made right; those inside a wrapper are not.
"""

import struct
import zlib
from collections.abc import Iterator
from itertools import pairwise
from typing import TypeVar

from odradek.protocol.batch_header import (
    HEADER_BYTES,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    MAGIC_V2,
    CorruptRecordError,
    check_crc,
    read_header,
    stamp_crc,
)
from odradek.protocol.compression import CompressionType
from odradek.protocol.conversion import convert_down, convert_up
from odradek.protocol.errors import ApiError
from odradek.protocol.legacy import build_message_set, read_message_set
from odradek.protocol.message_set import LegacyRecord
from odradek.protocol.record import Record, read_records
from odradek.protocol.record_batch import build_batch
from tests.fuzz.record_targets import MAX_CONTENT_BYTES, UNPACKED
from tests.fuzz.target import Target
from tests.support.golden import GOLDEN, golden_records

MESSAGE_SETS = GOLDEN.parent / "message_sets"
# Which way, never renumber: bit 0 the magic (down) or the topic's LogAppendTime (up).
UP, DOWN, DOWN_FROM_THE_MIDDLE = 0, 2, 4
_MIDDLE = 1
T = TypeVar("T")
_SIZE = struct.Struct(">i")
_CRC = struct.Struct(">I")
_SIZE_POSITION, _CRC_POSITION = 8, 12


def read_set(data: bytes) -> None:
    """A message set, its last message cut off or not, its checksums asked for or not."""
    lenient, _ = _walked(data, check_crc=False, whole=False)
    for content in (data, with_checksums(data)):
        for whole in (False, True):
            strict, _ = _walked(content, check_crc=True, whole=whole)
            assert strict == lenient[: len(strict)]
    for magic in (0, 1):
        _check_written(magic, [each for each in lenient if each.magic == magic])


def _walked(data: bytes, *, check_crc: bool, whole: bool) -> tuple[list[LegacyRecord], str | None]:
    """What can be read, and why it ended early."""
    found: list[LegacyRecord] = []
    try:
        found.extend(
            read_message_set(data, max_bytes=MAX_CONTENT_BYTES, check_crc=check_crc, whole=whole)
        )
    except CorruptRecordError as error:
        return found, str(error)
    return found, None


def _check_written(magic: int, records: list[LegacyRecord]) -> None:
    """The records in a new set, plain, and compressed where their offsets ascend."""
    plain = [Record(each.key, each.value, each.timestamp_ms, (), each.offset) for each in records]
    offsets = [each.offset for each in records]
    ascend = offsets[:1] >= [0] and all(one < other for one, other in pairwise(offsets))
    for codec in (
        (CompressionType.NONE, CompressionType.GZIP) if ascend else (CompressionType.NONE,)
    ):
        written = build_message_set(plain, magic=magic, compression=codec)
        again, why = _walked(bytes(written), check_crc=True, whole=True)
        assert why is None, why
        assert [each[:4] for each in again] == [each[:4] for each in records]


def with_checksums(data: bytes) -> bytes:
    """Messages and batches behind each other, each with the checksum that its bytes should have."""
    content = bytearray(data)
    position = 0
    while position + MAGIC_POSITION < len(content):
        size = LOG_OVERHEAD + _SIZE.unpack_from(content, position + _SIZE_POSITION)[0]
        is_batch = content[position + MAGIC_POSITION] == MAGIC_V2
        if not (HEADER_BYTES if is_batch else MAGIC_POSITION) < size <= len(content) - position:
            break
        whole = memoryview(content)[position : position + size]
        if is_batch:
            stamp_crc(whole)
        else:
            _CRC.pack_into(whole, _CRC_POSITION, zlib.crc32(whole[MAGIC_POSITION:]))
        position += size
    return bytes(content)


def set_seeds() -> Iterator[bytes]:
    """Kafka's own sets, and small ones."""
    for path in sorted(MESSAGE_SETS.glob("*.bin")):
        yield path.read_bytes()[: 2 << 10]
    for magic in (0, 1):
        for codec in (CompressionType.NONE, CompressionType.GZIP, CompressionType.LZ4):
            yield bytes(build_message_set(golden_records(2), magic=magic, compression=codec))


# --- conversions


def convert(data: bytes) -> None:
    """A produced set as a batch, or stored batches as a set: the same keys and values."""
    if not data:
        return
    way, content = data[0], with_checksums(data[1:])
    try:
        if way < DOWN:
            _up(content, log_append_time=bool(way & 1))
        else:
            _down(content, way & 1, _MIDDLE if way >= DOWN_FROM_THE_MIDDLE else 0)
    except (ApiError, CorruptRecordError):
        return


def _up(content: bytes, *, log_append_time: bool) -> None:
    batch = convert_up(content, log_append_time=log_append_time, max_bytes=MAX_CONTENT_BYTES)
    sent = list(read_message_set(content, max_bytes=MAX_CONTENT_BYTES))
    if not batch:
        assert not sent
        return
    check_crc(batch, read_header(batch))
    stored = [(each.key, each.value, each.timestamp_ms) for each in survived(read_records(batch))]
    assert stored == [(each.key, each.value, each.timestamp_ms) for each in sent]


def _down(content: bytes, magic: int, first_offset: int) -> None:
    made = convert_down(
        content, magic=magic, first_offset=first_offset, max_bytes=MAX_CONTENT_BYTES
    )
    if any(each != MAGIC_V2 for each in _magics(content)):
        return  # what is left as it is may be broken inside
    offsets = [each.offset for each in survived(read_message_set(made, whole=True))]
    assert offsets == sorted(set(offsets)) or len(_magics(content)) > 1


def _magics(content: bytes) -> list[int]:
    found, position = [], 0
    while position + MAGIC_POSITION < len(content):
        found.append(content[position + MAGIC_POSITION])
        size = LOG_OVERHEAD + _SIZE.unpack_from(content, position + _SIZE_POSITION)[0]
        if size <= 0:
            break
        position += size
    return found


def survived(walk: Iterator[T]) -> Iterator[T]:
    """What was made here must be readable: its errors are no refusals."""
    try:
        yield from walk
    except CorruptRecordError as error:
        raise AssertionError(f"what was made cannot be read: {error}") from error


def conversion_seeds() -> Iterator[bytes]:
    """Sets on their way up, batches and sets on their way down."""
    sets = list(set_seeds())
    for way in (UP, UP + 1, DOWN, DOWN + 1):
        yield from (bytes([way]) + each for each in sets)
    for compression in CompressionType:
        batch = bytes(build_batch(golden_records(3), compression=compression))
        for way in (DOWN, DOWN + 1, DOWN_FROM_THE_MIDDLE, DOWN_FROM_THE_MIDDLE + 1):
            yield bytes([way]) + batch
            yield bytes([way]) + batch + sets[-1]


TARGETS = {
    "message_sets": Target(read_set, set_seeds, memory_base=UNPACKED),
    "conversions": Target(convert, conversion_seeds, memory_base=UNPACKED),
}
