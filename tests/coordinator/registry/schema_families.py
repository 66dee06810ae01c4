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


def _record_of(name: str, of_type: object) -> dict[str, object]:
    return {"type": "record", "name": name, "fields": [_field("a", of_type)]}


def _named_like_types() -> Iterator[dict[str, object]]:
    for word in ("record", "error", "enum", "array", "map", "union", "fixed"):
        yield _field(f"{word}1", {"type": "record", "name": word, "fields": []})
        yield _field(f"{word}2", word)


def _logical_types() -> Iterator[dict[str, object]]:
    fixed = {"type": "fixed", "name": "F", "size": 16}
    for index, (of_type, logical_type, more) in enumerate(
        (
            ({"type": "int"}, "date", {}),
            ({"type": "string"}, "date", {}),
            ({"type": "string"}, "uuid", {}),
            (fixed, "uuid", {}),
            ({**fixed, "size": 12}, "uuid", {}),
            ({**fixed, "size": 12}, "duration", {}),
            (fixed, "decimal", {"precision": 38}),
            (fixed, "decimal", {"precision": 37, "scale": 2}),
            ({"type": "bytes"}, "decimal", {"precision": 4, "scale": 5}),
            ({"type": "bytes"}, "decimal", {}),
            ({"type": "string"}, "decimal", {"precision": 4}),
            ({"type": "long"}, "timestamp-nanos", {}),
            ({"type": "long"}, "other", {}),
        )
    ):
        name = {"name": f"F{index}"} if "name" in of_type else {}
        made = {**of_type, **name, "alpha": 1, **more, "logicalType": logical_type}
        yield _field(f"a{index}", made)


_A = _field("a", "int")
_ENUM = {"type": "enum", "name": "E"}
_POINT = {"type": "record", "name": "P", "fields": [_field("x", "int")]}
_SPACED = {**_POINT, "namespace": "n"}
_LINE = {"type": "record", "name": "L", "fields": [_field("from", _POINT), _field("to", "P")]}
_LONG = {"type": "fixed", "name": "long", "namespace": "x", "size": 8}
_SIZES = (0, -1, (1 << 31) - 9, (1 << 31) - 8, 1 << 31, 5_000_000_000, 8.0, "8", None)

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
        _record(*_logical_types()),
        _record(_field("a", "int", logicalType="date", alpha=1)),
    ],
    "names": [
        _record(_field("a", _LONG), _field("b", "x.long"), namespace="x"),
        _record(_field("a", _LONG), _field("b", "long"), namespace="x"),
        _record(_field("a", "long"), _field("b", "long"), namespace="x"),
        _record(_A, namespace="x", aliases=["long", "x.map", "y.int", "E", "x.E"]),
        _record(*_named_like_types(), namespace="x"),
        _record(*_named_like_types()),
        _record(
            _field("a", {**_ENUM, "name": ".E", "symbols": ["A"], "aliases": [".F", "G"]}),
            _field("b", "E"),
            namespace="n",
        ),
    ],
    "twice": [
        _record(_field("a", _POINT), _field("b", _POINT)),
        _record(_field("a", _POINT), _field("b", "P")),
        _record(_field("a", {**_POINT, "doc": "1"}), _field("b", {**_POINT, "doc": "2"})),
        _record(_field("a", _LONG), _field("b", {"type": "array", "items": _LONG})),
        _record(
            _field("a", {**_ENUM, "symbols": ["A", "B"], "default": "A"}),
            _field("b", {**_ENUM, "symbols": ["A", "B"], "aliases": ["F"]}),
        ),
        _record(_field("a", _LINE), _field("b", _LINE), _field("c", _POINT)),
        _record(_field("a", _POINT), _field("b", {**_POINT, "type": "error"})),
    ],
    "forward": [
        _record(_field("a", "P"), _field("b", _POINT)),
        _record(_field("a", _POINT), _field("b", "P")),
        _record(_field("a", ["null", "P"], default=None), _field("b", _POINT)),
        _record(_field("a", {"type": "map", "values": "P"}), _field("b", _POINT), namespace="n"),
        _record(_field("a", {"type": "array", "items": ["int", "n.P"]}), _field("b", _SPACED)),
        _record(_field("a", "E"), _field("b", {**_ENUM, "symbols": ["A"]})),
        _record(_field("a", "P", default={"x": 1}), _field("b", _POINT)),
        _record(_field("a", _record_of("S", "R")), _field("b", ["null", "S"])),
        json.dumps([_record_of("Q", "P"), _POINT]),
    ],
    "wrong": [
        '{"type":"record","name":"R"}',
        '{"type":"record","name":"1R","fields":[]}',
        # A type that is not defined, and not complete ones.
        _record(_field("a", "P"), _field("b", {**_POINT, "name": "Q"})),
        _record(_field("a", "P", default={}), _field("b", _POINT)),
        _record(_field("a", "E", default="A"), _field("b", {**_ENUM, "symbols": ["A"]})),
        _record(_field("a", ["P", "P"]), _field("b", _POINT)),
        json.dumps(["Q", _record_of("Q", "int")]),
        _record(_field("a", "P"), _field("b", {**_POINT, "namespace": ""}), namespace="n"),
        _record(_field("next", "R", default={})),
        _record(_A, _field("next", ["R", "null"], default={"a": 1, "next": None})),
        _record(_A, _field("next", ["null", "R"], default={"a": 1, "next": None})),
        _record(_A, _field("s", {"type": "array", "items": "R"}, default=[{"a": 1, "s": []}])),
        _record(_A, _field("s", {"type": "array", "items": "R"}, default=[])),
        # Two definitions of a name that differ.
        _record(_field("a", _POINT), _field("b", {**_POINT, "fields": []})),
        _record(_field("a", _POINT), _field("b", {**_POINT, "k": 1})),
        _record(_field("a", _LONG), _field("b", {**_LONG, "size": 4})),
        _record(_field("a", _LONG), _field("b", {**_LONG, "k": 1})),
        _record(
            _field("a", _record_of("S", ["null", "S"])), _field("b", _record_of("S", ["null", "S"]))
        ),
        _record(
            _field("a", {**_POINT, "fields": [_field("x", "int", default=1)]}),
            _field("b", {**_POINT, "fields": [_field("x", "int", default=2)]}),
        ),
        _record(
            _field("a", {**_ENUM, "symbols": ["A", "B"]}),
            _field("b", {**_ENUM, "symbols": ["B", "A"]}),
        ),
        # Defaults of records.
        _record(_field("a", _record_of("S", ["null", "int"]), default={})),
        _record(_field("a", _record_of("S", ["null", "int"]), default={"a": None})),
        _record(_field("a", _POINT, default={})),
        _record(_field("a", {**_POINT, "fields": [_field("x", "int", default=1)]}, default={})),
        *(_record(_field("a", "double", default=text)) for text in ("1.5", " NaN ", "1d", "x", "")),
        # Sizes.
        *(json.dumps({"type": "fixed", "name": "F", "size": size}) for size in _SIZES),
        # Names.
        *(
            _record(_A, name=name)
            for name in ("größe", "a-b", "a.b-c", "a-b.c", "a..b", ".a", "a.", "")
        ),
        *(_record(_A, namespace=space) for space in ("my-company.x", "a..b", "a.", ".a", "1")),
        *(_record(_A, aliases=[alias]) for alias in ("1-bad", "a-b.c", "", "größe")),
        _record(_A, aliases=None),
        _record(_field("a", "int", aliases=["1-bad"])),
        _record(_field("größe", "int")),
        json.dumps({**_ENUM, "symbols": ["größe"]}),
        json.dumps({**_ENUM, "symbols": ["A"], "default": 5}),
        json.dumps({**_ENUM, "symbols": ["A"], "default": None}),
        # Types.
        '{"type":{"type":"int"},"logicalType":"date"}',
        '{"type":["null","int"]}',
        '{"type":null}',
        '{"type":"array","items":null}',
        '{"type":"bytes","logicalType":"decimal","precision":4}',
        '""',
        '"int" 5',
        '/* c */ {"type":"int"}',
        '{// "c\n"type":/* "//" \\ */"int", "k":"// \\"/* \\\\"}',
        '{"type":"int" / * c */}',
        '{"type":"int" /* c }',
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

# Avro schemas with the names and texts of what they refer to.
_PERSON = _record(
    _field("home", {**_SPACED, "name": "Address", "doc": "1"}), name="Person", namespace="n"
)
_SHOP = _record(
    _field("at", {**_SPACED, "name": "Address", "doc": "2"}), name="Shop", namespace="n"
)
_OTHER_ADDRESS = _record(
    _field("at", {**_SPACED, "name": "Address", "fields": []}), name="Shop", namespace="n"
)
_NODE = _record(_field("next", ["null", "Node"]), name="Node", namespace="n")

REFERRING: list[tuple[str, dict[str, str]]] = [
    (_record(_field("p", "n.Person")), {"p": _PERSON}),
    (_record(_field("p", "n.Person"), _field("a", "n.Address")), {"p": _PERSON}),
    (_record(_field("a", "n.Address"), _field("p", "n.Person")), {"p": _PERSON}),
    (_record(_field("p", "n.Person"), _field("s", "n.Shop")), {"p": _PERSON, "s": _SHOP}),
    (_record(_field("p", "n.Person"), _field("s", "n.Shop")), {"p": _PERSON, "s": _OTHER_ADDRESS}),
    (_record(_field("p", json.loads(_PERSON))), {"p": _PERSON}),
    (_record(_field("p", {**_SPACED, "name": "Address", "doc": "3"})), {"p": _PERSON}),
    (json.dumps({**_SPACED, "name": "Address", "doc": "3"}), {"p": _PERSON}),
    ('"n.Person"', {"p": _PERSON}),
    ('"n.Address"', {"p": _PERSON}),
    ('{"type":"array","items":"n.Person"}', {"p": _PERSON}),
    (_PERSON, {"p": _PERSON}),
    (_NODE, {"n": _NODE}),
    (_record(_field("n", json.loads(_NODE))), {"n": _NODE}),
    (_record(_field("n", "n.Node")), {"n": _NODE, "a": json.dumps(["n.Node", "int"])}),
    (
        _record(_field("a", "n.Address")),
        {"a": _record(_field("x", "n.Address"), name="X"), "p": _PERSON},
    ),
    (_record(_field("a", "R"), name="n.R"), {"r": _record(_A)}),
    (_record(_field("a", "X"), name="n.R"), {"r": _record(_A, name="X")}),
    (_record(_field("x", "x.long"), namespace="x"), {"l": json.dumps(_LONG)}),
]


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
    for text, references in REFERRING:
        line = {"type": "AVRO", "old": text, "new": text, "references": references}
        sys.stdout.write(json.dumps(line) + "\n")
