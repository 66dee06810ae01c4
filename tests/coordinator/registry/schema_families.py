"""Schemas in families: the members of a family are compared with each other, in both directions.

`python -m tests.coordinator.registry.schema_families` writes them as JSON, a pair a line, for an
oracle to answer. The answers are kept in tests/golden/registry/verdicts.json: see test_verdicts.
"""

import json
import sys
from collections.abc import Iterator


def _record(*fields: object, **more: object) -> str:
    return json.dumps({"type": "record", "name": "R", "fields": list(fields), **more})


def _field(name: str, of_type: object, **more: object) -> dict[str, object]:
    return {"name": name, "type": of_type, **more}


_A = _field("a", "int")
_ENUM = {"type": "enum", "name": "E"}
_POINT = {"type": "record", "name": "P", "fields": [_field("x", "int")]}

AVRO = {
    "primitives": [
        json.dumps(name)
        for name in ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
    ],
    "fields": [
        _record(),
        _record(_A),
        _record(_field("a", "long")),
        _record(_field("a", "int", default=1)),
        _record(_field("b", "int", default=1, aliases=["a"])),
        _record(_A, _field("b", ["null", "string"], default=None)),
        _record(_field("b", "string"), _A),
        _record(_A, name="S"),
        _record(_A, name="S", aliases=["R"]),
        _record(_A, namespace="n.s"),
    ],
    "enums": [
        json.dumps({**_ENUM, "symbols": ["A"]}),
        json.dumps({**_ENUM, "symbols": ["A", "B"]}),
        json.dumps({**_ENUM, "symbols": ["C", "B"]}),
        json.dumps({**_ENUM, "symbols": ["A", "C"], "default": "C"}),
        json.dumps({**_ENUM, "name": "F", "symbols": ["A"]}),
        json.dumps({"type": "fixed", "name": "E", "size": 4}),
        json.dumps({"type": "fixed", "name": "E", "size": 8}),
        json.dumps({"type": "fixed", "name": "G", "size": 8}),
    ],
    "unions": [
        '["null","int"]',
        '["null","long"]',
        '["int","null"]',
        '["null","int","string"]',
        '"int"',
        '"string"',
        '["null"]',
        json.dumps(["null", _POINT]),
        json.dumps(_POINT),
        "[]",
    ],
    "containers": [
        '{"type":"array","items":"int"}',
        '{"type":"array","items":"long"}',
        '{"type":"array","items":["null","int"]}',
        '{"type":"map","values":"int"}',
        '{"type":"map","values":"string"}',
        json.dumps({"type": "array", "items": _POINT}),
        json.dumps({"type": "array", "items": {**_POINT, "fields": []}}),
        json.dumps({"type": "map", "values": {"type": "array", "items": "string"}}),
    ],
    "recursive": [
        _record(_field("next", ["null", "R"], default=None)),
        _record(_A, _field("next", ["null", "R"], default=None)),
        _record(_field("a", "int", default=0), _field("next", ["null", "R"])),
        _record(_field("next", ["null", "R"], default=None), _field("p", _POINT)),
        _record(_field("next", "R")),
    ],
    "attributes": [
        _record(_field("a", {"type": "int", "logicalType": "date"})),
        _record(
            _field("a", {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2})
        ),
        _record(
            _field("a", {"type": "bytes", "scale": 0, "precision": 4, "logicalType": "decimal"})
        ),
        _record(
            _field("a", {"type": "string", "avro.java.string": "String", "x": {"b": 1, "a": 2}})
        ),
        _record(_field("a", "int", doc="d", order="descending", zeta=1, alpha=[1.50, 2]), doc=""),
        _record(_field("a", "double", default=1), _field("b", "float", default=1e10), doc="all"),
        _record(_field("a", _POINT, default={"x": 1}), _field("b", "P"), namespace="n"),
        _record(
            _field("a", {**_POINT, "namespace": ""}),
            _field("b", "bytes", default="\u00ff"),
            namespace="n",
        ),
        _record(
            _field("a", {**_ENUM, "symbols": ["A"], "aliases": ["n.z", "o.E", "B"]}), namespace="n"
        ),
        '{"type":"error","name":"n.Fault","fields":[],"k":"ü\\u0001"}',
    ],
    "wrong": [
        '{"type":"record","name":"R"}',
        '{"type":"record","name":"1R","fields":[]}',
        '{"type":"record","name":"R","fields":[{"name":"a","type":"int","default":"x"}]}',
        '{"type":"record","name":"R","fields":[{"name":"a","type":"unknown"}]}',
        '["int","int"]',
        '{"type":"enum","name":"E","symbols":["A","A"]}',
        "{",
        _record(_A, _field("a", "string")),
    ],
}


def _object(properties: dict[str, object], **more: object) -> str:
    return json.dumps({"type": "object", "properties": properties, **more})


_INT, _STR = {"type": "integer"}, {"type": "string"}
_TREE = {
    "type": "object",
    "definitions": {"n": {"type": "object", "properties": {"c": {"$ref": "#/definitions/n"}}}},
    "properties": {"root": {"$ref": "#/definitions/n"}},
}
_DEEPER = json.loads(json.dumps(_TREE))
_DEEPER["definitions"]["n"]["properties"]["v"] = _INT
_CLOSED_TREE = json.loads(json.dumps(_TREE))
_CLOSED_TREE["definitions"]["n"]["additionalProperties"] = False
_MODERN = {"$schema": "https://json-schema.org/draft/2020-12/schema"}

JSON = {
    "types": [
        *(json.dumps({"type": name}) for name in ("string", "integer", "number", "null", "object")),
        "{}",
        "true",
        "false",
        '{"type":["string","null"]}',
        '{"type":["string","integer"]}',
        '{"title":"t","description":"d","default":1}',
    ],
    "strings": [
        '{"type":"string"}',
        '{"type":"string","maxLength":10}',
        '{"type":"string","maxLength":5,"minLength":1}',
        '{"type":"string","minLength":2}',
        '{"type":"string","pattern":"^a"}',
        '{"type":"string","pattern":"^b"}',
        '{"type":"string","format":"date"}',
        '{"maxLength":10}',
    ],
    "numbers": [
        '{"type":"number"}',
        '{"type":"integer"}',
        '{"type":"number","minimum":1,"maximum":10}',
        '{"type":"number","minimum":0.5,"maximum":20}',
        '{"type":"number","exclusiveMinimum":1,"exclusiveMaximum":10}',
        '{"type":"number","exclusiveMinimum":0}',
        '{"type":"number","multipleOf":2}',
        '{"type":"number","multipleOf":4.0}',
        '{"type":"number","multipleOf":3}',
        '{"type":"integer","maximum":1e2}',
    ],
    "properties": [
        _object({}),
        _object({"a": _INT}),
        _object({"a": _STR}),
        _object({"a": {}}),
        _object({"a": _INT, "b": _STR}),
        _object({"a": _INT}, required=["a"]),
        _object({"a": {"type": "integer", "default": 1}}, required=["a"]),
        _object({"a": _INT, "b": {"type": "string", "default": ""}}, required=["b"]),
        _object({"a": _INT, "b": _STR}, required=["b"]),
    ],
    "content models": [
        _object({"a": _INT}, additionalProperties=False),
        _object({"a": _INT, "b": _STR}, additionalProperties=False),
        _object({"a": _INT, "b": _STR}, additionalProperties=False, required=["b"]),
        _object({"a": _INT}, additionalProperties=_STR),
        _object({"a": _INT, "b": _STR}, additionalProperties=_STR),
        _object({"a": _INT}, additionalProperties=True),
        _object({"a": _INT}, patternProperties={"^b": _STR}),
        _object({"a": _INT, "b": _INT}, patternProperties={"^b": _STR}),
        _object({"b": False}, additionalProperties=False),
    ],
    "object limits": [
        _object({}, maxProperties=3),
        _object({}, maxProperties=2, minProperties=1),
        _object({}, dependencies={"a": ["b"]}),
        _object({}, dependencies={"a": ["b", "c"]}),
        _object({}, dependencies={"a": ["d"], "e": _object({}) and {"type": "object"}}),
        _object({}, propertyNames={"maxLength": 3}),
        _object({}),
    ],
    "arrays": [
        '{"type":"array"}',
        '{"type":"array","items":{"type":"integer"}}',
        '{"type":"array","items":{"type":"number"}}',
        '{"type":"array","items":[{"type":"integer"}]}',
        '{"type":"array","items":[{"type":"integer"},{"type":"string"}]}',
        '{"type":"array","items":[{"type":"integer"}],"additionalItems":false}',
        '{"type":"array","items":[{"type":"integer"}],"additionalItems":{"type":"string"}}',
        '{"type":"array","minItems":1,"maxItems":3,"uniqueItems":true}',
        '{"type":"array","minItems":2,"maxItems":9}',
    ],
    "enums": [
        '{"enum":["a"]}',
        '{"enum":["a","b"]}',
        '{"enum":["b","c"]}',
        '{"type":"string","enum":["a","b"]}',
        '{"type":"string","enum":["a"]}',
        '{"const":"a"}',
        '{"const":"b"}',
        '{"type":"string"}',
    ],
    "combined": [
        '{"oneOf":[{"type":"string"},{"type":"integer"}]}',
        '{"oneOf":[{"type":"string"},{"type":"integer"},{"type":"null"}]}',
        '{"anyOf":[{"type":"string"},{"type":"integer"}]}',
        '{"anyOf":[{"type":"integer"},{"type":"null"}]}',
        '{"allOf":[{"type":"string"},{"maxLength":3}]}',
        '{"allOf":[{"type":"string"}]}',
        '{"oneOf":[{"type":"string"}]}',
        '{"type":"string"}',
        '{"not":{"type":"string"}}',
        '{"not":{"type":"integer"}}',
        '{"type":["string","integer"]}',
        '{"oneOf":[{"type":"string","maxLength":1},{"type":"string","maxLength":2}]}',
        '{"if":{"type":"string"},"then":{"maxLength":1}}',
    ],
    "references": [
        json.dumps(_TREE),
        json.dumps(_DEEPER),
        json.dumps(_CLOSED_TREE),
        _object({"root": {"type": "object"}}),
        '{"$ref":"#/definitions/a","definitions":{"a":{"type":"string"}}}',
        '{"$id":"http://x.y/z.json","$ref":"#/$defs/a","$defs":{"a":{"type":"string"}}}',
        '{"type":"string"}',
    ],
    "modern": [
        json.dumps({**_MODERN, "type": "object", "unevaluatedProperties": False}),
        json.dumps({**_MODERN, "type": "object", "properties": {"a": _INT}}),
        json.dumps({**_MODERN, "type": "object", "dependentRequired": {"a": ["b"]}}),
        json.dumps({**_MODERN, "type": "array", "prefixItems": [_INT], "items": _STR}),
        json.dumps({**_MODERN, "type": "array", "prefixItems": [_INT, _STR]}),
        json.dumps({**_MODERN, "type": "array", "items": _INT, "contains": _INT, "maxContains": 2}),
        json.dumps({**_MODERN, "$ref": "#/$defs/a", "$defs": {"a": _STR}, "maxLength": 2}),
        json.dumps(
            {**_MODERN, "type": "object", "properties": {"a": _INT}, "additionalProperties": False}
        ),
    ],
    "wrong": [
        "{",
        "[]",
        '"string"',
        '{"type":"strange"}',
        '{"type":"string","minLength":"x"}',
        '{"properties":[]}',
        '{"$ref":"#/definitions/missing"}',
        '{"required":"a"}',
    ],
}


def _proto(body: str, head: str = 'syntax = "proto3";') -> str:
    return f"{head}\n{body}\n"


_PROTO2 = 'syntax = "proto2";'

PROTOBUF = {
    "fields": [
        _proto("message M { }"),
        _proto("message M { int32 a = 1; }"),
        _proto("message M { int64 b = 1; }"),
        _proto("message M { sint32 a = 1; }"),
        _proto("message M { string a = 1; }"),
        _proto("message M { bytes a = 1; }"),
        _proto("message M { repeated int32 a = 1; }"),
        _proto("message M { optional int32 a = 1; string b = 2; }"),
        _proto("message M { fixed32 a = 1; }"),
        _proto("message M { double a = 1; }"),
        _proto("message M { N a = 1; message N { int32 x = 1; } }"),
        _proto("message M { E a = 1; } enum E { Z = 0; }"),
    ],
    "labels": [
        _proto("message M { optional int32 a = 1; }", _PROTO2),
        _proto("message M { required int32 a = 1; }", _PROTO2),
        _proto("message M { repeated int32 a = 1; }", _PROTO2),
        _proto("message M { repeated string s = 2; optional int32 a = 1; }", _PROTO2),
        _proto("message M { optional string s = 2; }", _PROTO2),
        _proto("message M { required string s = 2; }", _PROTO2),
    ],
    "messages": [
        _proto("package p; message M { N n = 1; } message N { int32 a = 1; }"),
        _proto("package p; message N { string a = 1; } message M { N n = 1; }"),
        _proto("package q; message M { N n = 1; } message N { int32 a = 1; }"),
        _proto("package p; message M { N n = 1; message N { int32 a = 1; } }"),
        _proto("package p; message M { O n = 1; } message O { int32 a = 1; }"),
        _proto("package p; message M { .p.N n = 1; M m = 2; } message N { int32 a = 1; N b = 2; }"),
        _proto("package p; message N { int32 a = 1; }"),
    ],
    "oneofs": [
        _proto("message M { oneof o { int32 a = 1; string b = 2; } }"),
        _proto("message M { oneof o { int32 a = 1; } }"),
        _proto("message M { oneof o { int32 a = 1; string b = 2; bool c = 3; } }"),
        _proto("message M { int32 a = 1; string b = 2; }"),
        _proto("message M { int32 a = 1; oneof o { string b = 2; } }"),
        _proto("message M { oneof p { string a = 1; string b = 2; } }"),
        _proto("message M { int64 z = 9; }"),
        _proto("message M { oneof o { int32 a = 1; } oneof p { string b = 2; } }"),
    ],
    "maps and enums": [
        _proto("message M { map<string, int32> m = 1; }"),
        _proto("message M { map<string, string> m = 1; }"),
        _proto("message M { map<int32, int64> m = 1; }"),
        _proto(
            "message M { repeated MEntry m = 1; message MEntry { option map_entry = true;"
            " string key = 1; int32 value = 2; } }"
        ),
        _proto("message M { map<string, N> m = 1; message N { int32 a = 1; } }"),
        _proto("enum E { A = 0; B = 1; } message M { E m = 1; }"),
        _proto("enum E { A = 0; } message M { int32 m = 1; }"),
        _proto(
            'import "google/protobuf/timestamp.proto";\n'
            "message M { google.protobuf.Timestamp m = 1; }"
        ),
    ],
    "writing": [
        _proto(
            'import "b.proto"; import public "a.proto"; import "google/protobuf/any.proto";'
            ' package p; option java_package = "x\\ty"; option go_package = "g";\n// comment\n'
            "message M { reserved 9, 4 to 6, 100 to max; reserved \"z\", 'y';\n"
            '  string b = 2 [deprecated = true, json_name = "B"]; \n/* c */\n int32 a = 1;\n'
            "  enum E { option allow_alias = true; X = 0; B = 0x2; A = 1; Y = -1; }"
            "  google.protobuf.Any any = 3; }\n"
            "service S { rpc Get (stream M) returns (M) { option deprecated = true; }"
            " rpc P (M) returns (stream M); }"
        ),
        _proto(
            "message M { optional int32 a = 1 [default = -5];"
            ' optional string s = 2 [default = "q"];'
            " optional group G = 3 { optional int32 x = 1; } extensions 100 to 199, 500;"
            " optional E e = 4 [default = B]; enum E { A = 1; B = 2; }"
            " extend M { optional int32 q = 126; } }"
            " extend M { repeated string r = 127; }",
            _PROTO2,
        ),
        _proto("message message { string string = 1; message_ m = 2; message message_ {} }"),
        "message M { optional int32 a = 1; }",
        _proto(
            "message M { oneof o { string b = 4; string a = 3; } int32 z = 2;"
            " oneof e { bool k = 1; } }"
        ),
    ],
    "wrong": [
        _proto("message M { string a = ; }"),
        _proto("message M { string a = 1; int32 b = 1; }"),
        _proto("message M { Missing a = 1; }"),
        "hello",
        _proto("enum E { A = 0; B = 0; }"),
        _proto("message M { string a = 0; }"),
        'syntax = "proto4"; message M {}',
    ],
}

FAMILIES = {"AVRO": AVRO, "JSON": JSON, "PROTOBUF": PROTOBUF}


def pairs() -> Iterator[tuple[str, str, str, str]]:
    """Yield type, family, old and new of each pair; a wrong schema is only paired with itself."""
    for schema_type, families in FAMILIES.items():
        for family, schemas in families.items():
            for old in schemas:
                for new in [old] if family == "wrong" else schemas:
                    yield schema_type, family, old, new


if __name__ == "__main__":
    for schema_type, _, old, new in pairs():
        sys.stdout.write(json.dumps({"type": schema_type, "old": old, "new": new}) + "\n")
