"""Length prefixes, and the bytes of those who do not speak Kafka."""

import struct

import pytest

from odradek.protocol.framing import FrameError, check_frame_size, describe_foreign_bytes

LIMIT = 104857600


@pytest.mark.parametrize("size", [0, 1, LIMIT])
def test_sizes_up_to_the_limit_pass(size: int) -> None:
    check_frame_size(size, LIMIT)


def test_a_negative_size_is_refused() -> None:
    with pytest.raises(FrameError, match="a request of -5 bytes: the size is negative"):
        check_frame_size(-5, LIMIT)


def test_a_size_over_the_limit_is_refused_by_the_name_of_the_setting() -> None:
    with pytest.raises(
        FrameError,
        match=r"a request of 104857601 bytes is larger than socket\.request\.max\.bytes=104857600",
    ):
        check_frame_size(LIMIT + 1, LIMIT)


@pytest.mark.parametrize(
    ("first", "name"),
    [
        (b"GET / HTTP/1.1\r\n", "HTTP (GET)"),
        (b"POST /topics HTT", "HTTP (POST)"),
        (b"PRI * HTTP/2.0\r\n", "HTTP/2"),
        (b"HTTP/1.1 200 OK\r", "an HTTP response"),
        (bytes.fromhex("160301020001000001fc0303"), "a TLS hello"),
        (bytes.fromhex("16030300"), "a TLS hello"),
        (bytes.fromhex("15030100020228"), "a TLS alert"),
        (bytes.fromhex("802e0103010015"), "an SSL hello"),
        (b"ruok", "ZooKeeper's four-letter word 'ruok'"),
        (b"stat\n", "ZooKeeper's four-letter word 'stat'"),
        (b"SSH-2.0-OpenSSH_9", "SSH"),
        (b"PROXY TCP4 10.0.", "a PROXY protocol header"),
        (b"\r\n\r\n\0\r\nQUIT\n!\x11", "a PROXY protocol header"),
        (bytes.fromhex("0000000804d2162f"), "a PostgreSQL client"),
        (b"AMQP\x00\x00\x09\x01", "AMQP"),
    ],
)
def test_other_protocols_are_recognised(first: bytes, name: str) -> None:
    assert (describe_foreign_bytes(first) or "").startswith(f"that was {name}")


@pytest.mark.parametrize("key", range(95))
def test_no_request_of_kafka_is_taken_for_another_protocol(key: int) -> None:
    for size in (16, 200, 16384, 1048576, LIMIT):
        for version in (0, 9, 13):
            frame = struct.pack(">ihhih", size, key, version, 1, 10) + b"client"
            assert describe_foreign_bytes(frame[:16]) is None


@pytest.mark.parametrize("first", [b"", b"\x16", b"\x16\x03", b"\x80", b"GE", b"\xff" * 16])
def test_too_few_bytes_or_nonsense_are_not_guessed_at(first: bytes) -> None:
    assert describe_foreign_bytes(first) is None
