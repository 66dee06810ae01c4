"""Files as descriptors: Google's library reads them, and the registry reads them as the same.

tests/golden/registry/descriptors.json has files with what protoc (libprotoc 35.1) writes for them
with --descriptor_set_out and --retain_options, in the text format, without the names of the files
and of fields in JSON.
"""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, text_format, timestamp_pb2

from odradek.coordinator.registry.errors import InvalidSchemaError
from odradek.coordinator.registry.formats import formatted, parse
from odradek.coordinator.registry.schemas import AVRO, PROTOBUF

PROTO3 = """
syntax = "proto3";
package shop.v1;
import "google/protobuf/timestamp.proto";
option java_package = "com.shop";
option java_multiple_files = true;
option optimize_for = CODE_SIZE;
message Order {
  string id = 1;
  map<string, Line> order_lines = 2;
  optional int32 count = 3;
  repeated Kind kinds = 4 [packed = false];
  oneof pay { string card = 5; Cash cash = 6; }
  google.protobuf.Timestamp at = 7 [json_name = "when", deprecated = true];
  message Line { double price = 1; }
  message Cash { bytes notes = 1; }
  reserved 10 to 12, 15;
  reserved "old";
}
enum Kind {
  option allow_alias = true;
  A = 0;
  B = 1;
  C = 1;
  reserved 5 to 7;
}
service Shop { rpc Get (Order) returns (stream Order.Line); }
"""
PROTO2 = """
syntax = "proto2";
message M {
  optional string text = 1 [default = "a"];
  required group Part = 2 { optional bool on = 1 [default = true]; }
  optional float number = 3 [default = 1.5];
  optional Color color = 4 [default = RED];
  extensions 100 to max;
}
enum Color { BLUE = 0; RED = 1; }
extend M { optional int32 extra = 100; }
"""


GOLDEN = Path(__file__).parents[2] / "golden" / "registry" / "descriptors.json"
PROTOC = [(each["text"], each["descriptor"]) for each in json.loads(GOLDEN.read_text("utf-8"))]


def descriptor_of(text: str) -> Any:
    serialized = formatted(PROTOBUF, parse(PROTOBUF, text, {}, is_new=True), "serialized")
    return descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(serialized))


def pool_with(descriptor: Any) -> Any:
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
    pool.Add(descriptor)
    return pool


def test_the_library_reads_a_file_of_proto3() -> None:
    descriptor = descriptor_of(PROTO3)
    assert descriptor.options.java_package == "com.shop"
    assert descriptor.options.optimize_for == descriptor_pb2.FileOptions.CODE_SIZE
    order = pool_with(descriptor).FindMessageTypeByName("shop.v1.Order")
    fields = order.fields_by_name
    lines = fields["order_lines"].message_type
    assert lines.GetOptions().map_entry
    assert lines.fields_by_name["value"].message_type.full_name == "shop.v1.Order.Line"
    assert fields["card"].containing_oneof.name == "pay"
    assert fields["count"].has_presence
    assert not fields["id"].has_presence
    assert fields["at"].json_name == "when"
    assert fields["at"].GetOptions().deprecated
    assert [each.name for each in order.nested_types] == ["Line", "Cash", "OrderLinesEntry"]
    assert [(r.start, r.end) for r in descriptor.message_type[0].reserved_range] == [
        (10, 13),
        (15, 16),
    ]
    assert [(r.start, r.end) for r in descriptor.enum_type[0].reserved_range] == [(5, 7)]
    get = descriptor.service[0].method[0]
    assert (get.output_type, get.server_streaming) == (".shop.v1.Order.Line", True)


def test_the_library_reads_a_file_of_proto2() -> None:
    pool = pool_with(descriptor_of(PROTO2))
    message = pool.FindMessageTypeByName("M")
    defaults = {name: field.default_value for name, field in message.fields_by_name.items()}
    assert (defaults["text"], defaults["number"], defaults["color"]) == ("a", 1.5, 1)
    part = message.fields_by_name["part"]
    assert part.message_type.full_name == "M.Part"
    assert part.message_type.fields_by_name["on"].default_value is True
    assert pool.FindExtensionByName("extra").containing_type is message


@pytest.mark.parametrize("text", [PROTO3, PROTO2])
def test_the_registry_reads_what_it_has_written_as_the_same_schema(text: str) -> None:
    schema = parse(PROTOBUF, text, {}, is_new=True)
    again = parse(PROTOBUF, formatted(PROTOBUF, schema, "serialized"), {}, is_new=True)
    if "group" not in text:  # a descriptor's group is read as a message
        assert again.normalized().canonical() == schema.normalized().canonical()
    assert formatted(PROTOBUF, again, "serialized")


@pytest.mark.parametrize(("text", "protocs"), PROTOC)
def test_descriptors_are_protocs(text: str, protocs: str) -> None:
    descriptor = descriptor_of(text)
    descriptor.ClearField("name")
    assert descriptor == text_format.Parse(protocs, descriptor_pb2.FileDescriptorProto())


@pytest.mark.parametrize(("text", "protocs"), PROTOC)
def test_protocs_descriptors_are_read_as_the_file(text: str, protocs: str) -> None:
    protoc = text_format.Parse(protocs, descriptor_pb2.FileDescriptorProto())
    given = base64.b64encode(protoc.SerializeToString()).decode()
    read = parse(PROTOBUF, given, {}, is_new=True).canonical()
    descriptor = descriptor_of(read)
    descriptor.ClearField("name")
    assert descriptor == protoc, read


def test_an_option_of_another_type_is_refused() -> None:
    text = 'edition = "2023"; option features = 1; message M { int32 a = 1; }'
    with pytest.raises(InvalidSchemaError, match="features is a message"):
        descriptor_of(text)


def test_an_uninterpreted_option_is_left_out() -> None:
    descriptor = descriptor_of("option uninterpreted_option = { name: {} }; message M {}")
    assert not descriptor.options.uninterpreted_option


def test_types_of_references_have_full_names() -> None:
    base = 'syntax = "proto3"; package base; message B { int32 x = 1; }'
    text = 'syntax = "proto3"; import "b.proto"; message M { base.B b = 1; }'
    schema = parse(PROTOBUF, text, {"b.proto": base}, is_new=True)
    serialized = base64.b64decode(formatted(PROTOBUF, schema, "serialized"))
    descriptor = descriptor_pb2.FileDescriptorProto.FromString(serialized)
    assert list(descriptor.dependency) == ["b.proto"]
    assert descriptor.message_type[0].field[0].type_name == ".base.B"


def test_options_that_protobuf_defines_are_kept_wherever_they_are() -> None:
    deprecated = "option deprecated = true;"
    descriptor = descriptor_of(
        f"""
        syntax = "proto2";
        {deprecated}
        message M {{
          {deprecated}
          optional int32 a = 1 [deprecated = true, jstype = JS_STRING];
          oneof o {{ int32 b = 2 [deprecated = true]; }}
        }}
        enum E {{ {deprecated} X = 0 [deprecated = true]; }}
        service S {{
          {deprecated}
          rpc Get (M) returns (M) {{ {deprecated} option idempotency_level = IDEMPOTENT; }}
        }}
        """
    )
    (message,), (enum,), (service,) = (
        descriptor.message_type,
        descriptor.enum_type,
        descriptor.service,
    )
    places = [descriptor, message, *message.field, enum, *enum.value, service, *service.method]
    assert len(places) == 8
    assert all(place.options.deprecated for place in places)
    assert message.field[0].options.jstype == descriptor_pb2.FieldOptions.JS_STRING
    method = service.method[0]
    assert method.options.idempotency_level == descriptor_pb2.MethodOptions.IDEMPOTENT


def test_an_unknown_type_is_refused() -> None:
    schema = parse(PROTOBUF, 'syntax = "proto3"; message M { Gone g = 1; }', {}, is_new=False)
    with pytest.raises(InvalidSchemaError, match="unknown type Gone"):
        formatted(PROTOBUF, schema, "serialized")


def test_an_unknown_format_is_the_stored_text() -> None:
    schema = parse(AVRO, '{"type": "int"}', {}, is_new=True)
    assert formatted(AVRO, schema, "other") == '"int"'
