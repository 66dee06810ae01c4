"""Messages that are read and written in steps, and those that are too long to be read at once."""

import msgspec
import pytest

from odradek.protocol.compiler import MAX_SMALL_ITEMS, NotSmallError
from odradek.protocol.declaration import ListOf, fields_of
from odradek.protocol.messages.describe_groups import DescribeGroupsRequest
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
)
from odradek.protocol.schema import DecodeError, Message, Splices, codec_for
from tests.support.messages import all_messages, layouts, sample, versions_of

EVERY_MESSAGE = pytest.mark.parametrize("message", all_messages(), ids=lambda made: made.__name__)


class Steps:
    """Counts the items that a reader or a writer announces."""

    def __init__(self) -> None:
        self.items = 0

    def __call__(self, items: int) -> None:
        self.items += items


def items_in(value: object) -> int:
    """The number of items in all arrays of a message, without short arrays of numbers."""
    found = 0
    for field in fields_of(type(value)):  # type: ignore[arg-type] # a message or a struct
        held = getattr(value, field.name)
        if isinstance(field.wire, ListOf):
            if isinstance(field.wire.item, type) or field.wire.item.size in (0, 16):
                found += len(held or ())
            if isinstance(field.wire.item, type):
                found += sum(map(items_in, held or ()))
        elif isinstance(field.wire, type) and held is not None:
            found += items_in(held)
    return found


@EVERY_MESSAGE
def test_a_message_is_read_and_written_in_steps_as_at_once(message: type[Message]) -> None:
    for version in versions_of(message):
        value = sample(message, version)
        data = memoryview(value.encode(version))
        codec, reading, writing = codec_for(message, version), Steps(), Steps()
        read, end = codec.decode_in_steps(data, 0, reading)
        assert (read, end) == (value, len(data))
        out, splices = bytearray(), Splices()
        codec.write_in_steps(value, out, splices, writing)
        assert (out, splices) == (data, [])
        assert writing.items == items_in(value) <= reading.items


@EVERY_MESSAGE
def test_a_small_message_is_read_as_any(message: type[Message]) -> None:
    for version in versions_of(message):
        value = sample(message, version)
        data = memoryview(value.encode(version))
        codec = codec_for(message, version)
        assert codec.decode_small(data, 0) == codec.decode(data)
        for cut in range(len(data) if version in layouts(message) else 0):
            with pytest.raises(NotSmallError):
                codec.decode_small(data[:cut], 0)
            with pytest.raises(DecodeError):
                codec.decode_in_steps(data[:cut], 0, Steps())


@pytest.mark.parametrize("version", [0, 5])
def test_a_message_with_many_items_is_not_small(version: int) -> None:
    codec = codec_for(DescribeGroupsRequest, version)
    for count, is_small in ((MAX_SMALL_ITEMS, True), (MAX_SMALL_ITEMS + 1, False)):
        request = DescribeGroupsRequest(groups=["g"] * count)
        data = memoryview(request.encode(version))
        if is_small:
            assert codec.decode_small(data, 0)[0] == request
        else:
            with pytest.raises(NotSmallError):
                codec.decode_small(data, 0)


def test_the_items_of_all_arrays_count() -> None:
    topics = [OffsetFetchRequestTopic(name="t", partition_indexes=[0]) for _ in range(9)]
    groups = [OffsetFetchRequestGroup(group_id="g", topics=topics) for _ in range(9)]
    data = memoryview(OffsetFetchRequest(groups=groups).encode(8))
    with pytest.raises(NotSmallError):
        codec_for(OffsetFetchRequest, 8).decode_small(data, 0)


def test_long_arrays_of_numbers_are_read_and_written_in_steps() -> None:
    topic = OffsetFetchRequestTopic(name="t", partition_indexes=list(range(5000)))
    group = OffsetFetchRequestGroup(group_id="g", topics=[topic])
    request = OffsetFetchRequest(groups=[group])
    data = memoryview(request.encode(8))
    codec, reading, writing = codec_for(OffsetFetchRequest, 8), Steps(), Steps()
    assert codec.decode_in_steps(data, 0, reading) == (request, len(data))
    out = bytearray()
    codec.write_in_steps(request, out, [], writing)
    assert out == data
    assert reading.items == writing.items == 5002
    with pytest.raises(NotSmallError):
        codec.decode_small(data, 0)


def test_unknown_tagged_fields_are_skipped_in_steps() -> None:
    request = DescribeGroupsRequest(groups=["g"])
    data = request.encode(5)[:-1] + bytes([0x90, 0x4E]) + b"\x7f\x00" * 10_000
    reading = Steps()
    read, end = codec_for(DescribeGroupsRequest, 5).decode_in_steps(memoryview(data), 0, reading)
    assert (msgspec.structs.replace(read), end) == (request, len(data))
    assert reading.items == 10_001
    with pytest.raises(NotSmallError):
        codec_for(DescribeGroupsRequest, 5).decode_small(memoryview(data), 0)
