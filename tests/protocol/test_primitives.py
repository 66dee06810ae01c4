"""Varints, sections of tagged fields, and ids."""

from uuid import RFC_4122, UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.protocol.primitives import (
    METADATA_TOPIC_ID,
    ZERO_UUID,
    random_uuid,
    random_uuid_with_dashes,
    read_uvarint,
    read_varint,
    read_varlong,
    skip_tags,
    uuid_from_text,
    uuid_text,
    write_uvarint,
    write_varint,
)

UNHURRIED = settings(deadline=None, derandomize=True)
BOUNDARIES = [0, 1, 127, 128, 255, 300, 16383, 16384, 2**21 - 1, 2**21, 2**28 - 1, 2**28, 2**32 - 1]


def uvarint(number: int) -> bytes:
    out = bytearray()
    write_uvarint(out, number)
    return bytes(out)


def varint(number: int) -> bytes:
    out = bytearray()
    write_varint(out, number)
    return bytes(out)


@pytest.mark.parametrize("number", BOUNDARIES)
def test_unsigned_varints_survive(number: int) -> None:
    data = uvarint(number)
    assert read_uvarint(b"xy" + data + b"z", 2) == (number, 2 + len(data))


@pytest.mark.parametrize(
    ("number", "data"),
    [
        (0, b"\x00"),
        (-1, b"\x01"),
        (1, b"\x02"),
        (-64, b"\x7f"),
        (64, b"\x80\x01"),
        (2**31 - 1, b"\xfe\xff\xff\xff\x0f"),
        (-(2**31), b"\xff\xff\xff\xff\x0f"),
        (300, b"\xd8\x04"),
    ],
)
def test_zigzag_varints_are_protobufs(number: int, data: bytes) -> None:
    assert varint(number) == data
    assert read_varint(data, 0) == (number, len(data))
    assert read_varlong(data, 0) == (number, len(data))


@UNHURRIED
@given(st.integers(-(2**63), 2**63 - 1))
def test_varlongs_survive(number: int) -> None:
    data = varint(number)
    assert len(data) <= 10
    assert read_varlong(memoryview(data), 0) == (number, len(data))


@UNHURRIED
@given(st.integers(0, 2**32 - 1))
def test_any_unsigned_varint_survives(number: int) -> None:
    data = uvarint(number)
    assert len(data) <= 5
    assert read_uvarint(memoryview(data), 0) == (number, len(data))


def test_varints_are_bounded() -> None:
    with pytest.raises(ValueError, match="longer than 5 bytes"):
        read_uvarint(b"\x80" * 5 + b"\x01", 0)
    with pytest.raises(ValueError, match="longer than 5 bytes"):
        read_varint(b"\xff" * 100, 0)
    with pytest.raises(ValueError, match="longer than 10 bytes"):
        read_varlong(b"\xff" * 100, 0)


@pytest.mark.parametrize("number", BOUNDARIES)
def test_a_varint_that_is_cut_is_an_index_error(number: int) -> None:
    data = uvarint(number)
    for end in range(len(data)):
        with pytest.raises(IndexError):
            read_uvarint(data[:end], 0)
        with pytest.raises(IndexError):
            read_varlong(data[:end], 0)


def test_tagged_fields_are_skipped() -> None:
    section = b"\x02" + b"\x00\x03abc" + uvarint(1000) + uvarint(200) + bytes(200)
    assert skip_tags(section + b"rest", 0, len(section) + 4) == len(section)
    assert skip_tags(b"-\x00", 1, 2) == 2


@pytest.mark.parametrize(
    "section",
    [b"\x01\x00\x04abc", b"\x7f\x00\x00", b"\xff\xff\xff\xff\x0f", b"\x01\x00\xff\xff\xff\xff\x0f"],
    ids=["size", "count", "huge count", "huge size"],
)
def test_tagged_fields_that_promise_too_much_are_refused(section: bytes) -> None:
    with pytest.raises(ValueError, match=r"does not fit the . bytes that are left"):
        skip_tags(section, 0, len(section))


def test_ids_have_kafkas_text() -> None:
    assert uuid_text(ZERO_UUID) == "AAAAAAAAAAAAAAAAAAAAAA"
    assert uuid_text(METADATA_TOPIC_ID) == "AAAAAAAAAAAAAAAAAAAAAQ"
    assert uuid_from_text("Y45AvnC3Rhqkz8Ak_NyCPA").hex() == "638e40be70b7461aa4cfc024fcdc823c"


@UNHURRIED
@given(st.binary(min_size=16, max_size=16))
def test_any_id_survives_as_text(value: bytes) -> None:
    assert len(uuid_text(value)) == 22
    assert uuid_from_text(uuid_text(value)) == value


@pytest.mark.parametrize("text", ["", "AAAA", "A" * 23, "?" * 22, "A" * 24, "ä" * 22])
def test_text_that_is_no_id_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 # the reasons differ, the kind is the contract
        uuid_from_text(text)


def test_random_ids_are_version_4_and_never_begin_with_a_dash() -> None:
    made = {random_uuid() for _ in range(500)}
    assert len(made) == 500
    assert {value[6] >> 4 for value in made} == {4}
    assert {value[8] >> 6 for value in made} == {2}
    assert not [value for value in made if uuid_text(value).startswith("-")]


def test_random_ids_with_dashes_are_version_4_as_the_standard_library_reads_them() -> None:
    made = {random_uuid_with_dashes() for _ in range(500)}
    assert len(made) == 500
    for text in made:
        read = UUID(text)
        assert (str(read), read.version, read.variant) == (text, 4, RFC_4122)
