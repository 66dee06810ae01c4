"""Headers of requests and responses."""

import struct

import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.headers import (
    RequestHeader,
    has_flexible_response_header,
    read_request_header,
)
from odradek.protocol.schema import DecodeError
from tests.support.hostile_bytes import feed
from tests.support.messages import all_messages, has_tags_in_header, versions_of
from tests.support.reference_codec import Length


def header(key: int, version: int, client_id: bytes | None, *, correlation_id: int = 7) -> bytes:
    length = -1 if client_id is None else len(client_id)
    return struct.pack(">hhih", key, version, correlation_id, length) + (client_id or b"")


def read(data: bytes) -> tuple[RequestHeader, int]:
    return read_request_header(memoryview(data))


def test_v1_ends_with_the_client_id() -> None:
    data = header(ApiKey.PRODUCE, 8, b"producer-1")
    assert read(data + b"body") == (RequestHeader(0, 8, 7, "producer-1"), len(data))


def test_v2_ends_with_tagged_fields() -> None:
    data = header(ApiKey.PRODUCE, 9, b"producer-1")
    expected = RequestHeader(0, 9, 7, "producer-1")
    assert read(data + b"\x00body") == (expected, len(data) + 1)
    assert read(data + b"\x01\x05\x02xybody") == (expected, len(data) + 5)


def test_v0_has_no_client_id() -> None:
    data = struct.pack(">hhii", 7, 0, 42, 3)
    assert read(data) == (RequestHeader(7, 0, 42, ""), 8)


@pytest.mark.parametrize("client_id", [None, b""])
def test_a_null_client_id_is_an_empty_one(client_id: bytes | None) -> None:
    data = header(ApiKey.HEARTBEAT, 0, client_id)
    assert read(data + b"body") == (RequestHeader(12, 0, 7, ""), len(data))


def test_a_client_id_of_any_negative_length_is_null() -> None:
    data = struct.pack(">hhih", 12, 0, 7, -2)
    assert read(data + b"body") == (RequestHeader(12, 0, 7, ""), len(data))


def test_a_header_is_found_in_the_middle_of_a_buffer() -> None:
    data = header(ApiKey.HEARTBEAT, 4, b"c") + b"\x00"
    assert read_request_header(memoryview(b"1234" + data + b"body"), 4) == (
        RequestHeader(12, 4, 7, "c"),
        4 + len(data),
    )


def test_a_client_id_that_is_no_utf8_is_replaced() -> None:
    assert read(header(ApiKey.HEARTBEAT, 0, b"\xffa"))[0].client_id == "\ufffda"


@pytest.mark.parametrize("key", [-1, 7, 95, 999, 32767, -32768])
def test_an_unknown_api_can_be_named(key: int) -> None:
    data = header(key, 3, b"c")
    assert read(data + b"\xff\xff") == (RequestHeader(key, 3, 7, "c"), len(data))


def test_a_version_of_api_versions_that_is_yet_to_come_can_be_answered() -> None:
    data = header(ApiKey.API_VERSIONS, 99, b"c") + b"\x00"
    assert read(data + b"\xff\xff") == (RequestHeader(18, 99, 7, "c"), len(data))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        header(0, 8, b"abc")[:9],
        header(0, 8, b"abc")[:-1],
        header(0, 9, b"abc"),  # no tagged fields
        struct.pack(">hhih", 0, 8, 7, 32767),
        header(0, 9, b"") + b"\x7f\x00\x00",
        header(0, 9, b"") + b"\xff\xff\xff\xff\xff\xff",
    ],
)
def test_nonsense_is_one_clear_error(data: bytes) -> None:
    with pytest.raises(DecodeError, match=f"request of {len(data)} bytes"):
        read(data)


def test_hostile_headers_are_a_value_or_one_error() -> None:
    data = header(ApiKey.PRODUCE, 9, b"client") + b"\x01\x05\x02xy"
    lengths = [Length(8, 2, "h"), Length(16, 1, "varint"), Length(18, 1, "varint")]
    assert len(feed(read, data, DecodeError, lengths)) > len(data)


def test_header_versions_follow_the_messages() -> None:
    for message in all_messages():
        key = message.SPEC.key
        if key is None or not message.__name__.endswith("Request"):
            continue
        for version in versions_of(message):
            assert has_tags_in_header(key, version) == (version in message.SPEC.flexible), message


def test_header_versions_of_what_is_special() -> None:
    assert has_tags_in_header(ApiKey.API_VERSIONS, 3)
    assert not has_flexible_response_header(ApiKey.API_VERSIONS, is_flexible=True)
    assert has_flexible_response_header(ApiKey.FETCH, is_flexible=True)
