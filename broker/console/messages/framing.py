"""How a value says its schema: Confluent's wire formats.

    00, a schema id (int32), the payload
    a header __key_schema_id or __value_schema_id: 01, a GUID (16 bytes); the value is the payload

The payload of Protobuf begins with the message's place in the file, as a list of varints.
"""

from typing import NamedTuple

from odradek.protocol.record import RecordHeaders

KEY_HEADER, VALUE_HEADER = "__key_schema_id", "__value_schema_id"
_SHORTEST_ID = 5
_GUID_BYTES = 16


class Framed(NamedTuple):
    """A value that names its schema, by id or by GUID."""

    schema_id: int
    guid: bytes
    payload: bytes


def framed(data: bytes, headers: RecordHeaders, *, is_key: bool) -> Framed | None:
    """The payload of a key or a value that names its schema; None if it does not."""
    wanted = KEY_HEADER if is_key else VALUE_HEADER
    for name, value in headers:
        if name == wanted and value and value[0] == 1 and len(value) == 1 + _GUID_BYTES:
            return Framed(-1, value[1:], data)
        if name == wanted and value and value[0] == 0 and len(value) == _SHORTEST_ID:
            return Framed(int.from_bytes(value[1:], "big"), b"", data)
    if len(data) >= _SHORTEST_ID and data[0] == 0:
        return Framed(int.from_bytes(data[1:_SHORTEST_ID], "big"), b"", data[_SHORTEST_ID:])
    return None
