"""Which records a client wants to see: parts of texts, and paths into JSON.

A text is looked for in the stored bytes, as UTF-8, with upper and lower case as they are. Strings
in Avro and Protobuf are such bytes too.

A header is `NAME` (in a name or a value) or `NAME=VALUE` (the value of exactly that header contains
VALUE).

A path leads into a value that is JSON, or that is shown as JSON because its schema is known:

    $.customer.city           the field exists
    $.customer.city=Prague    ... and is this text, number, true, false or null
    $.items[0].sku            the first of a list; [-1] is the last, [*] any of them
    $["a.b"]                  a name that is not a word

The leading `$` may be left out: `customer.city=Prague`. There are no other operators. A
number is found by each way to write it in JSON: 1, 1.0 and 1e0 are the same.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from odradek.coordinator.runtime.steps import Step, stepping
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.record import RecordHeaders

ANY = "*"
MAX_STEPS = 100
_STEP = re.compile(r'\.([^.\[\]="]+)|\[(-?[0-9]{1,9}|\*)\]|\["((?:[^"\\]|\\.)*)"\]')
# A value of JSON begins so, after spaces.
_BEGINS_JSON = frozenset(b'{["-0123456789tfn')
_SPACES = b" \t\r\n"


class JsonPath(msgspec.Struct, frozen=True):
    """A path, and what is there, as text or as JSON; None: it only has to exist."""

    steps: tuple[str | int, ...]
    value: str | None
    number: int | float | None = None  # what `value` is, if it is a number

    def matches(self, document: Any, step: Step) -> bool:
        """Whether a parsed JSON document has what the path says."""
        return self._matches(document, 0, step)

    def _matches(self, node: Any, index: int, give_way: Step) -> bool:
        if index == len(self.steps):
            return self.value is None or self._is_value(node)
        step = self.steps[index]
        if isinstance(node, dict):
            return (
                isinstance(step, str)
                and step in node
                and self._matches(node[step], index + 1, give_way)
            )
        if not isinstance(node, list):
            return False
        if step == ANY:
            return any(
                self._matches(item, index + 1, give_way) for item in stepping(node, give_way)
            )
        if not isinstance(step, int) or not -len(node) <= step < len(node):
            return False
        return self._matches(node[step], index + 1, give_way)

    def _is_value(self, node: Any) -> bool:
        """Whether a node is this text, or what this JSON says."""
        if isinstance(node, str):
            return node == self.value
        if isinstance(node, int | float) and not isinstance(node, bool):
            return node == self.number
        return msgspec.json.encode(node).decode() == self.value


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """All that is set must match. It can be pickled."""

    key: bytes | None = None
    value: bytes | None = None
    header_name: str | None = None  # of exactly this header, the value must contain `header`
    header: bytes | None = None
    path: JsonPath | None = None

    @property
    def is_empty(self) -> bool:
        """Whether it matches every record."""
        return self == Filter()

    def matches_text(self, key: bytes | None, value: bytes | None, headers: RecordHeaders) -> bool:
        """Whether a record matches all but the path."""
        if self.key is not None and (key is None or self.key not in key):
            return False
        if self.value is not None and (value is None or self.value not in value):
            return False
        return self.header is None or self._has_header(self.header, headers)

    def _has_header(self, wanted: bytes, headers: RecordHeaders) -> bool:
        if self.header_name is not None:
            return any(
                name == self.header_name and value is not None and wanted in value
                for name, value in headers
            )
        return any(
            wanted in name.encode() or (value is not None and wanted in value)
            for name, value in headers
        )


def filter_of(
    key: str | None, value: str | None, header: str | None, json_path: str | None
) -> Filter:
    """Make a filter of what a client asks for; empty texts ask for nothing. Raises ApiError."""
    name, equals, content = (header or "").partition("=")
    return Filter(
        key=key.encode() if key else None,
        value=value.encode() if value else None,
        header_name=name if equals else None,
        header=(content if equals else name).encode() if header else None,
        path=parse_path(json_path) if json_path else None,
    )


def parse_path(text: str) -> JsonPath:
    """Read a path. Raises ApiError."""
    rest = text.removeprefix("$")
    if rest == text and not text.startswith("["):
        rest = f".{text}"
    steps: list[str | int] = []
    position = 0
    while position < len(rest) and rest[position] != "=":
        found = _STEP.match(rest, position)
        if found is None:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                f"the JSON path {text!r} cannot be read at {rest[position:]!r}: write $.a.b[0]=c",
            )
        name, index, quoted = found.groups()
        if index is not None:
            steps.append(index if index == ANY else int(index))
        elif quoted is not None:
            steps.append(re.sub(r"\\(.)", r"\1", quoted))
        else:
            steps.append(name)
        position = found.end()
    if len(steps) > MAX_STEPS:
        text = f"a JSON path may have {MAX_STEPS} steps"
        raise ApiError(ErrorCode.INVALID_REQUEST, text)
    value = rest[position + 1 :] if position < len(rest) else None
    return JsonPath(tuple(steps), value, None if value is None else _number(value))


def json_of(value: bytes | None) -> Any:
    """Parse a value that is JSON. Raises ValueError."""
    if not looks_like_json(value):
        raise ValueError("it is not JSON")
    try:
        return msgspec.json.decode(value or b"")
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(str(error)) from None


def looks_like_json(value: bytes | None) -> bool:
    """Whether a value begins as JSON does."""
    first = value[:64].lstrip(_SPACES)[:1] if value else b""
    return bool(first) and first[0] in _BEGINS_JSON


def _number(text: str) -> int | float | None:
    try:
        return msgspec.json.decode(text, type=int | float)
    except (msgspec.MsgspecError, ValueError):
        return None
