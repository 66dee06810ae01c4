"""Where zstd frames end and what they can hold, and that decompression relies on it safely."""

import contextlib
import struct

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.protocol.compression import CompressionType, DecompressionError, compress, decompress
from odradek.protocol.zstd_frames import NoFrameError, zstd_frames

ZSTD = CompressionType.ZSTD
TEXT = b"the quick brown fox " * 10_000

pytestmark = pytest.mark.usefixtures("codec_libraries")
SKIPPED = b"\x53\x2a\x4d\x18" + struct.pack("<I", 5) + b"to be"

contents = st.one_of(
    st.binary(max_size=2000),
    st.builds(lambda part, times: part * times, st.binary(max_size=50), st.integers(0, 20_000)),
)


def packed(
    content: bytes, *, level: int = 3, sized: bool = True, summed: bool = True, window_log: int = 0
) -> bytes:
    """One frame; `sized` says how large its content is, as Java's clients never do."""
    parameters = zstandard.ZstdCompressionParameters.from_level(
        level, write_content_size=sized, write_checksum=summed, window_log=window_log
    )
    packer = zstandard.ZstdCompressor(compression_params=parameters)
    if sized:
        return packer.compress(content)
    stream = packer.compressobj()
    return stream.compress(content) + stream.flush()


@settings(deadline=None)
@given(contents, st.sampled_from([-5, 1, 3, 12]), st.booleans(), st.booleans())
def test_a_frame_holds_no_more_than_is_foretold(
    content: bytes, level: int, sized: bool, summed: bool
) -> None:
    stored = packed(content, level=level, sized=sized, summed=summed)
    (frame,) = zstd_frames(memoryview(stored))
    assert (frame.begin, frame.end) == (0, len(stored))
    assert len(content) <= frame.max_content_bytes
    assert frame.max_content_bytes <= (len(content) if sized else (len(content) // 65536 + 2) << 17)
    assert decompress(ZSTD, stored, max_bytes=len(content)) == content


@settings(deadline=None)
@given(st.lists(st.tuples(contents, st.booleans()), min_size=1, max_size=5))
def test_frames_of_any_kind_lie_behind_each_other(frames: list[tuple[bytes, bool]]) -> None:
    stored = SKIPPED.join(packed(content, sized=sized) for content, sized in frames)
    whole = b"".join(content for content, _ in frames)
    assert decompress(ZSTD, stored, max_bytes=len(whole)) == whole
    if whole:
        with pytest.raises(DecompressionError, match="zstd data holds more than"):
            decompress(ZSTD, stored, max_bytes=len(whole) - 1)


@pytest.mark.parametrize("sized", [True, False])
def test_a_frame_cut_at_any_byte_is_none(sized: bool) -> None:
    stored = packed(b"abcdefgh" * 20 + bytes(range(256)), sized=sized)
    for size in range(1, len(stored)):
        with pytest.raises(NoFrameError):
            list(zstd_frames(memoryview(stored[:size])))


def test_a_window_is_told() -> None:
    told = [
        next(zstd_frames(memoryview(packed(TEXT, sized=False, window_log=log)))).window_bytes
        for log in (10, 20, 27)
    ]
    assert told == [1 << 10, 1 << 20, 1 << 27]
    assert decompress(ZSTD, packed(TEXT, sized=False, window_log=27)) == TEXT


def test_a_content_size_that_no_blocks_could_hold_is_refused_before_room_is_made() -> None:
    frame = bytearray(packed(TEXT))
    flags, at = frame[4], 5
    assert flags >> 6 == 2, "the size is in four bytes"
    frame[at : at + 4] = struct.pack("<I", 0xFFFFFFF0)
    with pytest.raises(DecompressionError, match="claims 4294967280 bytes"):
        decompress(ZSTD, bytes(frame))


def test_a_block_of_the_reserved_kind_is_refused() -> None:
    with pytest.raises(DecompressionError, match="the block at byte 6 has an unknown type"):
        decompress(ZSTD, b"\x28\xb5\x2f\xfd\x00\x58" + b"\x07\x00\x00" + bytes(4))


def test_a_frame_that_might_hold_too_much_is_allowed_what_it_does_hold() -> None:
    stored = packed(TEXT, sized=False)
    (frame,) = zstd_frames(memoryview(stored))
    assert frame.max_content_bytes > len(TEXT)
    assert decompress(ZSTD, stored, max_bytes=len(TEXT)) == TEXT


@settings(deadline=None)
@given(st.data())
def test_after_a_damaged_frame_the_next_one_is_unpacked_as_ever(data: st.DataObject) -> None:
    stored = bytearray(packed(TEXT, sized=data.draw(st.booleans())))
    at = data.draw(st.integers(0, len(stored) - 1))
    stored[at] ^= data.draw(st.integers(1, 255))
    with contextlib.suppress(DecompressionError):
        assert len(decompress(ZSTD, bytes(stored), max_bytes=1 << 20)) <= 1 << 20
    assert decompress(ZSTD, compress(ZSTD, TEXT)) == TEXT


def test_many_empty_frames_cost_little() -> None:
    assert decompress(ZSTD, packed(b"", sized=False) * 20_000 + packed(b"end")) == b"end"
