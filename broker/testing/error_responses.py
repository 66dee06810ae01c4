"""Makes the response that says that a whole request has failed, for any API.

The response repeats what the request names (its topics and partitions, groups, resources), with the
error at each place that has one. Values that only a success has get Kafka's "unknown": -1, an empty
text, an empty list. Kafka: AbstractRequest.getErrorResponse, which each API implements.
"""

import sys
from typing import Any, cast

import msgspec

from odradek.protocol.declaration import Field, ListOf, Wire, fields_of, present_fields
from odradek.protocol.errors import ErrorCode
from odradek.protocol.schema import Message, Struct, WireType

ERROR_CODE = "error_code"
ERROR_MESSAGE = "error_message"
# By a field of a response: the field of the request that names the same thing by another name.
OTHER_NAMES = {"partition_index": "partition"}


def response_class(request: type[Message]) -> type[Message]:
    """The response that belongs to a request: both are declared in one module."""
    name = request.__name__.removesuffix("Request") + "Response"
    return cast("type[Message]", getattr(sys.modules[request.__module__], name))


def error_response(request: Message, version: int, code: ErrorCode, text: str) -> Message:
    """The response of `version` with that error; `text` is its message where it has one."""
    made = _ErrorResponse(version, code, text).struct(response_class(type(request)), request)
    return cast("Message", made)


class _ErrorResponse:
    def __init__(self, version: int, code: ErrorCode, text: str) -> None:
        self._version = version
        self._code = code
        self._text = text

    def struct(self, declared: type[Struct], source: object) -> Struct:
        """A struct of the response; `source` is the part of the request that it repeats."""
        values = {}
        key = None if isinstance(source, msgspec.Struct) else source
        for field, _ in present_fields(declared, self._version):
            value = self._value(field, source)
            if value is None and key is not None and isinstance(key, _type_of(field.wire)):
                value, key = key, None  # the request has a list of names or numbers
            if value is None:
                value = _unknown(field, self._version)
            values[field.name] = value
        return declared(**values)

    def _value(self, field: Field, source: object) -> object:
        """The value that an error gives to the field; None if it gives none."""
        if field.name == ERROR_CODE:
            return int(self._code)
        if field.name == ERROR_MESSAGE:
            return self._text
        if isinstance(field.wire, ListOf):
            item = field.wire.item
            if isinstance(item, WireType) or not self._has_error(item):
                return None
            return [self.struct(item, each) for each in self._named_items(source)]
        if isinstance(field.wire, WireType):
            return getattr(
                source, field.name, getattr(source, OTHER_NAMES.get(field.name, ""), None)
            )
        return None

    def _named_items(self, source: object) -> list[Any]:
        """What the request names one by one: the first of its lists that is not empty."""
        if not isinstance(source, msgspec.Struct):
            return []
        declared = cast("type[Struct]", type(source))
        lists = (
            getattr(source, field.name)
            for field, _ in present_fields(declared, self._version)
            if isinstance(field.wire, ListOf)
        )
        return next((items for items in lists if items), [])

    def _has_error(self, declared: type[Struct]) -> bool:
        """Whether the struct, or one inside it, has an error code in this version."""
        for field, _ in present_fields(declared, self._version):
            inner = field.wire.item if isinstance(field.wire, ListOf) else field.wire
            if field.name == ERROR_CODE or (isinstance(inner, type) and self._has_error(inner)):
                return True
        return False


def _unknown(field: Field, version: int) -> object:
    if field.default is not msgspec.NODEFAULT:
        return field.default
    if version in field.nullable:
        return None
    return _empty(field.wire, version)


def _empty(wire: Wire, version: int) -> object:
    if isinstance(wire, ListOf):
        return []
    if isinstance(wire, WireType):
        is_number = wire.struct_code in ("b", "h", "i", "q")
        return -1 if is_number else wire.zero
    return wire(**{field.name: _unknown(field, version) for field in fields_of(wire)})


def _type_of(wire: Wire) -> type:
    """The Python type of a primitive's values."""
    if not isinstance(wire, WireType):
        return type(None)
    return str if wire.name == "string" else int if wire.struct_code in ("i", "q") else type(None)
