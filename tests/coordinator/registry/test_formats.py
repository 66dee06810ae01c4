"""Parsing: references, odd texts, and texts at random."""

import base64
import json
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
from google.protobuf import descriptor_pb2
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.coordinator.registry import formats
from odradek.coordinator.registry.errors import InvalidSchemaError
from odradek.coordinator.registry.formats.protobuf_parser import parse_file
from odradek.coordinator.registry.json_text import dumps, loads

PERSON = '{"type":"record","name":"P","namespace":"n","fields":[{"name":"x","type":"%s"}]}'
USES_PERSON = '{"type":"record","name":"R","fields":[{"name":"p","type":"n.P"}]}'
ADDRESS = '{"type":"%s","definitions":{"k":{"type":"integer"}}}'
USES_ADDRESS = '{"properties":{"a":{"$ref":"a.json"},"b":{"$ref":"a.json#/definitions/k"}}}'
PART = 'syntax = "proto3"; package q; message A { %s x = 1; }'
DRAFT_4 = "http://json-schema.org/draft-04/schema#"
USES_PART = 'syntax = "proto3"; package p; import "a.proto"; message M { q.A a = 1; }'


@pytest.mark.parametrize(
    ("kind", "text", "name", "referred", "types", "reason"),
    [
        ("AVRO", USES_PERSON, "n.P", PERSON, ("int", "string"), "TYPE_MISMATCH"),
        ("JSON", USES_ADDRESS, "a.json", ADDRESS, ("string", "number"), "TYPE_CHANGED"),
        ("PROTOBUF", USES_PART, "a.proto", PART, ("int32", "string"), "FIELD_SCALAR_KIND_CHANGED"),
    ],
)
def test_what_is_referred_to_is_compared_too(
    kind: str, text: str, name: str, referred: str, types: tuple[str, str], reason: str
) -> None:
    old, new = (formats.parse(kind, text, {name: referred % t}, is_new=True) for t in types)
    assert formats.compatibility(kind, old, old) == []
    assert reason in formats.compatibility(kind, new, old)[0]
    with pytest.raises(InvalidSchemaError):
        formats.parse(kind, text, {}, is_new=True)


def test_avro_texts_name_what_references_define() -> None:
    parsed = formats.parse("AVRO", USES_PERSON, {"n.P": PERSON % "int"}, is_new=True)
    assert parsed.canonical() == USES_PERSON


@pytest.mark.parametrize(
    ("draft", "keyword"),
    [
        (DRAFT_4, "id"),
        ("http://json-schema.org/draft-07/schema#", "$id"),
        ("https://json-schema.org/draft/2020-12/schema", "$id"),
    ],
)
def test_an_id_may_end_with_an_empty_fragment(draft: str, keyword: str) -> None:
    schema = {
        "$schema": draft,
        keyword: "http://h/x.json#",
        "properties": {"a": {"$ref": "#/definitions/b"}, "c": {"$ref": "#"}},
        "definitions": {"b": {"type": "string"}},
    }
    assert formats.parse("JSON", json.dumps(schema), {}, is_new=True)


def test_a_chain_of_references_is_no_nesting() -> None:
    def chain(last: str) -> formats.Parsed:
        definitions: dict[str, Any] = {"t0": {"type": last}}
        for number in range(1, 150):
            part = {"$ref": f"#/definitions/t{number - 1}"}
            definitions[f"t{number}"] = {"type": "object", "properties": {"a": part}}
        schema = {"$ref": "#/definitions/t149", "definitions": definitions}
        return formats.parse("JSON", json.dumps(schema), {}, is_new=True)

    (reason,) = formats.compatibility("JSON", chain("string"), chain("number"))
    assert "TYPE_CHANGED" in reason


def test_what_defs_lack_may_be_in_definitions_but_not_the_other_way_round() -> None:
    def parse(used: str, has: str, name: str = "") -> formats.Parsed:
        referred = {"a.json": json.dumps({has: {"k": {"type": "string"}}})}
        schema = {"$id": "http://h/b.json", has: {"k": {}}, "$ref": f"{name}#/{used}/k"}
        return formats.parse("JSON", json.dumps(schema), referred, is_new=True)

    for name in ("", "a.json"):
        assert parse("$defs", "definitions", name)
        with pytest.raises(InvalidSchemaError, match="Unresolved"):
            parse("definitions", "$defs", name)


def test_values_of_an_enum_may_have_their_names_in_any_order() -> None:
    one, two = '{"enum":[{"a":1,"b":2}]}', '{"enum":[{"b":2,"a":1}]}'
    old, new = (formats.parse("JSON", text, {}, is_new=True) for text in (one, two))
    assert formats.compatibility("JSON", new, old) == []


def test_names_of_stored_avro_schemas_may_have_letters_of_all_languages() -> None:
    text = '{"type":"record","name":"%s","namespace":"%s","fields":[]}'
    for name, space in (("größe", "n"), ("R", "my-company")):
        with pytest.raises(InvalidSchemaError):
            formats.parse("AVRO", text % (name, space), {}, is_new=True)
        assert formats.parse("AVRO", text % (name, space), {}, is_new=False)
    with pytest.raises(InvalidSchemaError):
        formats.parse("AVRO", text % ("a-b", "n"), {}, is_new=False)


def test_protobuf_may_be_given_as_a_descriptor() -> None:
    descriptor = descriptor_pb2.FileDescriptorProto(name="m.proto", package="p", syntax="proto3")
    message = descriptor.message_type.add(name="M")
    message.field.add(name="a_b", number=1, type=5, label=1, json_name="aB")
    message.field.add(name="n", number=2, type=11, type_name=".p.M", label=3, json_name="n")
    text = base64.b64encode(descriptor.SerializeToString()).decode()
    parsed = formats.parse("PROTOBUF", text, {}, is_new=True)
    assert parsed.canonical() == (
        'syntax = "proto3";\npackage p;\n\nmessage M {\n  int32 a_b = 1;\n'
        "  repeated .p.M n = 2;\n}\n"
    )


def test_a_descriptor_with_names_that_no_file_can_have_is_refused() -> None:
    descriptor = descriptor_pb2.FileDescriptorProto(name="m.proto", syntax="proto3")
    descriptor.message_type.add(name="a b")
    text = base64.b64encode(descriptor.SerializeToString()).decode()
    with pytest.raises(InvalidSchemaError, match="describes no file"):
        formats.parse("PROTOBUF", text, {}, is_new=True)


@pytest.mark.parametrize(
    "text",
    [
        r'import "a\"b";',
        r'import public "a\\";',
        r'edition = "\n";',
        r'message M { reserved "\"", "a"; }',
    ],
)
def test_names_in_quotes_are_written_with_escapes(text: str) -> None:
    written = formats.parse("PROTOBUF", text, {}, is_new=True).canonical()
    assert formats.parse("PROTOBUF", written, {}, is_new=True).canonical() == written


def test_a_range_of_one_number_is_written_as_it_was_given() -> None:
    lines = ["reserved 5 to 5, 6;", "extensions 100 to 100;", "extensions 200;"]
    parsed = formats.parse("PROTOBUF", f"message M {{ {' '.join(lines)} }}", {}, is_new=True)
    assert [line for line in lines if line in parsed.canonical()] == lines
    normalized = parsed.normalized().canonical()
    assert "reserved 5;\n  reserved 6;" in normalized
    assert "extensions 100;\n  extensions 200;" in normalized


KNOWN_FILES = "any api descriptor duration empty field_mask source_context struct timestamp type"


def defined(made: Any, prefix: str) -> Iterator[tuple[str, str]]:
    """Yield the types of a file, or of a message, and what a field of each is."""
    for enum in made.enum_type:
        yield f"{prefix}.{enum.name}", "TYPE_ENUM"
    for message in getattr(made, "message_type", None) or made.nested_type:
        if not message.options.map_entry:
            yield f"{prefix}.{message.name}", "TYPE_MESSAGE"
            yield from defined(message, f"{prefix}.{message.name}")


@pytest.mark.parametrize("name", [*KNOWN_FILES.split(), "wrappers"])
def test_all_types_of_the_files_that_protobuf_brings_are_known(name: str) -> None:
    file = descriptor_pb2.FileDescriptorProto()
    import_module(f"google.protobuf.{name}_pb2").DESCRIPTOR.CopyToProto(file)
    kinds = dict(defined(file, "google.protobuf"))
    fields = [f"optional {each} f{i} = {i};" for i, each in enumerate(kinds, 1)]
    text = f'import "google/protobuf/{name}.proto"; message M {{ {" ".join(fields)} }}'
    schema = formats.parse("PROTOBUF", text, {}, is_new=True)
    written = base64.b64decode(formats.formatted("PROTOBUF", schema, "serialized"))
    descriptor = descriptor_pb2.FileDescriptorProto.FromString(written)
    types = descriptor_pb2.FieldDescriptorProto.Type
    found = [types.Name(field.type) for field in descriptor.message_type[0].field]
    assert found == list(kinds.values())


def test_rules_of_confluents_metadata_are_known() -> None:
    text = 'import "confluent/meta.proto"; message M { repeated confluent.Rule r = 1; }'
    assert formats.parse("PROTOBUF", text, {}, is_new=True)


@pytest.mark.parametrize("oneof_index", [-1, 0, 5])
def test_a_descriptor_with_an_unknown_oneof_is_refused(oneof_index: int) -> None:
    descriptor = descriptor_pb2.FileDescriptorProto(name="m.proto", syntax="proto3")
    message = descriptor.message_type.add(name="M")
    message.field.add(name="a", number=1, type=5, label=1, oneof_index=oneof_index)
    text = base64.b64encode(descriptor.SerializeToString()).decode()
    with pytest.raises(InvalidSchemaError):
        formats.parse("PROTOBUF", text, {}, is_new=True)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "message",
        "message M {",
        "import x;",
        "message M { map<double, M> m = 1; }",
        "\x00",
        "/*",
    ],
)
def test_wrong_protobuf_has_a_place(text: str) -> None:
    if not text:
        assert parse_file(text).messages == []
        return
    with pytest.raises(InvalidSchemaError, match=r"Syntax error in \d+:\d+"):
        parse_file(text)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("AVRO", '{"type":"array","items":' * 3000 + '"int"' + "}" * 3000),
        ("JSON", '{"items":' * 3000 + "{}" + "}" * 3000),
        ("PROTOBUF", "message M {" * 3000),
        ("XML", "<a/>"),
    ],
)
def test_what_is_nested_too_deeply_or_of_no_type_is_refused(kind: str, text: str) -> None:
    with pytest.raises(InvalidSchemaError):
        formats.parse(kind, text, {}, is_new=True)


@pytest.mark.parametrize(
    "text",
    [
        '{"type":"string","maxLength":1e1000000}',
        '{"type":"number","multipleOf":1e999999}',
        '{"type":"number","maximum":1e-999999}',
        '{"type":"number","maximum":1e9999999999999999999999}',
        '{"const":1e9999999999999999999999}',
        '{"type":"string","maxLength":NaN}',
        '{"required":[{}]}',
    ],
)
def test_numbers_of_too_many_digits_and_no_names_are_refused(text: str) -> None:
    with pytest.raises(InvalidSchemaError):
        formats.parse("JSON", text, {}, is_new=True)


def test_multiples_are_computed_exactly() -> None:
    multiples = ["3", "1e3000", "3e3000", "1e-3000"]
    of = {m: formats.parse("JSON", f'{{"multipleOf":{m}}}', {}, is_new=True) for m in multiples}
    verdicts = {
        (old, new): formats.compatibility("JSON", of[new], of[old])
        for old in multiples
        for new in multiples
    }
    changes = {pair: found[0].split('"')[1] for pair, found in verdicts.items() if found}
    expanded, changed = "MULTIPLE_OF_EXPANDED", "MULTIPLE_OF_CHANGED"
    assert changes == {
        ("3", "1e3000"): changed,
        ("3", "3e3000"): expanded,
        ("1e3000", "3"): changed,
        ("1e3000", "3e3000"): expanded,
        ("1e-3000", "3"): expanded,
        ("1e-3000", "1e3000"): expanded,
        ("1e-3000", "3e3000"): expanded,
    }


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1.0"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (1e7, "1.0E7"),
        (123456789.5, "1.234567895E8"),
        (9999999.0, "9999999.0"),
        (-1.5e300, "-1.5E300"),
    ],
)
def test_doubles_are_written_as_java_writes_them(value: float, text: str) -> None:
    assert dumps(value) == text


def test_strings_keep_their_quotes_and_what_is_not_finite_is_a_string() -> None:
    value = {"b": 1.5, "a": ["\ue000\ue0015", "\x1f"], "c": float("inf")}
    in_order = '"a":["\ue000\ue0015","\\u001F"]'
    assert dumps(value) == f'{{"b":1.5,{in_order},"c":"Infinity"}}'
    assert dumps(value, sort_keys=True) == f'{{{in_order},"b":1.5,"c":"Infinity"}}'
    assert dumps("\ue000\ue0015") == '"\ue000\ue0015"'


@pytest.mark.parametrize("text", ["NaN", "[-Infinity]", '"\\ud800"', '{"\\uDC00":1}', '"\ud800"'])
def test_what_jackson_cannot_read_or_write_is_no_json(text: str) -> None:
    for exact in (False, True):
        with pytest.raises(ValueError):  # noqa: PT011
            loads(text, exact=exact)
    assert loads('"\\ud83d\\ude00"') == "😀"


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("JSON", '{"maximum":1e9999999999999999999999}'),
        ("JSON", '{"required":[{}]}'),
        ("JSON", '{"required":[[1]]}'),
        ("JSON", '{"$schema":5}'),
        ("JSON", '{"minimum":1,"exclusiveMinimum":true}'),
        ("JSON", f'{{"$schema":"{DRAFT_4}","exclusiveMaximum":1}}'),
        ("JSON", '{"properties":{"a":{"$id":"x","$schema":[]}}}'),
        ("JSON", '{"$id":"http://a/b","items":{"$id":"http://[x","allOf":[{"$ref":"#a"}]}}'),
        ("PROTOBUF", r'option a="\U00110000";'),
        ("PROTOBUF", r'option a="\ud800";'),
        ("PROTOBUF", r'option a="\UFFFFFFFF";'),
        ("PROTOBUF", "option (a) = { [x"),
        ("PROTOBUF", "é"),
        ("PROTOBUF", "message M{int32 a=99999999999;}"),
        ("PROTOBUF", "message M{int32 a=0x" + 3000 * "f" + ";}"),
        ("PROTOBUF", "message M{reserved 1 to 99999999999999999999;}"),
        ("PROTOBUF", "enum E{A=99999999999999999999;}"),
    ],
)
def test_odd_values_are_refused(kind: str, text: str) -> None:
    with pytest.raises(InvalidSchemaError):
        formats.parse(kind, text, {}, is_new=True)


def test_in_draft_4_a_limit_is_excluded_by_a_boolean() -> None:
    text = f'{{"$schema":"{DRAFT_4}","minimum":1,"exclusiveMinimum":true}}'
    assert formats.parse("JSON", text, {}, is_new=True)


@pytest.mark.parametrize(
    "pattern",
    [
        "(",
        "a)",
        "[a",
        "[]",
        "[^]",
        "[a[b]",
        "*",
        "a|+",
        "(?:?)",
        "a**",
        "a+?+",
        "(?=a",
        "(?<n>a",
        "a\\",
    ],
)
@pytest.mark.parametrize("schema", ['{"pattern":%s}', '{"patternProperties":{%s:{}}}'])
def test_patterns_that_java_cannot_compile_are_refused(schema: str, pattern: str) -> None:
    with pytest.raises(InvalidSchemaError):
        formats.parse("JSON", schema % json.dumps(pattern), {}, is_new=True)


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "^(a|b)*$",
        "()|a",
        "[](]",
        "[^](]",
        "[a-z&&[^(]]",
        r"\(\[\\",
        r"\Q([\E+",
        r"\c(",
        "a*+b+?c??d{2,3}",
        "(?i)a(?:b)(?=c)(?!d)(?<=e)(?<!f)(?<n>g)",
        "(?x) a # (",
        "^*",
        r"\p{Alpha}",
    ],
)
def test_patterns_that_java_can_compile_are_accepted(pattern: str) -> None:
    text = json.dumps({"pattern": pattern, "patternProperties": {pattern: {}}})
    assert formats.parse("JSON", text, {}, is_new=True)


@pytest.mark.parametrize("logical_type", ['["x"]', "{}", "5"])
def test_a_logical_type_may_be_anything(logical_type: str) -> None:
    text = f'{{"type":"int","logicalType":{logical_type}}}'
    assert formats.parse("AVRO", text, {}, is_new=True).normalized().canonical() == text


@pytest.mark.parametrize("text", ['edition="x";', "message M{int32 a=1 [json_name=true];}"])
def test_what_has_no_descriptor_is_refused(text: str) -> None:
    parsed = formats.parse("PROTOBUF", text, {}, is_new=True)
    with pytest.raises(InvalidSchemaError):
        formats.formatted("PROTOBUF", parsed, "serialized")


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.sampled_from(["int", "record", "R"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "name",
                    "fields",
                    "items",
                    "properties",
                    "allOf",
                    "$ref",
                    "enum",
                    "default",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=200, deadline=None)
@given(value=_JSON, kind=st.sampled_from(["AVRO", "JSON"]))
def test_any_json_is_a_schema_or_refused(value: Any, kind: str) -> None:
    try:
        parsed = formats.parse(kind, json.dumps(value), {}, is_new=True)
    except InvalidSchemaError:
        return
    text = parsed.canonical()
    again = formats.parse(kind, text, {}, is_new=True)
    assert again.canonical() == text
    assert formats.compatibility(kind, parsed, again) == []
    normal = parsed.normalized().canonical()
    assert formats.parse(kind, normal, {}, is_new=True).normalized().canonical() == normal


_TOKENS = (
    'syntax = "proto3" ; message M { } int32 a 1 option ( x ) [ ] enum E oneof map < string , >'
    " reserved to max service rpc returns stream extend . -1 // /* */"
)
_WORDS = st.sampled_from([*_TOKENS.split(), "\n"])


@settings(max_examples=200, deadline=None)
@given(words=st.lists(_WORDS, max_size=20))
def test_any_words_are_a_file_or_refused(words: list[str]) -> None:
    try:
        parsed = formats.parse("PROTOBUF", " ".join(words), {}, is_new=False)
    except InvalidSchemaError:
        return
    text = parsed.canonical()
    assert formats.parse("PROTOBUF", text, {}, is_new=False).canonical() == text


@given(value=st.recursive(st.none() | st.integers() | st.text(), st.lists))
def test_json_is_read_as_it_was_written(value: Any) -> None:
    assert loads(dumps(value)) == value
