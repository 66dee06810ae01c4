"""Requests with one batch are decoded to what the codec decodes."""

from collections.abc import Iterator
from itertools import count

import pytest

from odradek.broker.handlers import produce
from odradek.broker.producing import single_batch
from odradek.broker.producing.accepted_produce import FIRST_FLEXIBLE_VERSION
from odradek.broker.producing.single_batch import SingleBatches
from odradek.broker.requests.route import Route
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.headers import read_request_header
from odradek.protocol.messages.produce import (
    ProducePartitionData,
    ProduceRequest,
    ProduceTopicData,
)
from odradek.protocol.schema import DecodeError, codec_for
from tests.support.wire import request_frame

VERSIONS = range(FIRST_FLEXIBLE_VERSION, 14)
LONGEST = (1 << 21) - 2  # of which the length takes three bytes
# How the bytes of a request are changed.
CHANGES = (1, 0x7F, 0x80, 0xFF)


def frame(
    version: int,
    records: bytes | None = b"records",
    name: str = "topic",
    client: str = "client",
    **changes: object,
) -> bytes:
    """A request with one batch, without the size before it."""
    by_id = version >= 13
    data = [ProducePartitionData(index=3, records=records)]
    topic = ProduceTopicData(
        name="" if by_id else name,
        topic_id=name.encode().ljust(16)[:16] if by_id else bytes(16),
        partition_data=data,
    )
    fields = {"acks": 1, "timeout_ms": 1000, "topic_data": [topic]} | changes
    request = ProduceRequest(**fields)  # type: ignore[arg-type] # of the fields
    return request_frame(request, version, next(_numbers), client)[4:]


_numbers = count()


def same(batches: SingleBatches, data: bytes) -> bool:
    """Compare with the codec. Returns whether the request was found by its first bytes.

    A request that was not found is decoded, and its target is kept.
    """
    view = memoryview(data)
    found = batches.find(view)
    try:
        header, position = read_request_header(view)
        version = header.api_version
        if header.api_key != ApiKey.PRODUCE or version not in ProduceRequest.SPEC.versions:
            raise DecodeError("another API")
        expected, _ = codec_for(ProduceRequest, version).decode(view, position)
    except DecodeError:
        assert found is None
        return False
    if found is None:
        batches.keep(view, header, expected, route_of(version))
        return False
    assert found.whole() == expected
    assert found.acks == expected.acks
    assert found.target.route.version == version
    assert (found.target.client_id, found.correlation_id) == (
        header.client_id,
        header.correlation_id,
    )
    return True


def route_of(version: int) -> Route:
    codec = codec_for(ProduceRequest, version)
    flexible = version >= FIRST_FLEXIBLE_VERSION
    return Route(
        key=ApiKey.PRODUCE,
        version=version,
        codec=codec,
        handle=produce.handle,
        flexible_header=flexible,
        counts=None,
        is_sliced=False,
        is_cancelled_on_disconnect=False,
        may_await_coordinator=False,
        shows_writes=False,
    )


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
@pytest.mark.parametrize("size", [0, 1, 126, 127, 128, 0x3FFE, 0x3FFF, LONGEST, LONGEST + 1])
def test_a_batch_of_any_size_is_found_behind_bytes_that_are_known(version: int, size: int) -> None:
    batches = SingleBatches()
    assert not same(batches, frame(version, b"")), "the first request is decoded"
    assert same(batches, frame(version, bytes(size))) == (size <= LONGEST)
    assert not same(batches, frame(version, None))
    assert not same(batches, frame(version, name="another"))
    assert not same(batches, frame(version, client="another"))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("records", [b"", b"records", bytes(130)])
def test_every_changed_request_is_decoded_as_by_the_codec(version: int, records: bytes) -> None:
    batches = SingleBatches()
    good = frame(version, records)
    for other in changed(good):  # some of them become known, too
        same(batches, other)
        assert same(batches, good) or same(batches, good)


@pytest.mark.parametrize(
    "changes", [{"transactional_id": "id"}, {"topic_data": []}, {"acks": 2}, {"acks": -2}]
)
def test_requests_of_another_form_are_always_decoded(changes: dict[str, object]) -> None:
    batches = SingleBatches()
    for _ in range(2):
        assert not same(batches, frame(9, **changes))


def test_old_versions_are_always_decoded() -> None:
    batches = SingleBatches()
    for _ in range(2):
        assert not same(batches, frame(FIRST_FLEXIBLE_VERSION - 1))


@pytest.mark.parametrize(("name", "is_kept"), [("n" * 126, True), ("n" * 127, False)])
def test_a_long_name_is_not_kept(name: str, is_kept: bool) -> None:
    batches = SingleBatches()
    assert not same(batches, frame(9, name=name))
    assert same(batches, frame(9, name=name)) == is_kept


@pytest.mark.parametrize(
    ("client", "is_kept"),
    [("c" * 255, True), ("c" * 256, False), ("\N{SNOWMAN}", True), ("", True)],
)
def test_a_long_client_id_is_not_kept(client: str, is_kept: bool) -> None:
    batches = SingleBatches()
    assert not same(batches, frame(9, client=client))
    assert same(batches, frame(9, client=client)) == is_kept


@pytest.mark.parametrize("client", [b"\x00\x06" + b"\xff" * 6, b"\xff\xff"])
def test_a_client_id_that_is_no_text_is_not_kept(client: bytes) -> None:
    batches = SingleBatches()
    for _ in range(2):
        assert not same(batches, frame(9).replace(b"\x00\x06client", client))


@pytest.mark.parametrize("records", [None, bytes(LONGEST + 1)])
def test_a_target_is_kept_with_a_batch_that_can_be_found(records: bytes | None) -> None:
    batches = SingleBatches()
    assert not same(batches, frame(9, records))
    assert not same(batches, frame(9))
    assert same(batches, frame(9))


def test_the_number_of_targets_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(single_batch, "TARGETS_KEPT", 2)
    monkeypatch.setattr(single_batch, "REPLACED_EVERY", 3)
    batches = SingleBatches()
    for name in "abcd":
        assert not same(batches, frame(9, name=name))
    for name in "ba":
        assert same(batches, frame(9, name=name)), "those after it are not kept"
    assert not same(batches, frame(9, name="e"))
    assert same(batches, frame(9, name="e")), "one of three replaces the oldest"
    assert same(batches, frame(9, name="b"))
    assert not same(batches, frame(9, name="a"))
