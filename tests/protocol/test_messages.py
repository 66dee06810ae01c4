"""Every message in every version: what is written is read back, and nothing else."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.declaration import ListOf, fields_of
from odradek.protocol.messages.api_versions import ApiVersionsResponse
from odradek.protocol.messages.create_topics import CreateTopicsRequest
from odradek.protocol.messages.fetch import (
    FetchLeaderIdAndEpoch,
    FetchPartitionData,
    FetchRequest,
    FetchResponse,
    FetchTopicResponse,
)
from odradek.protocol.messages.heartbeat import HeartbeatRequest
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from odradek.protocol.messages.node_endpoint import NodeEndpoint
from odradek.protocol.messages.produce import (
    ProducePartitionData,
    ProducePartitionResponse,
    ProduceRequest,
    ProduceResponse,
    ProduceTopicData,
    ProduceTopicResponse,
)
from odradek.protocol.schema import (
    DecodeError,
    EncodeError,
    Message,
    SplicedRecords,
    Splices,
    Struct,
    codec_for,
)
from tests.support.message_strategies import EXAMPLES, messages
from tests.support.messages import all_messages, sample, smallest, versions_of
from tests.support.reference_codec import ReferenceWriter

EVERY_MESSAGE = pytest.mark.parametrize("message", all_messages(), ids=lambda made: made.__name__)


@EVERY_MESSAGE
def test_what_is_written_is_read_back(message: type[Message]) -> None:
    for version in versions_of(message):
        for value in (sample(message, version), smallest(message, version)):
            data = value.encode(version)
            assert message.decode(data, version) == value
            assert codec_for(message, version).decode(b"12" + data, 2)[1] == 2 + len(data)


@EVERY_MESSAGE
def test_compiled_writer_agrees_with_the_plain_one(message: type[Message]) -> None:
    for version in versions_of(message):
        for value in (sample(message, version), smallest(message, version)):
            assert value.encode(version) == bytes(ReferenceWriter(value, version).out)


@EVERY_MESSAGE
@EXAMPLES
@given(data=st.data())
def test_any_value_survives(message: type[Message], data: st.DataObject) -> None:
    version = data.draw(st.sampled_from(versions_of(message)))
    value = data.draw(messages(message, version))
    written = value.encode(version)
    assert written == bytes(ReferenceWriter(value, version).out)
    assert message.decode(written, version) == value


@EVERY_MESSAGE
def test_nothing_read_but_records_is_borrowed(message: type[Message]) -> None:
    def check(value: object, path: str) -> None:
        if isinstance(value, Struct):
            for name in value.__struct_fields__:  # type: ignore[attr-defined] # schema.py hides the base
                check(getattr(value, name), f"{path}.{name}")
        elif isinstance(value, list):
            for item in value:
                check(item, path)
        else:
            assert isinstance(value, memoryview) == path.endswith(".records"), path

    version = message.SPEC.versions.highest
    data = bytearray(sample(message, version).encode(version))
    check(message.decode(memoryview(data), version), message.__name__)


def test_every_field_that_a_version_lacks_has_a_default() -> None:
    missing = [
        f"{message.__name__}.{field.name}"
        for message in all_messages()
        for field in fields_of(message)
        if field.default is msgspec.NODEFAULT
        and any(version not in field.versions for version in versions_of(message))
    ]
    assert missing == []


def test_a_response_that_says_nothing_else_is_one_of_success_without_throttling() -> None:
    """All defaults are compared with Kafka's where there is Java: test_declarations.py."""
    zeros = ("throttle_time_ms", "error_code", "acknowledge_error_code")
    wrong = []

    def check(declared: type[Struct], path: str) -> None:
        for field in fields_of(declared):
            item = field.wire.item if isinstance(field.wire, ListOf) else field.wire
            name = f"{path}.{field.name}"
            if field.name in zeros and field.default not in (msgspec.NODEFAULT, 0):
                wrong.append(name)
            if isinstance(item, type):
                check(item, name)

    for message in all_messages():
        if message.__name__.endswith("Response"):
            check(message, message.__name__)
    assert wrong == []


def test_requests_and_responses_of_an_api_have_the_same_versions() -> None:
    by_name = {message.__name__: message for message in all_messages()}
    for name, message in by_name.items():
        if name.endswith("Request") and message.SPEC.key is not None:
            assert by_name[name.removesuffix("Request") + "Response"].SPEC == message.SPEC


def test_structs_are_frozen_and_take_only_keywords() -> None:
    request = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    with pytest.raises(AttributeError):
        request.group_id = "h"
    with pytest.raises(TypeError):
        HeartbeatRequest("g", 1, "m")


def test_lists_of_two_messages_are_never_the_same_list() -> None:
    one = MetadataRequest(topics=[]).encode(4)
    first, second = (MetadataRequest.decode(one, 4) for _ in range(2))
    assert first.topics is not second.topics
    a, b = ApiVersionsResponse(), ApiVersionsResponse()
    assert a.api_keys is not b.api_keys


# -- what a version cannot carry -----------------------------------------------------------------


def test_a_value_without_a_place_is_refused() -> None:
    request = HeartbeatRequest(group_id="g", generation_id=1, member_id="m", group_instance_id="i")
    with pytest.raises(EncodeError, match=r"HeartbeatRequest v2: field group_instance_id: .*'i'"):
        request.encode(2)
    assert HeartbeatRequest.decode(request.encode(3), 3) == request


def test_an_ignorable_value_without_a_place_is_dropped() -> None:
    partition = ProducePartitionResponse(index=1, base_offset=5, log_start_offset=3)
    topic = ProduceTopicResponse(name="t", partition_responses=[partition])
    response = ProduceResponse(responses=[topic])
    read = ProduceResponse.decode(response.encode(4), 4)
    assert read.responses[0].partition_responses[0].log_start_offset == -1


def test_null_is_refused_where_it_came_later() -> None:
    request = MetadataRequest(topics=None)
    assert MetadataRequest.decode(request.encode(1), 1).topics is None
    with pytest.raises(EncodeError, match="MetadataRequest v0: field topics"):
        request.encode(0)
    with pytest.raises(DecodeError, match=r"v9: field topics.name at byte 2: it is null"):
        MetadataRequest.decode(b"\x02\x00\x00\x00\x00", 9)


def test_every_negative_length_is_null_where_null_is_allowed() -> None:
    partition = ProducePartitionData(index=0, records=None)
    topics = [ProduceTopicData(name="t", partition_data=[partition])]
    request = ProduceRequest(transactional_id=None, acks=1, timeout_ms=2, topic_data=topics)
    data = request.encode(3)
    assert (data[:2], data[-4:]) == (b"\xff\xff", b"\xff\xff\xff\xff")
    lowest = b"\x80\x00" + data[2:-4] + b"\x80\x00\x00\x00"
    assert ProduceRequest.decode(lowest, 3) == request
    assert MetadataRequest.decode(b"\xff\xff\xff\xfe", 1).topics is None


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (HeartbeatRequest(group_id="g" * 32768, generation_id=1, member_id="m"), "group_id"),
        (HeartbeatRequest(group_id="g", generation_id=2**31, member_id="m"), "generation_id"),
        (HeartbeatRequest(group_id=None, generation_id=1, member_id="m"), "group_id"),
        (HeartbeatRequest(group_id="g", generation_id="1", member_id="m"), "generation_id"),
    ],
    ids=["long string", "large number", "null", "wrong type"],
)
@pytest.mark.parametrize("version", [3, 4])
def test_a_value_that_does_not_fit_is_refused_by_name(
    request_: HeartbeatRequest, field: str, version: int
) -> None:
    with pytest.raises(EncodeError, match=f"HeartbeatRequest v{version}: field .*{field}"):
        request_.encode(version)


def test_an_unknown_version_is_refused() -> None:
    with pytest.raises(DecodeError, match="HeartbeatRequest has versions 0-4, not 5"):
        codec_for(HeartbeatRequest, 5)


def test_text_that_is_no_utf8_is_replaced_as_in_java() -> None:
    data = b"\x00\x02\xffa" + bytes(4) + b"\x00\x01m"
    assert HeartbeatRequest.decode(data, 0).group_id == "\ufffda"
    lone = HeartbeatRequest(group_id="\ud800a", generation_id=0, member_id="m")
    assert HeartbeatRequest.decode(lone.encode(0), 0).group_id == "?a"


def test_the_longest_string_is_32767_bytes() -> None:
    for version in (3, 4):
        request = HeartbeatRequest(group_id="g" * 32767, generation_id=1, member_id="m")
        assert HeartbeatRequest.decode(request.encode(version), version) == request
    with pytest.raises(DecodeError, match=r"group_id .*string of 32768 bytes"):
        HeartbeatRequest.decode(b"\x81\x80\x02" + bytes(40000), 4)


# -- tagged fields -------------------------------------------------------------------------------


def test_unknown_tagged_fields_are_skipped() -> None:
    data = bytearray(HeartbeatRequest(group_id="g", generation_id=1, member_id="m").encode(4))
    assert data.pop() == 0
    unknown = b"\x02" + b"\x05\x03abc" + b"\x80\x01\x00"
    read, end = codec_for(HeartbeatRequest, 4).decode(bytes(data) + unknown + b"rest")
    assert read.group_id == "g"
    assert end == len(data) + len(unknown)


def test_unknown_tagged_fields_beside_known_ones_are_skipped() -> None:
    request = CreateTopicsRequest(topics=[])
    response = FetchResponse(
        responses=[], node_endpoints=[NodeEndpoint(node_id=1, host="h", port=9)]
    )
    data = bytearray(response.encode(16))
    tags = data.index(b"\x01\x00", 10)  # one tagged field, number 0
    data[tags : tags + 1] = b"\x02"
    data += b"\x63\x02zz"
    assert FetchResponse.decode(bytes(data), 16) == response
    assert CreateTopicsRequest.decode(request.encode(5), 5) == request


def test_a_tagged_field_with_its_default_is_not_written() -> None:
    def response(leader: FetchLeaderIdAndEpoch) -> FetchResponse:
        partition = FetchPartitionData(partition_index=0, high_watermark=9, current_leader=leader)
        return FetchResponse(responses=[FetchTopicResponse(partitions=[partition])])

    default = response(FetchLeaderIdAndEpoch()).encode(13)
    other = response(FetchLeaderIdAndEpoch(leader_id=1, leader_epoch=2)).encode(13)
    assert len(other) == len(default) + len(b"\x01\x09") + 9


def test_a_tagged_field_of_another_size_than_its_value_is_refused() -> None:
    response = FetchResponse(
        responses=[], node_endpoints=[NodeEndpoint(node_id=1, host="h", port=9)]
    )
    data = bytearray(response.encode(16))
    tags = data.index(b"\x01\x00", 10)
    data[tags + 2] += 1
    with pytest.raises(DecodeError, match=r"node_endpoints.*size of the tag"):
        FetchResponse.decode(bytes(data) + b"\x00", 16)


# -- records -------------------------------------------------------------------------------------


def test_records_are_a_view_of_the_request() -> None:
    for version in (3, 9):
        topic = ProduceTopicData(
            name="t", partition_data=[ProducePartitionData(index=0, records=b"batch")]
        )
        data = bytearray(ProduceRequest(acks=1, timeout_ms=1, topic_data=[topic]).encode(version))
        read = ProduceRequest.decode(memoryview(data), version)
        records = read.topic_data[0].partition_data[0].records
        data[data.index(b"batch")] = ord("B")
        assert records == b"Batch"


@pytest.mark.parametrize("version", [11, 17])
@pytest.mark.parametrize("size", [0, 5, 200, 70000])
def test_records_in_a_file_leave_a_gap_that_is_noted(version: int, size: int) -> None:
    def response(records: SplicedRecords | bytes) -> FetchResponse:
        partitions = [
            FetchPartitionData(partition_index=i, high_watermark=9, records=records)
            for i in range(2)
        ]
        return FetchResponse(responses=[FetchTopicResponse(partitions=partitions)])

    out, splices = bytearray(), Splices()
    codec = codec_for(FetchResponse, version)
    codec.write(response(SplicedRecords(size)), out, splices)
    for position, records in reversed(splices):
        out[position:position] = b"r" * records.size_bytes
    assert bytes(out) == response(b"r" * size).encode(version)


def test_records_in_a_file_are_refused_where_nobody_splices() -> None:
    partition = FetchPartitionData(
        partition_index=0, high_watermark=9, records=SplicedRecords(size_bytes=3)
    )
    response = FetchResponse(responses=[FetchTopicResponse(partitions=[partition])])
    with pytest.raises(EncodeError, match="only be sent by a connection"):
        response.encode(12)


def test_a_message_knows_its_api() -> None:
    assert HeartbeatRequest.SPEC.key is ApiKey.HEARTBEAT
    assert str(FetchRequest.SPEC.versions) == "0-18"
    assert str(FetchRequest.SPEC.advertised) == "4-18"
    assert MetadataRequestTopic(name="t").topic_id == bytes(16)
