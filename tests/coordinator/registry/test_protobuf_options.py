"""The values of options: each form in which the text format writes them, and what is refused."""

from typing import Any

import pytest

from odradek.coordinator.registry import formats
from odradek.coordinator.registry.errors import InvalidSchemaError
from odradek.coordinator.registry.formats.protobuf_file import Option
from odradek.coordinator.registry.formats.protobuf_parser import parse_file
from tests.support.growth import Work, assert_linear

VALUES = [
    ("1", "1"),
    ("-1", "-1"),
    ("+1", "1"),
    ("0x1F", "0x1F"),
    ("1.5e3", "1.5e3"),
    ("-inf", "-inf"),
    ("true", True),
    ("false", False),
    ("RED", "RED"),
    ('"a"', "a"),
    ("'a'", "a"),
    ('"a" "b"', "ab"),
    ("[]", []),
    ("[1]", ["1"]),
    ("[1, -2, +3]", ["1", "-2", "3"]),
    ("[1, 2,]", ["1", "2"]),
    ("[[1], []]", [["1"], []]),
    ("{}", {}),
    ("{ a: 1 }", {"a": "1"}),
    ("< a: 1 >", {"a": "1"}),
    ("{ a: 1, b: 2; c: 3 d: 4 }", {"a": "1", "b": "2", "c": "3", "d": "4"}),
    ("{ a { b: true } }", {"a": {"b": True}}),
    ("{ a: < b: 1 > }", {"a": {"b": "1"}}),
    ("{ a: 1 a: 2 }", {"a": ["1", "2"]}),
    ("{ a: [1] a: 2 }", {"a": ["1", "2"]}),
    ("{ a: 1 a: [2, 3] a: [] }", {"a": ["1", "2", "3"]}),
    ("{ a: [{ b: X }, { b: Y }] }", {"a": [{"b": "X"}, {"b": "Y"}]}),
    ("{ [p.ext]: 1 }", {"[p.ext]": "1"}),
]


def file_with(option: str) -> str:
    return f'syntax = "proto3";\nmessage M {{ {option} }}\n'


def option_of(text: str) -> Option:
    (option,) = parse_file(file_with(text)).messages[0].options
    return option


@pytest.mark.parametrize(("text", "value"), VALUES)
def test_a_value_is_read(text: str, value: Any) -> None:
    option = option_of(f"option (my) = {text};")
    assert (option.name, option.is_extension, option.value) == ("my", True, value)


@pytest.mark.parametrize(("text", "value"), VALUES)
def test_a_value_is_the_same_in_the_canonical_text(text: str, value: Any) -> None:
    schema = formats.parse("PROTOBUF", file_with(f"option (my) = {text};"), {}, is_new=False)
    (again,) = parse_file(schema.canonical()).messages[0].options
    assert (again.name, again.is_extension, again.value) == ("my", True, value)


@pytest.mark.parametrize("name", ["my.a.b", "(my).a.b"])
def test_a_dotted_name_is_an_option_of_an_option(name: str) -> None:
    outer = option_of(f"option {name} = 1;")
    middle: Any = outer.value
    inner: Any = middle.value
    assert [outer.name, middle.name, inner.name, inner.value] == ["my", "a", "b", "1"]
    assert outer.is_extension == name.startswith("(")
    assert not middle.is_extension


@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("(x).(y)", ["(x)", "(y)"]),
        ("(x).y.(z.w)", ["(x)", "y", "(z.w)"]),
        ("features.(pb.go).api_level", ["features", "(pb.go)", "api_level"]),
        ("(x) . y . ( z )", ["(x)", "y", "(z)"]),
    ],
)
def test_each_part_of_a_name_may_be_an_extension(name: str, names: list[str]) -> None:
    (option,) = parse_file(file_with(f"int32 f = 1 [{name} = OPEN];")).messages[0].fields[0].options
    found, value = [], option
    while isinstance(value, Option):
        found.append(f"({value.name})" if value.is_extension else value.name)
        value = value.value
    assert (found, value) == (names, "OPEN")
    schema = formats.parse("PROTOBUF", file_with(f"option {name} = OPEN;"), {}, is_new=True)
    assert f"option {'.'.join(names)} = OPEN;" in schema.canonical()
    assert formats.formatted("PROTOBUF", schema, "serialized")


@pytest.mark.parametrize("name", ["(x).", "x.(y", "x(y)", "(x)(y)"])
def test_a_name_of_an_option_that_is_not_complete_is_refused(name: str) -> None:
    with pytest.raises(InvalidSchemaError, match=r"Syntax error in \d+:\d+"):
        parse_file(file_with(f"option {name} = 1;"))


def test_a_field_has_its_options_in_brackets() -> None:
    file = parse_file(file_with("int32 f = 1 [deprecated = true, (my) = [1, 2], (my).a = 'x'];"))
    first, second, third = file.messages[0].fields[0].options
    assert (first.name, first.is_extension, first.value) == ("deprecated", False, True)
    assert (second.name, second.is_extension, second.value) == ("my", True, ["1", "2"])
    assert (third.name, third.value.name, third.value.value) == ("my", "a", "x")


@pytest.mark.parametrize(
    "text",
    [
        "option (my) = ;",
        "option (my) = ];",
        "option (my) = [1;",
        "option (my) = { a: };",
        "option (my) = { a: 1;",
        "option (my) = { a: 1 >;",
        "option (my 1;",
        "option my;",
        "option (my) = 1",
        "int32 f = 1 [a = 1",
        "int32 f = 1 [a = 1 b = 2];",
    ],
)
def test_an_option_that_is_not_complete_is_refused_with_its_place(text: str) -> None:
    with pytest.raises(InvalidSchemaError, match=r"Syntax error in \d+:\d+"):
        parse_file(file_with(text))


@pytest.mark.parametrize(("start", "end"), [("{ a: ", "}"), ("[", "]"), ("[{ a: ", "}]")])
def test_a_value_that_is_nested_too_deeply_is_refused_with_its_place(start: str, end: str) -> None:
    with pytest.raises(InvalidSchemaError, match=r"Syntax error in 2:\d+: nested deeper than 100"):
        parse_file(file_with(f"option (my) = {start * 101}1{end * 101};"))


def test_a_name_may_be_repeated_many_times_in_linear_time() -> None:
    def prepared(size: int) -> Work:
        text = file_with(f"option (my) = {{ {'a: 1 ' * size} }};")
        return lambda: parse_file(text)

    assert_linear(prepared, 3_000)
