"""Values of Avro: what fastavro writes is read, and what has too much is refused."""

import io
import math
from datetime import date
from decimal import Decimal
from typing import Any

import fastavro
import pytest

from odradek.broker.console.messages.avro_values import (
    MAX_DEPTH,
    MAX_ITEMS,
    MAX_NAME_LETTERS,
    read_value,
    shape_of,
)

NODE = {
    "type": "record",
    "name": "Node",
    "namespace": "shop",
    "fields": [
        {"name": "value", "type": "int"},
        {"name": "next", "type": ["null", "Node"]},
    ],
}
ENUM = {"type": "enum", "name": "E", "symbols": ["A", "B", "C"]}
ROW = {"type": "record", "name": "R", "fields": [{"name": "n", "type": "null"}]}


def record(*types: Any) -> dict[str, Any]:
    fields = [{"name": f"f{number}", "type": each} for number, each in enumerate(types)]
    return {"type": "record", "name": "Top", "fields": fields}


def written(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


def read(schema: Any, data: bytes) -> Any:
    return read_value(shape_of(schema), data, lambda: None)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ("null", None),
        ("boolean", True),
        ("boolean", False),
        *(("int", number) for number in (0, 1, -1, 63, 64, -64, -65, 2**31 - 1, -(2**31))),
        *(("long", number) for number in (2**63 - 1, -(2**63), 1 << 35)),
        ("float", 1.5),
        ("double", -0.1),
        ("bytes", b""),
        ("bytes", b"\x00\xff"),
        ("string", "grüße"),
        ({"type": "string"}, "s"),
        (ENUM, "A"),
        (ENUM, "C"),
        ({"type": "fixed", "name": "F", "size": 3}, b"abc"),
        ({"type": "array", "items": "int"}, []),
        ({"type": "array", "items": "string"}, ["a", "", "b"]),
        ({"type": "map", "values": "long"}, {"a": 1, "b": -2}),
        (["null", "string"], None),
        (["null", "string"], "s"),
        (record("int", ENUM, "E", ["null", "string"]), {"f0": 1, "f1": "A", "f2": "B", "f3": "s"}),
        (NODE, {"value": 1, "next": {"value": 2, "next": None}}),
        ({"type": "int", "logicalType": "date"}, date(2020, 2, 29)),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}, Decimal("-1.25")),
        ({"type": "long", "logicalType": "unheard-of"}, 7),
    ],
)
def test_a_value_that_fastavro_wrote_is_read(schema: Any, value: Any) -> None:
    data = written(schema, value)
    assert read(schema, data) == value
    assert type(read(schema, data)) is type(value)
    for end in range(len(data)):
        with pytest.raises(ValueError, match=r"bytes do not fit|there is no"):
            read(schema, data[:end])
    with pytest.raises(ValueError, match="1 bytes follow the value"):
        read(schema, data + b"\x00")


def test_a_type_may_be_inside_a_type() -> None:
    assert read({"type": {"type": "string"}}, b"\x02s") == "s"


def test_a_float_that_is_no_number_is_read() -> None:
    assert math.isnan(read("double", written("double", math.nan)))


def test_a_block_may_say_its_size() -> None:
    # Two items in three bytes, and one item in a block without a size.
    assert read({"type": "array", "items": "int"}, b"\x03\x06\x02\x80\x01\x02\x05\x00") == [
        1,
        64,
        -3,
    ]


@pytest.mark.parametrize(
    ("schema", "data"),
    [
        (ENUM, b"\x06"),
        (ENUM, b"\x01"),
        (["null", "int"], b"\x04"),
        (["null", "int"], b"\x01"),
        ("string", b"\x01"),
        ("string", b"\x08abc"),
        ("string", b"\x02\xff"),
        ("long", b"\xff" * 10 + b"\x01"),
    ],
)
def test_bytes_that_no_writer_makes_are_refused(schema: Any, data: bytes) -> None:
    with pytest.raises(ValueError, match=r"there is no|do not fit|more than 64 bits|decode"):
        read(schema, data)


def test_a_type_that_nothing_declares_is_refused() -> None:
    with pytest.raises(ValueError, match="there is no type Gone"):
        shape_of(record("Gone"))


def test_a_value_has_at_most_so_many_items() -> None:
    nulls = {"type": "array", "items": "null"}
    most = MAX_ITEMS - 1  # the array is an item, too
    assert read(nulls, written("long", most) + b"\x00") == [None] * most
    with pytest.raises(ValueError, match="more than 10000 items"):
        read(nulls, written("long", most + 1) + b"\x00")


def test_a_value_is_nested_at_most_so_deep() -> None:
    # A record and a union for each node: the null of the last is the deepest.
    def chain(nodes: int) -> bytes:
        return b"\x02\x02" * (nodes - 1) + b"\x02\x00"

    most = MAX_DEPTH // 2
    assert read(NODE, chain(most))["next"]["value"] == 1
    with pytest.raises(ValueError, match=f"more than {MAX_DEPTH} deep"):
        read(NODE, chain(most + 1))


def test_the_names_of_a_value_have_at_most_so_many_letters() -> None:
    named = {"type": "enum", "name": "E", "symbols": ["a" * (MAX_NAME_LETTERS // 4)]}
    rows = {"type": "array", "items": named}
    assert len(read(rows, b"\x08" + b"\x00" * 4 + b"\x00")) == 4
    with pytest.raises(ValueError, match="its names have more than"):
        read(rows, b"\x0a" + b"\x00" * 5 + b"\x00")


def test_a_step_is_taken_for_each_item() -> None:
    steps: list[None] = []
    rows = {"type": "array", "items": ROW}
    read_value(shape_of(rows), b"\x06\x00", lambda: steps.append(None))
    assert len(steps) == 1 + 3 * 2
