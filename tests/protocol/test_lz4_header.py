"""The wrong header checksum of old LZ4 frames (KAFKA-3160)."""

import lz4.frame
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.protocol.compression import CompressionType, DecompressionError, compress, decompress
from odradek.protocol.lz4_header import with_old_checksum, with_right_checksum
from tests.support.kafka_legacy import golden_set

LZ4 = CompressionType.LZ4
FRAME = compress(LZ4, b"some text " * 20)

pytestmark = pytest.mark.usefixtures("codec_libraries")


def test_kafkas_frame_in_magic_0_is_the_right_one_with_the_old_checksum() -> None:
    old = golden_set("magic-0-lz4")[26:]
    assert old.startswith(b"\x04\x22\x4d\x18\x60\x40\x1a")
    assert with_right_checksum(old)[:7] == b"\x04\x22\x4d\x18\x60\x40\x82"
    assert with_old_checksum(with_right_checksum(old)) == old


def test_our_frame_gets_the_checksum_that_old_clients_expect() -> None:
    assert with_old_checksum(FRAME)[:7] == b"\x04\x22\x4d\x18\x60\x40\x1a"
    assert with_old_checksum(FRAME)[7:] == FRAME[7:]


def test_a_decoder_refuses_the_old_checksum_until_it_is_put_right() -> None:
    old = with_old_checksum(FRAME)
    with pytest.raises(DecompressionError, match="lz4"):
        decompress(LZ4, old)
    assert decompress(LZ4, with_right_checksum(old)) == b"some text " * 20


@settings(deadline=None)
@given(st.binary(max_size=5000), st.booleans(), st.integers(0, 255))
def test_any_checksum_is_put_right(content: bytes, sized: bool, wrong: int) -> None:
    frame = lz4.frame.compress(content, store_size=sized, block_linked=False)
    broken = bytearray(frame)
    broken[14 if sized and content else 6] = wrong  # an empty frame has no size
    assert with_right_checksum(broken) == frame


@pytest.mark.parametrize("size", range(7))
def test_a_frame_that_ends_inside_its_header_is_left_as_it_is(size: int) -> None:
    assert with_right_checksum(FRAME[:size]) == FRAME[:size]


def test_what_kafka_does_not_read_is_left_as_it_is() -> None:
    with_dictionary = b"\x04\x22\x4d\x18\x61\x40" + bytes(20)
    for data in (b"no frame at all", with_dictionary):
        assert with_right_checksum(data) == data
