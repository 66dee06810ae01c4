"""Targets: record batches, what validation makes of them, segments full of them, compressed bytes.

batches      a whole v2 batch
appends      which rules | a whole v2 batch      (top bit of the first: leave length and CRC)
segments     the bytes of a segment's file
compression  which codec | a compressed stream
"""

import zlib
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

from odradek.protocol.any_batch import SMALLEST_MESSAGE_BYTES
from odradek.protocol.batch_header import (
    CHECKED_POSITION,
    HEADER_BYTES,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    MAGIC_V2,
    BatchHeader,
    CorruptRecordError,
    batch_prefix,
    check_crc,
    read_header,
    stamp_crc,
)
from odradek.protocol.compression import (
    CompressionType,
    DecompressionError,
    compress,
    decompress,
)
from odradek.protocol.errors import ApiError
from odradek.protocol.legacy import build_message_set
from odradek.protocol.message_set import MAGIC_V0, MAGIC_V1
from odradek.protocol.record import Record, read_records, skim_records
from odradek.protocol.record_batch import build_batch
from odradek.storage.append_rules import AppendRules
from odradek.storage.batch_scan import (
    CorruptBatchError,
    read_batches,
    scan_checked,
    scan_headers,
)
from odradek.storage.batch_validator import (
    CheckedBatch,
    check_client_batch,
    read_coordinator_batch,
)
from odradek.storage.files import OpenFile
from odradek.storage.record_walk import LONG, WalkedRecords, WalkTooLongError
from tests.fuzz.one_file import OneFile
from tests.fuzz.target import Target
from tests.support.golden import GOLDEN, golden_records

# As much as a batch may hold here: a mutated length must not cost a second.
MAX_CONTENT_BYTES = 64 << 10
# A byte of compressed data may stand for a thousand.
UNPACKED = 16 << 20
NOW_MS = 1_700_000_000_000
AS_IT_IS = 0x80
_LENGTH_POSITION = 8


# --- batches


def read_batch(data: bytes) -> None:
    """Both walks over the records, and a batch made of what they found."""
    try:
        header = read_header(data)
    except CorruptRecordError:
        return
    records, why = _walked(read_records, data)
    skims, why_not = _walked(skim_records, data)
    assert (why is None) == (why_not is None), f"read: {why}, skim: {why_not}"
    assert [
        (record.offset - header.base_offset, record.timestamp_ms, record.key is not None)
        for record in records
    ] == [(skim.offset_delta, skim.timestamp_ms, skim.has_key) for skim in skims]
    if why is None and records:
        _check_rebuilt(header, records)


def _walked(walk: Callable[..., Iterator[Any]], data: bytes) -> tuple[list[Any], str | None]:
    """What a walk gave, and why it ended early."""
    found: list[Any] = []
    try:
        found.extend(walk(data, max_bytes=MAX_CONTENT_BYTES))
    except CorruptRecordError as error:
        return found, str(error)
    return found, None


def _check_rebuilt(header: BatchHeader, records: list[Record]) -> None:
    built = build_batch(
        records,
        base_offset=header.base_offset,
        compression=header.compression,
        log_append_time_ms=header.max_timestamp if header.is_log_append_time else None,
    )
    check_crc(built, read_header(built))
    again = list(read_records(built))
    assert [each[:4] for each in again] == [each[:4] for each in records]


def batch_seeds() -> Iterator[bytes]:
    """Kafka's own batches, and small ones of each codec."""
    for path in sorted(GOLDEN.glob("batch-*.bin")):
        data = path.read_bytes()
        if len(data) < 2 << 10:
            yield data
    for compression in CompressionType:
        yield bytes(build_batch(golden_records(3), compression=compression))
    yield bytes(build_batch(golden_records(2), log_append_time_ms=NOW_MS, base_offset=7))


# --- appends


def _rules() -> list[AppendRules]:
    """Every way to treat a batch that differs, in an order that must not change."""
    return [
        AppendRules(
            max_message_bytes=1 << 20,
            compression=compression,
            compression_level=None,
            log_append_time=log_append_time,
            timestamp_before_max_ms=10**9,
            timestamp_after_max_ms=2**63 - 1,
            compacted=compacted,
            read_records=read_all,
        )
        for compression, log_append_time, compacted, read_all in product(
            [None, *CompressionType], [False, True], [False, True], [False, True]
        )
    ]


RULES = _rules()


def append_batch(data: bytes) -> None:
    """What a produced batch becomes under some rules is a sound batch of the same records."""
    if not data:
        return
    rules = RULES[(data[0] & ~AS_IT_IS) % len(RULES)]
    batch = bytes(data[1:]) if data[0] & AS_IT_IS else _made_whole(data[1:])
    try:
        checked = _checked(batch, rules)
    except ApiError:
        _check_coordinators(batch, rules)
        return
    stored = batch_prefix(0, checked.header.batch_length, 0) + b"".join(map(bytes, checked.parts))
    header = read_header(stored)
    assert header.size_bytes == len(stored)
    assert header[3:] == checked.header[3:]
    check_crc(stored, header)
    if rules.read_records:
        timeless = rules.log_append_time or read_header(batch).is_log_append_time
        assert _content(stored, timeless) == _content(batch, timeless)


def _checked(batch: bytes, rules: AppendRules) -> CheckedBatch:
    try:
        return check_client_batch(batch, rules, NOW_MS)
    except WalkTooLongError as wanted:
        walked = wanted.walk(wanted.batch, limits=LONG)
        assert isinstance(walked, WalkedRecords)
        return check_client_batch(wanted.batch, rules, NOW_MS, walked)


def _content(batch: bytes, timeless: bool) -> list[Record]:
    """The records, without their offsets, and without their times if those may change."""
    records = [each._replace(offset=0) for each in read_records(batch)]
    if timeless:
        return [each._replace(timestamp_ms=NOW_MS) for each in records]
    return records


def _check_coordinators(data: bytes, rules: AppendRules) -> None:
    """What is no produced batch may still be a batch of a coordinator."""
    try:
        header = read_coordinator_batch(data, rules)
    except ApiError:
        return
    assert header.size_bytes == len(data)


def _made_whole(data: bytes) -> bytes:
    """The batch with the length and the checksum that its bytes should have."""
    if len(data) < HEADER_BYTES:
        return bytes(data)
    batch = bytearray(data)
    length = len(batch) - LOG_OVERHEAD
    batch[:LOG_OVERHEAD] = bytes(_LENGTH_POSITION) + length.to_bytes(4, "big")
    stamp_crc(batch)
    return bytes(batch)


def append_seeds() -> Iterator[bytes]:
    """A plain and a compressed batch under all rules, the others under the strictest."""
    plain, packed = (
        bytes(build_batch(golden_records(3), compression=compression))
        for compression in (CompressionType.NONE, CompressionType.LZ4)
    )
    for number in range(len(RULES)):
        yield bytes([number]) + plain
        yield bytes([number]) + packed
    for batch in batch_seeds():
        yield bytes([1]) + batch
        yield bytes([1 | AS_IT_IS]) + batch


# --- segments


def scan_segment(data: bytes) -> None:
    """The walks over a segment agree, however little they read at a time."""
    content = _stamped(data)
    files = OneFile(content)
    file = OpenFile(-1, Path("00000000000000000000.log"), len(content))
    end = len(content)
    headers, _ = _scanned(scan_headers(files, file, 0, end))
    checked, why = _scanned(scan_checked(files, file, 0, end))
    pieces, why_pieces = _scanned(scan_checked(files, file, 0, end, chunk_bytes=HEADER_BYTES))
    whole, why_whole = _scanned(read_batches(files, file, 0, end))
    assert why == why_pieces == why_whole
    seen = [(position, header) for position, header, _ in checked]
    assert seen == [(position, header) for position, header, _ in pieces]
    assert [header for _, header in seen] == [header for header, _ in whole]
    assert headers[: len(seen)] == seen
    for header, batch in whole:
        assert len(batch) == header.size_bytes
        if header.magic == MAGIC_V2:
            check_crc(batch, header)
        else:
            assert message_crc(batch) == header.crc


def message_crc(message: memoryview) -> int:
    return zlib.crc32(message[MAGIC_POSITION:])


def _scanned(walk: Iterator[Any]) -> tuple[list[Any], str | None]:
    found: list[Any] = []
    try:
        found.extend(walk)
    except CorruptBatchError as error:
        return found, str(error)
    return found, None


def _stamped(data: bytes) -> bytes:
    """The file with the right checksum in each batch that lies whole in it, but for every fifth."""
    content = bytearray(data)
    position = number = 0
    while position + HEADER_BYTES <= len(content):
        size = read_header(content, position).size_bytes
        if not SMALLEST_MESSAGE_BYTES <= size <= len(content) - position:
            break
        number += 1
        if number % 5:
            batch = memoryview(content)[position : position + size]
            if content[position + MAGIC_POSITION] == MAGIC_V2:
                stamp_crc(batch)
            else:
                batch[LOG_OVERHEAD:MAGIC_POSITION] = message_crc(batch).to_bytes(4, "big")
        position += size
    return bytes(content)


def segment_seeds() -> Iterator[bytes]:
    """Segments of one to six batches, one of them cut, and of old messages before batches."""
    batches = [bytes(build_batch(golden_records(2), base_offset=2 * number)) for number in range(6)]
    yield b"".join(batches)
    yield b"".join(batches[:4])[:-CHECKED_POSITION]
    for magic in (MAGIC_V0, MAGIC_V1):
        for codec in (CompressionType.NONE, CompressionType.GZIP):
            old = build_message_set(golden_records(3), magic=magic, compression=codec)
            yield bytes(old) + batches[3]
            yield bytes(old)
    yield from batch_seeds()


# --- compression


def unpack(data: bytes) -> None:
    """A compressed stream; what it held is packed and unpacked again."""
    if not data:
        return
    codec = CompressionType(data[0] % len(CompressionType))
    try:
        content = decompress(codec, memoryview(data)[1:], max_bytes=MAX_CONTENT_BYTES)
    except DecompressionError:
        return
    assert len(content) <= MAX_CONTENT_BYTES
    assert decompress(codec, compress(codec, content), max_bytes=MAX_CONTENT_BYTES) == content


def compressed_seeds() -> Iterator[bytes]:
    """Nothing, a word, and a long run, by each codec."""
    for codec in CompressionType:
        for content in (b"", b"odradek", b"ab" * 500):
            yield bytes([codec]) + compress(codec, content)


TARGETS = {
    "batches": Target(read_batch, batch_seeds, memory_base=UNPACKED),
    "appends": Target(append_batch, append_seeds, memory_base=UNPACKED),
    "segments": Target(scan_segment, segment_seeds),
    "compression": Target(unpack, compressed_seeds, memory_base=UNPACKED),
}
