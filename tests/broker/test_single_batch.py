"""Requests with one batch are decoded to what the codec decodes."""

from collections.abc import Iterator

import pytest

from odradek.broker.requests import single_batch
from odradek.broker.requests.accepted_produce import FIRST_FLEXIBLE_VERSION
from odradek.broker.requests.single_batch import SingleBatch, SingleBatchReader
from odradek.protocol.messages.produce import (
    ProducePartitionData,
    ProduceRequest,
    ProduceTopicData,
)
from odradek.protocol.schema import DecodeError, codec_for

VERSIONS = range(FIRST_FLEXIBLE_VERSION, 14)
LONGEST = (1 << 14) - 2  # of which the length takes two bytes
BEFORE = b"header"  # where the request does not begin
# How the bytes of a request are changed.
CHANGES = (1, 0x7F, 0x80, 0xFF)


def body(
    version: int, records: bytes | None = b"records", name: str = "topic", **changes: object
) -> bytes:
    """A request with one batch."""
    by_id = version >= 13
    data = [ProducePartitionData(index=3, records=records)]
    topic = ProduceTopicData(
        name="" if by_id else name,
        topic_id=name.encode().ljust(16)[:16] if by_id else bytes(16),
        partition_data=data,
    )
    fields = {"acks": 1, "timeout_ms": 1000, "topic_data": [topic]} | changes
    return bytes(ProduceRequest(**fields).encode(version))  # type: ignore[arg-type] # of the fields


def reader_of(version: int) -> SingleBatchReader:
    return SingleBatchReader(codec_for(ProduceRequest, version).decode, version)


def read(reader: SingleBatchReader, data: bytes) -> ProduceRequest | SingleBatch:
    request, end = reader.read(memoryview(BEFORE + data), len(BEFORE))
    assert end <= len(BEFORE) + len(data)
    return request


def same(reader: SingleBatchReader, data: bytes, version: int) -> bool:
    """Compare with the codec. Returns whether the request was found by its first bytes."""
    try:
        expected = ProduceRequest.decode(memoryview(data), version)
    except DecodeError:
        with pytest.raises(DecodeError):
            read(reader, data)
        return False
    found = read(reader, data)
    is_single = isinstance(found, SingleBatch)
    whole = found.whole() if isinstance(found, SingleBatch) else found
    assert whole == expected
    assert found.acks == expected.acks
    return is_single


def changed(data: bytes) -> Iterator[bytes]:
    """The request with each byte changed, cut at each byte, with a byte left out, and with more."""
    for position in range(len(data)):
        for change in CHANGES:
            yield data[:position] + bytes([data[position] ^ change]) + data[position + 1 :]
        yield data[:position]
        yield data[:position] + data[position + 1 :]
    yield data + b"\0"
    yield data[:-1] + b"\x01\x05\x02xx"


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("size", [0, 1, 126, 127, 128, LONGEST, LONGEST + 1])
def test_a_batch_of_any_size_is_found_behind_bytes_that_are_known(version: int, size: int) -> None:
    reader = reader_of(version)
    assert not same(reader, body(version, b""), version), "the first request is decoded"
    assert same(reader, body(version, bytes(size)), version) == (size <= LONGEST)
    assert not same(reader, body(version, None), version)
    assert not same(reader, body(version, name="another"), version)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("records", [b"", b"records", bytes(130)])
def test_every_changed_request_is_decoded_as_by_the_codec(version: int, records: bytes) -> None:
    reader = reader_of(version)
    good = body(version, records)
    for other in changed(good):  # some of them become known, too
        same(reader, other, version)
        assert same(reader, good, version) or same(reader, good, version)


@pytest.mark.parametrize(
    "changes", [{"transactional_id": "id"}, {"topic_data": []}, {"acks": 2}, {"acks": -2}]
)
def test_requests_of_another_form_are_always_decoded(changes: dict[str, object]) -> None:
    reader = reader_of(9)
    for _ in range(2):
        assert not same(reader, body(9, **changes), 9)


def test_a_long_name_is_not_kept() -> None:
    reader = reader_of(9)
    for length, is_kept in ((126, True), (127, False)):
        assert not same(reader, body(9, name="n" * length), 9)
        assert same(reader, body(9, name="n" * length), 9) == is_kept


def test_the_number_of_targets_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(single_batch, "TARGETS_KEPT", 2)
    reader = reader_of(9)
    for name in "abc":
        assert not same(reader, body(9, name=name), 9)
    assert same(reader, body(9, name="c"), 9)
    assert not same(reader, body(9, name="a"), 9)
