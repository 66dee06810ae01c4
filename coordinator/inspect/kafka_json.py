"""Converts messages to JSON as Kafka's generated JsonConverter classes do.

Fields have Kafka's names, in the order of their declaration. Fields that a version does not have
are left out, and tagged fields with their default value. Bytes are base64. UUIDs are the 22
characters that Kafka prints everywhere.

`as_json` returns plain Python values, `json_text` the text that Jackson writes for them.
"""

import base64
import re

from odradek.config.java_text import double_text
from odradek.protocol.declaration import ListOf, Wire, present_fields
from odradek.protocol.primitives import uuid_text
from odradek.protocol.schema import Message, Struct, WireType

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]

_SPECIAL = re.compile(r'[\x00-\x1f"\\]')
_SHORT = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}


def as_json(value: Struct, version: int) -> dict[str, Json]:
    """Convert a message or a nested struct. An unknown version means the nearest known one."""
    if isinstance(value, Message):
        known = value.SPEC.versions
        version = max(known.lowest, min(version, known.highest))
    return {
        kafka_name(field.name): _value(getattr(value, field.name), version, field.wire)
        for field, tag in present_fields(type(value), version)
        if tag is None or getattr(value, field.name) != field.default
    }


def kafka_name(name: str) -> str:
    """A field's name as Kafka's converters spell it: `group_id` is `groupId`."""
    first, *rest = name.split("_")
    if first == "kraft":
        first = "kRaft"
    return first + "".join(map(str.capitalize, rest))


def _value(value: object, version: int, wire: Wire) -> Json:
    if isinstance(value, Struct):
        return as_json(value, version)
    if isinstance(value, list):
        item = wire.item if isinstance(wire, ListOf) else wire
        return [_value(each, version, item) for each in value]
    if isinstance(value, bytes | memoryview):
        is_uuid = isinstance(wire, WireType) and wire.name == "uuid"
        return uuid_text(bytes(value)) if is_uuid else base64.b64encode(value).decode()
    assert value is None or isinstance(value, bool | int | float | str)
    return value


def json_text(value: Json) -> str:
    """JSON text without spaces; characters beyond ASCII are not escaped."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return _quoted(value)
        case float():
            text = double_text(value)
            return f'"{text}"' if text.endswith(("N", "y")) else text
        case list():
            return f"[{','.join(map(json_text, value))}]"
        case dict():
            fields = (f"{_quoted(key)}:{json_text(each)}" for key, each in value.items())
            return f"{{{','.join(fields)}}}"
        case _:
            return str(value)


def _quoted(text: str) -> str:
    return f'"{_SPECIAL.sub(_escaped, text)}"'


def _escaped(found: re.Match[str]) -> str:
    character = found[0]
    return _SHORT.get(character) or f"\\u{ord(character):04X}"
