"""Makes the response that says that a whole request has failed, for any API.

A handler that cannot serve anything of its request raises ApiError, and dispatch answers so. After
KAFKA_STORAGE_ERROR the connection is closed instead: a write has failed, and whether it counts is
not known.

The response repeats what the request names (its topics and partitions, groups, resources), with the
error at each place that has one. Values that only a success has get Kafka's "unknown": -1, an empty
text, an empty list. Kafka: AbstractRequest.getErrorResponse, which each API implements.
"""

import sys
from collections.abc import Awaitable, Iterator
from types import CoroutineType
from typing import Any, cast

import msgspec

from odradek.coordinator.runtime.steps import Step, no_step, stepping
from odradek.protocol.declaration import Field, ListOf, fields_of, present_fields
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.schema import Message, Struct, WireType

from .context import RequestContext
from .route import Handler

ERROR_CODES = ("error_code", "partition_error_code")
ERROR_MESSAGE = "error_message"
# Of the acknowledgements in a ShareFetch, beside the error of the partition.
ACKNOWLEDGE_ERROR = "acknowledge_error_code"
# By a field of a response: the field of the request that names the same thing by another name.
OTHER_NAMES = {"partition_index": "partition", "user": "name"}
COMMITTED_TEXT = "metadata"  # of an offset: empty, although it may be null
SIGNED = ("b", "h", "i", "q")
# The numbers that are names; texts and ids are names, too.
NUMBERS = ("index", "partition", "partition_index", "partition_id", "resource_type", "producer_id")


def response_class(request: type[Message]) -> type[Message]:
    """The response that belongs to a request, or a response itself: one module declares both."""
    name = request.__name__.removesuffix("Request").removesuffix("Response") + "Response"
    return cast("type[Message]", getattr(sys.modules[request.__module__], name))


def error_response(
    request: Message, version: int, code: ErrorCode, text: str, step: Step = no_step
) -> Message:
    """The response of `version` with that error; `text` is its message where it has one."""
    maker = _ErrorResponse(version, code, text, step)
    made = maker.struct(response_class(type(request)), request)
    return cast("Message", made)


def partition_errors(source: Message, version: int, code: ErrorCode, text: str) -> Message:
    """The response with that error at each partition that a request, or a response, names.

    Where a topic has no partitions, the error is the topic's. The message as a whole has none.
    """
    response = response_class(type(source))
    made = _ErrorResponse(version, code, text, no_step, is_deep=True).struct(response, source)
    return cast("Message", made)


def has_error(declared: type[Struct], version: int) -> bool:
    """Whether the struct, or one inside it, has an error code in this version."""
    for field, _ in present_fields(declared, version):
        inner = field.wire.item if isinstance(field.wire, ListOf) else field.wire
        if field.name in ERROR_CODES or (isinstance(inner, type) and has_error(inner, version)):
            return True
    return False


def handle_or_refuse(handle: Handler, context: RequestContext, request: Any) -> Any:
    """Return what the handler returns, or the response that says which ApiError it has raised.

    Raises ApiError KAFKA_STORAGE_ERROR.
    """
    try:
        result = handle(context, request)
    except ApiError as error:
        return _error_response(context, request, error)
    if result.__class__ is CoroutineType:
        return _answered(context, request, result)
    return result


async def _answered(context: RequestContext, request: Any, pending: Awaitable[Any]) -> Any:
    try:
        return await pending
    except ApiError as error:
        return _error_response(context, request, error)


def _error_response(context: RequestContext, request: Message, error: ApiError) -> Message:
    if error.code is ErrorCode.KAFKA_STORAGE_ERROR:
        raise error
    return error_response(request, context.api_version, error.code, error.message, context.step)


class _ErrorResponse:
    """`is_deep`: the error is put into the innermost items that are named and may have one."""

    def __init__(
        self, version: int, code: ErrorCode, text: str, step: Step, *, is_deep: bool = False
    ) -> None:
        self._version = version
        self._code = code
        self._text = text
        self._step = step
        self._is_deep = is_deep

    def struct(self, declared: type[Struct], source: object, *, is_item: bool = False) -> Struct:
        """A struct of the response; `source` is the part of the request that it belongs to.

        An item of a list repeats the names in `source`. `source` may be a name itself.
        """
        present = [field for field, _ in present_fields(declared, self._version)]
        repeats = self._is_deep or not any(field.name in ERROR_CODES for field in present)
        items = {
            field.name: self._items(field.wire.item, source)
            for field in present
            if repeats and isinstance(field.wire, ListOf)
        }
        fails = not self._is_deep or (is_item and not any(items.values()))
        values: dict[str, object] = {}
        name = None if isinstance(source, msgspec.Struct) else source
        for field in present:
            if field.name in ERROR_CODES:
                values[field.name] = int(self._code if fails else ErrorCode.NONE)
            elif field.name == ERROR_MESSAGE:
                values[field.name] = self._text if fails else None
            elif field.name == ACKNOWLEDGE_ERROR:
                has_acknowledged = bool(getattr(source, "acknowledgement_batches", None))
                values[field.name] = int(self._code if has_acknowledged else ErrorCode.NONE)
            elif field.name in items:
                values[field.name] = items[field.name]
            elif name is not None and _is_name(field):
                values[field.name], name = name, None
            elif is_item and _is_name(field) and (value := _named(source, field)) is not None:
                values[field.name] = value
            else:
                values[field.name] = _unknown(field, self._version)
        return declared(**values)

    def _items(self, item: WireType | type[Struct], source: object) -> list[Struct]:
        """A struct for each thing that the request names: the first of its lists with items."""
        if isinstance(item, WireType) or not has_error(item, self._version):
            return []
        if not isinstance(source, msgspec.Struct):
            return []
        declared = cast("type[Struct]", type(source))
        lists: Iterator[list[object]] = (
            getattr(source, field.name)
            for field, _ in present_fields(declared, self._version)
            if isinstance(field.wire, ListOf)
        )
        named = next((items for items in lists if items), [])
        return [self.struct(item, each, is_item=True) for each in stepping(named, self._step)]


def _is_name(field: Field) -> bool:
    """Whether the field says which topic, partition, group or resource an item is about."""
    if not isinstance(field.wire, WireType) or field.name == COMMITTED_TEXT:
        return False
    return field.name in NUMBERS or field.wire.name in ("string", "uuid")


def _named(source: object, field: Field) -> object:
    other_name = OTHER_NAMES.get(field.name, field.name)
    return getattr(source, field.name, getattr(source, other_name, None))


def _unknown(field: Field, version: int) -> object:
    if field.default not in (msgspec.NODEFAULT, None):
        return field.default
    if field.name == COMMITTED_TEXT:
        return ""
    if isinstance(field.wire, WireType) and field.wire.name == "records":
        return field.wire.zero  # as Kafka: empty, and not null
    if version in field.nullable:
        return None
    if isinstance(field.wire, ListOf):
        return []
    if isinstance(field.wire, WireType):
        return -1 if field.wire.struct_code in SIGNED else field.wire.zero
    return field.wire(**{each.name: _unknown(each, version) for each in fields_of(field.wire)})
