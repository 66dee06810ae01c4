"""The five compression types: what other clients write, limits, broken streams, lazy imports."""

import contextlib
import gzip
import random
import struct
import subprocess
import sys
import time
import zlib

import cramjam
import lz4.frame
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.protocol.codec_libraries import lz4_cramjam, lz4_library
from odradek.protocol.compressed_pieces import decompressed_pieces
from odradek.protocol.compression import (
    MAX_DECOMPRESSED_BYTES,
    NO_LIMIT,
    SNAPPY_BLOCK_BYTES,
    SNAPPY_HEADER,
    CompressionType,
    DecompressionError,
    StreamTooLargeError,
    compress,
    decompress,
)
from odradek.protocol.lz4_header import with_right_checksum
from tests.support.java_program import java_answers

NONE, GZIP, SNAPPY, LZ4, ZSTD = CompressionType
CODECS = [GZIP, SNAPPY, LZ4, ZSTD]
TEXT = b"the quick brown fox " * 10_000

pytestmark = pytest.mark.usefixtures("codec_libraries")


@settings(deadline=None)
@given(
    st.sampled_from(CompressionType),
    st.binary(max_size=100_000),
    st.sampled_from([MAX_DECOMPRESSED_BYTES, NO_LIMIT]),
)
def test_what_was_compressed_comes_back(
    codec: CompressionType, data: bytes, max_bytes: int
) -> None:
    assert decompress(codec, compress(codec, data), max_bytes=max_bytes) == data


# Every level that a topic may ask for at the ends of its range, and the defaults.
LEVELS = {
    NONE: [0],
    GZIP: [-1, 1, 9],
    SNAPPY: [0],
    LZ4: [1, 2, 9, 12, 17],
    ZSTD: [-131_072, -5, 3, 22],
}
DEFAULTS = {GZIP: -1, LZ4: 9, ZSTD: 3}


@pytest.mark.parametrize("codec", CompressionType)
def test_levels_change_the_size_and_not_the_content(
    codec: CompressionType, codec_libraries: str
) -> None:
    is_cramjam = codec_libraries == "cramjam" or lz4_library() is lz4_cramjam
    has_one_level = codec is LZ4 and is_cramjam
    text = "\n".join(f"{n}: {n * 7919 % 10_007}" for n in range(5000)).encode()
    packed = {level: compress(codec, text, level) for level in LEVELS[codec]}
    for each in packed.values():
        assert decompress(codec, each) == text
    if codec in DEFAULTS:
        assert packed[DEFAULTS[codec]] == compress(codec, text)
        assert has_one_level or len(packed[LEVELS[codec][-1]]) < len(compress(codec, text))


def test_the_default_level_of_lz4_is_the_fast_one_as_in_kafka() -> None:
    assert len(compress(LZ4, TEXT, 8)) <= len(compress(LZ4, TEXT, 9))
    assert compress(LZ4, TEXT, 9) == lz4.frame.compress(
        TEXT, block_size=lz4.frame.BLOCKSIZE_MAX64KB, block_linked=False, store_size=False
    )


@pytest.mark.parametrize("codec", CompressionType)
def test_views_and_bytearrays_are_taken(codec: CompressionType) -> None:
    packed = compress(codec, memoryview(bytearray(TEXT)))
    assert decompress(codec, memoryview(bytearray(packed))) == TEXT
    assert decompress(codec, memoryview(packed)) == TEXT


@pytest.mark.parametrize("codec", CODECS)
def test_nothing_is_compressed_to_a_stream_of_nothing(codec: CompressionType) -> None:
    assert decompress(codec, compress(codec, b"")) == b""


@pytest.mark.parametrize("codec", CompressionType)
def test_exactly_the_limit_is_allowed_and_a_byte_more_is_not(codec: CompressionType) -> None:
    packed = compress(codec, TEXT)
    assert decompress(codec, packed, max_bytes=len(TEXT)) == TEXT
    with pytest.raises(DecompressionError, match=f"{codec.name.lower()} data holds more than"):
        decompress(codec, packed, max_bytes=len(TEXT) - 1)


@pytest.mark.parametrize("codec", CODECS)
def test_a_stream_cut_at_any_byte_is_refused(codec: CompressionType) -> None:
    packed = compress(codec, b"abcdefgh" * 20 + bytes(range(256)))
    # Cut behind its header or between two blocks, a framed snappy stream is a shorter one.
    first = len(SNAPPY_HEADER) + 1 if codec is SNAPPY else 1
    for size in range(first, len(packed)):
        with pytest.raises(DecompressionError, match=f"not {codec.name.lower()} data"):
            decompress(codec, packed[:size])


@pytest.mark.parametrize("codec", CODECS)
def test_garbage_is_refused(codec: CompressionType) -> None:
    for garbage in (b"\xff" * 100, b"\x00" * 100 + b"\x01", b"GET / HTTP/1.1\r\n\r\n"):
        with pytest.raises(DecompressionError):
            decompress(codec, garbage)


@settings(deadline=None)
@given(st.sampled_from(CODECS), st.binary(max_size=300))
def test_arbitrary_bytes_raise_nothing_else(codec: CompressionType, data: bytes) -> None:
    with contextlib.suppress(DecompressionError):
        assert len(decompress(codec, data, max_bytes=10_000)) <= 10_000


def test_members_of_gzip_behind_each_other_are_one_stream() -> None:
    assert decompress(GZIP, gzip.compress(b"one ") + gzip.compress(b"two")) == b"one two"


def test_what_follows_the_last_gzip_member_is_left_alone() -> None:
    assert decompress(GZIP, gzip.compress(b"one") + bytes(8)) == b"one"


TWO = gzip.compress(b"two", mtime=0)
NAMED_TWO = TWO[:3] + b"\x08" + TWO[4:10] + b"a name\0" + TWO[10:]
LONG_NAMED_TWO = TWO[:3] + b"\x18" + TWO[4:10] + b"n" * 500 + b"\0a comment\0" + TWO[10:]
CHECKED_HEAD = TWO[:3] + b"\x02" + TWO[4:10]
CHECKED_TWO = CHECKED_HEAD + struct.pack("<H", zlib.crc32(CHECKED_HEAD) & 0xFFFF) + TWO[10:]
EXTRA_TWO = TWO[:3] + b"\x04" + TWO[4:10] + b"\x03\0abc" + TWO[10:]
# What stands after a member, and what Java's GZIPInputStream makes of it; None is an error.
AFTER_A_MEMBER = {
    "a member": (TWO, b"two"),
    "a member with a name": (NAMED_TWO, b"two"),
    "a member with a long name and a comment": (LONG_NAMED_TWO, b"two"),
    "a member with a checksum of its header": (CHECKED_TWO, b"two"),
    "a member with an extra field": (EXTRA_TWO, b"two"),
    **{f"{size} bytes of a member": (TWO[:size], b"") for size in range(1, 19)},
    **{f"{size} bytes of a member": (TWO[:size], None) for size in range(19, len(TWO))},
    "18 bytes of which 10 are a header": (TWO[:10] + b"\x07" * 8, b""),
    "19 bytes of which 10 are a header": (TWO[:10] + b"\x07" * 9, None),
    "a member with another method": (TWO[:2] + b"\x07" + TWO[3:], b""),
    "a member whose header has a wrong checksum": (TWO[:3] + b"\x02" + TWO[4:], b""),
    "a member whose extra field is longer than the data": (TWO[:3] + b"\x04" + TWO[4:], b""),
    "a name without an end": (TWO[:3] + b"\x08" + TWO[4:10] + b"n" * 500, b""),
    "a wrong checksum": (TWO[:-8] + bytes(4) + TWO[-4:], None),
    "a wrong length": (TWO[:-4] + bytes(4), None),
    "the magic alone": (b"\x1f\x8b", b""),
    "the magic and other bytes": (b"\x1f\x8b" + bytes(30), b""),
    "zeros and a member": (bytes(20) + TWO, b""),
    "other bytes": (bytes(range(1, 40)), b""),
}


@pytest.mark.parametrize("tail", AFTER_A_MEMBER)
def test_what_follows_a_gzip_member_is_read_or_ignored_as_in_java(tail: str) -> None:
    data, content = AFTER_A_MEMBER[tail]
    if content is None:
        with pytest.raises(DecompressionError):
            decompress(GZIP, gzip.compress(b"one ") + data)
    else:
        assert decompress(GZIP, gzip.compress(b"one ") + data) == b"one " + content


@pytest.mark.slow
@pytest.mark.java
def test_kafka_reads_and_ignores_the_same_after_a_gzip_member() -> None:
    first = gzip.compress(b"one ")
    answers = java_answers(
        "GzipMembers.java", [(first + data).hex() for data, _ in AFTER_A_MEMBER.values()]
    )
    expected = {
        tail: "error" if content is None else (b"one " + content).hex()
        for tail, (_, content) in AFTER_A_MEMBER.items()
    }
    assert dict(zip(AFTER_A_MEMBER, answers, strict=True)) == expected


def test_a_limit_holds_over_all_gzip_members() -> None:
    packed = gzip.compress(bytes(600)) * 2
    with pytest.raises(DecompressionError, match="more than 1000 bytes"):
        decompress(GZIP, packed, max_bytes=1000)


def test_a_raw_snappy_block_is_read_as_librdkafka_writes_it() -> None:
    assert decompress(SNAPPY, bytes(cramjam.snappy.compress_raw(TEXT))) == TEXT


def test_snappy_is_written_in_blocks_as_java_writes_it() -> None:
    packed = compress(SNAPPY, TEXT)
    assert packed.startswith(b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01")
    (length,) = struct.unpack_from(">i", packed, 16)
    first = bytes(cramjam.snappy.decompress_raw(packed[20 : 20 + length]))
    assert first == TEXT[:SNAPPY_BLOCK_BYTES]


def test_framed_snappy_streams_behind_each_other_are_one() -> None:
    assert decompress(SNAPPY, compress(SNAPPY, b"one ") + compress(SNAPPY, b"two")) == b"one two"


def test_another_version_in_the_snappy_header_is_read() -> None:
    packed = compress(SNAPPY, TEXT)
    other = packed[:8] + struct.pack("<ii", 1, 1) + packed[16:]
    assert decompress(SNAPPY, other) == TEXT


@pytest.mark.parametrize("length", [-1, 1 << 30])
def test_a_snappy_block_that_lies_about_its_length_is_refused(length: int) -> None:
    with pytest.raises(DecompressionError, match=f"block at byte 16 claims {length} bytes"):
        decompress(SNAPPY, SNAPPY_HEADER + struct.pack(">i", length) + bytes(10))


def test_a_snappy_block_that_claims_gigabytes_is_refused_before_it_is_unpacked() -> None:
    claims_4_gib = b"\xff\xff\xff\xff\x0f" + bytes(10)
    with pytest.raises(DecompressionError, match="more than"):
        decompress(SNAPPY, claims_4_gib)


LZ4_TEXTS = (
    b"",
    b"a",
    TEXT,
    bytes(300_000),
    random.Random(2).randbytes(150_000) * 2,
    b"".join(b"%d: %d" % (n, n * 7919 % 10_007) for n in range(100_000)),
)
LZ4_FLAGS = {"block_linked", "content_checksum", "block_checksum", "store_size"}


@pytest.mark.parametrize("block_size", [4, 5, 6, 7])
@pytest.mark.parametrize("flags", range(1 << len(LZ4_FLAGS)))
def test_every_kind_of_lz4_frame_is_read(flags: int, block_size: int) -> None:
    chosen = {name: bool(flags >> bit & 1) for bit, name in enumerate(sorted(LZ4_FLAGS))}
    for text in LZ4_TEXTS:
        packed = lz4.frame.compress(text, block_size=block_size, **chosen)
        assert decompress(LZ4, packed + b"rest", max_bytes=len(text)) == text
        assert b"".join(decompressed_pieces(LZ4, memoryview(packed))) == text
        if text:
            with pytest.raises(StreamTooLargeError):
                decompress(LZ4, packed, max_bytes=len(text) - 1)


def test_every_byte_of_an_lz4_frame_is_under_a_checksum() -> None:
    packed = lz4.frame.compress(
        TEXT[:500], content_checksum=True, block_checksum=True, store_size=True
    )
    for position in range(len(packed)):
        damaged = bytearray(packed)
        damaged[position] ^= 1
        with pytest.raises(DecompressionError):
            decompress(LZ4, damaged)


def test_a_content_size_of_0_in_an_lz4_frame_is_one_that_is_not_known() -> None:
    packed = bytearray(lz4.frame.compress(TEXT, store_size=True))
    packed[6:14] = bytes(8)
    assert decompress(LZ4, with_right_checksum(packed)) == TEXT
    packed[6] = 1
    with pytest.raises(DecompressionError):
        decompress(LZ4, with_right_checksum(packed))


def test_an_lz4_frame_to_skip_is_read_as_nothing() -> None:
    assert decompress(LZ4, b"\x5f\x2a\x4d\x18\x02\0\0\0abrest") == b""


def test_lz4_blocks_are_written_independent_of_each_other_for_java() -> None:
    flags = compress(LZ4, TEXT)[4]
    version, independent = flags >> 6, flags >> 5 & 1
    assert (version, independent) == (1, 1)


def test_what_follows_the_lz4_frame_is_left_alone() -> None:
    assert decompress(LZ4, compress(LZ4, b"one") + b"rest") == b"one"


def test_zstd_is_read_with_and_without_its_size() -> None:
    for write_size in (True, False):
        packer = zstandard.ZstdCompressor(write_content_size=write_size, write_checksum=True)
        assert decompress(ZSTD, packer.compress(TEXT)) == TEXT


def test_zstd_frames_behind_each_other_are_one_stream() -> None:
    assert decompress(ZSTD, compress(ZSTD, b"one ") + compress(ZSTD, b"two")) == b"one two"


def test_bytes_behind_a_zstd_frame_that_are_no_frame_are_refused() -> None:
    with pytest.raises(DecompressionError, match="not zstd data"):
        decompress(ZSTD, compress(ZSTD, b"one") + b"rest")


# How a bomb begins and ends, and what it holds very often; each of 256 MiB at least.
BOMBS = {
    "a zstd frame": (ZSTD, compress(ZSTD, bytes(256 << 20)), b""),
    "zstd blocks": (ZSTD, b"\x28\xb5\x2f\xfd\x00\x58", b"\x02\x00\x10a" * 2048 + b"\1\0\0"),
    "an lz4 frame": (LZ4, compress(LZ4, bytes(256 << 20)), b""),
    "large lz4 blocks": (LZ4, lz4.frame.compress(bytes(256 << 20), block_size=7), b""),
}
REFUSES_A_BOMB = """
import re, sys
from pathlib import Path
from odradek.protocol import compression
from odradek.protocol.codec_libraries import lz4_cramjam, zstd_cramjam
if sys.argv[2] == "cramjam":
    compression.lz4_library = lambda: lz4_cramjam
    compression.zstd_library = lambda: zstd_cramjam
bomb = sys.stdin.buffer.read()
codec = compression.CompressionType(int(sys.argv[1]))
try: compression.decompress(codec, bomb, max_bytes=1 << 20)
except compression.StreamTooLargeError: print("refused")
print(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="/proc tells the peak of this process alone")
@pytest.mark.parametrize("kind", BOMBS)
def test_a_bomb_costs_little_memory(kind: str, codec_libraries: str) -> None:
    codec, head, rest = BOMBS[kind]
    bomb = head + rest
    assert len(bomb) < 2 << 20
    command = [sys.executable, "-c", REFUSES_A_BOMB, str(int(codec)), codec_libraries]
    done = subprocess.run(command, input=bomb, capture_output=True, check=True)
    refused, peak_kib = done.stdout.split()
    assert refused == b"refused"
    assert int(peak_kib) < 96 << 10


def test_no_codec_is_imported_before_it_is_used() -> None:
    script = (
        "import sys, odradek.protocol.record_batch\n"
        "print(sorted({'lz4', 'zstandard', 'cramjam', 'zlib_ng'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert done.stdout.strip() == b"[]"


EMPTY_GZIP = gzip.compress(b"")
EMPTY_ZSTD = zstandard.ZstdCompressor(write_content_size=False).compress(b"")
EMPTY_SNAPPY = struct.pack(">i", 1) + b"\0"
ZSTD_BLOCKS = b"\x28\xb5\x2f\xfd\x00\x58"
# By codec: how a stream of very many parts begins, one part, and how it ends.
MANY_PARTS = {
    "gzip members": (GZIP, b"", EMPTY_GZIP, b""),
    "snappy blocks": (SNAPPY, SNAPPY_HEADER, EMPTY_SNAPPY, b""),
    "snappy streams": (SNAPPY, SNAPPY_HEADER, SNAPPY_HEADER, b""),
    "zstd frames": (ZSTD, b"", EMPTY_ZSTD, b""),
    "zstd frames to skip": (ZSTD, b"", b"\x53\x2a\x4d\x18" + bytes(4), EMPTY_ZSTD),
    "zstd blocks": (ZSTD, ZSTD_BLOCKS, bytes(3), b"\1\0\0"),
    "lz4 blocks": (LZ4, compress(LZ4, b"")[:7], struct.pack("<I", 0x80000001) + b"a", bytes(4)),
}


@pytest.mark.parametrize("kind", MANY_PARTS)
def test_the_time_for_very_many_parts_grows_no_faster_than_the_stream(kind: str) -> None:
    codec, head, part, end = MANY_PARTS[kind]

    def seconds(parts: int) -> float:
        stream = head + part * parts + end
        runs = []
        for _ in range(3):
            started = time.process_time()
            decompress(codec, stream)
            runs.append(time.process_time() - started)
        return min(runs)

    assert seconds(48_000) < 40 * max(seconds(3_000), 0.001)


@pytest.mark.parametrize("window_log", [20, 27, 28, 41])
def test_zstd_windows_are_limited_as_in_java(window_log: int) -> None:
    parameters = zstandard.ZstdCompressionParameters(window_log=20, write_content_size=False)
    compressor = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    frame = bytearray(compressor.compress(b"v" * 1000) + compressor.flush())
    frame[5] = window_log - 10 << 3
    if window_log <= 27:  # of which no more memory is used than there is content
        assert decompress(ZSTD, frame) == b"v" * 1000
    else:
        with pytest.raises(DecompressionError, match="not zstd data"):
            decompress(ZSTD, frame)


@pytest.mark.parametrize("kind", [kind for kind in MANY_PARTS if not kind.startswith("lz4")])
def test_the_parts_of_a_stream_are_counted(kind: str) -> None:
    codec, head, part, end = MANY_PARTS[kind]
    stream = head + part * 200 + end
    assert decompress(codec, stream, max_parts=402) == b""  # a zstd frame has a block
    with pytest.raises(StreamTooLargeError, match=f"{codec.name.lower()} data has more than 100"):
        decompress(codec, stream, max_parts=100)


@pytest.mark.parametrize("codec", [GZIP, LZ4])
def test_bytes_of_a_stream_whose_blocks_are_unknown_count_as_parts(codec: CompressionType) -> None:
    stream = compress(codec, random.Random(1).randbytes(1 << 20))
    with pytest.raises(StreamTooLargeError, match=f"{codec.name.lower()} data has more than 64"):
        decompress(codec, stream, max_parts=64)


def test_a_large_lz4_frame_is_read_in_pieces() -> None:
    noise = random.Random(1).randbytes(3 << 20)  # does not compress: many pieces of input
    assert decompress(LZ4, compress(LZ4, noise)) == noise
    assert decompress(LZ4, compress(LZ4, bytes(3 << 20))) == bytes(3 << 20)
    assert decompress(LZ4, compress(LZ4, bytes(1 << 20))) == bytes(1 << 20)
