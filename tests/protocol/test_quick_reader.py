"""The quick reader reads what the careful one reads, or stumbles; arrays whose items end alike."""

import struct
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from odradek.protocol.declaration import ListOf, fields_of, present_fields, split_tail
from odradek.protocol.messages.heartbeat import HeartbeatRequest
from odradek.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from odradek.protocol.messages.produce import (
    ProducePartitionData,
    ProduceRequest,
    ProduceTopicData,
)
from odradek.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from odradek.protocol.quick_reader_source import ORDINARY_BYTES, QuickReaderSource
from odradek.protocol.reader_source import ReaderSource
from odradek.protocol.schema import DecodeError, Message, codec_for
from tests.support.hostile_bytes import cuts, lies
from tests.support.messages import all_messages, sample, versions_of
from tests.support.reference_codec import ReferenceWriter

EVERY_MESSAGE = pytest.mark.parametrize("message", all_messages(), ids=lambda made: made.__name__)
STUMBLES = (IndexError, struct.error, ValueError)
Reader = Callable[[bytes, int], tuple[Message, int]]


def quick_reader(message: type[Message], version: int) -> Reader:
    return QuickReaderSource(message, version).compiled("read")


def careful_reader(message: type[Message], version: int) -> Reader:
    return ReaderSource(message, version).compiled("read")


def in_rows(value: Any, version: int) -> Any:
    """The same with more items in each array of structs: some end as the first, some nearly so."""
    changes: dict[str, Any] = {}
    for field in fields_of(type(value)):
        items = getattr(value, field.name)
        if not isinstance(field.wire, ListOf) or not isinstance(field.wire.item, type) or not items:
            continue
        one, other = in_rows(items[0], version), in_rows(items[-1], version)
        _, end = split_tail(list(present_fields(field.wire.item, version)), version)
        names = [each.name for each, _ in end]
        alike = with_fields_of(other, one, names)
        nearly = [with_fields_of(alike, other, [name]) for name in names]
        changes[field.name] = [one, alike, other, one, *nearly, alike]
    return msgspec.structs.replace(value, **changes)


def with_fields_of(value: Any, other: Any, names: list[str]) -> Any:
    return msgspec.structs.replace(value, **{name: getattr(other, name) for name in names})


@EVERY_MESSAGE
def test_items_that_end_like_the_first_are_written_and_read_like_any(
    message: type[Message],
) -> None:
    for version in versions_of(message):
        value = in_rows(sample(message, version), version)
        data = value.encode(version)
        assert data == bytes(ReferenceWriter(value, version).out)
        assert quick_reader(message, version)(data, 0) == (value, len(data))


@EVERY_MESSAGE
def test_the_quick_reader_reads_nothing_that_the_careful_one_does_not(
    message: type[Message],
) -> None:
    for version in {message.SPEC.versions.lowest, message.SPEC.versions.highest}:
        quickly, carefully = quick_reader(message, version), careful_reader(message, version)
        written = ReferenceWriter(in_rows(sample(message, version), version), version)
        data = bytes(written.out)
        every = len(written.lengths) // 20 + 1
        for variant in (
            *list(cuts(data))[:: 1 + len(data) // 100],
            *lies(data, written.lengths[::every]),
        ):
            try:
                quick = quickly(variant, 0)
            except STUMBLES:
                continue
            assert quick == carefully(variant, 0)


@pytest.mark.parametrize("version", [8, 13])
def test_items_that_end_alike_share_no_list(version: int) -> None:
    partitions = [
        MetadataResponsePartition(
            partition_index=n, leader_id=1, replica_nodes=[1, 2], isr_nodes=[], offline_replicas=[]
        )
        for n in range(5)
    ]
    topic = MetadataResponseTopic(name="t", partitions=partitions)
    data = MetadataResponse(topics=[topic]).encode(version)
    read = MetadataResponse.decode(data, version).topics[0].partitions
    assert read == partitions
    lists = [each for p in read for each in (p.replica_nodes, p.isr_nodes, p.offline_replicas)]
    assert len({id(each) for each in lists}) == 15


def test_the_quick_reader_keeps_nothing_from_one_message_to_the_next() -> None:
    def response(node: int) -> MetadataResponse:
        partition = MetadataResponsePartition(
            partition_index=0, leader_id=node, replica_nodes=[node], isr_nodes=[node]
        )
        topic = MetadataResponseTopic(name="t", partitions=[partition] * 4)
        return MetadataResponse(topics=[topic])

    for node in (1, 2):
        assert MetadataResponse.decode(response(node).encode(12), 12) == response(node)


def test_a_length_of_zero_in_two_bytes_is_null_as_in_java() -> None:
    data = HeartbeatRequest(group_id="g", generation_id=1, member_id="m").encode(4)
    assert data[-2:] == b"\0\0"  # group_instance_id, tagged fields
    longer = data[:-2] + b"\x80\x00" + data[-1:]
    with pytest.raises(STUMBLES):
        quick_reader(HeartbeatRequest, 4)(longer, 0)
    read, end = codec_for(HeartbeatRequest, 4).decode(longer)
    assert read.group_instance_id is None
    assert end == len(longer)


def test_a_string_that_ends_behind_the_data_is_refused() -> None:
    data = HeartbeatRequest(group_id="g", generation_id=1, member_id="member").encode(0)
    with pytest.raises(IndexError):
        quick_reader(HeartbeatRequest, 0)(data[:-1], 0)
    with pytest.raises(DecodeError, match="field member_id at byte 9: a length of 6 does not fit"):
        HeartbeatRequest.decode(data[:-1], 0)


def test_long_data_is_read_where_it_lies() -> None:
    request = SaslAuthenticateRequest(auth_bytes=bytes(ORDINARY_BYTES))
    data = request.encode(2)
    with pytest.raises(ValueError):  # noqa: PT011 # the careful reader has the words
        quick_reader(SaslAuthenticateRequest, 2)(data, 0)
    assert SaslAuthenticateRequest.decode(data, 2) == request


@pytest.mark.parametrize("size", [0, 100, 127, 128, 16_382, 16_384, 70_000, 2**21 + 5])
@pytest.mark.parametrize("version", [8, 9])
def test_records_of_any_size_are_borrowed_and_written(version: int, size: int) -> None:
    records = bytes(size)
    data = [ProducePartitionData(index=n, records=records) for n in range(3)]
    topic = ProduceTopicData(name="t", partition_data=data)
    request = ProduceRequest(acks=1, timeout_ms=9, topic_data=[topic])
    written = request.encode(version)
    assert written == bytes(ReferenceWriter(request, version).out)
    read = ProduceRequest.decode(bytearray(written), version)
    assert read == request
    borrowed = read.topic_data[0].partition_data[2].records
    assert isinstance(borrowed, memoryview)
    assert isinstance(borrowed.obj, bytearray)
