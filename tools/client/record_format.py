r"""Prints records by a format string, with the tokens of kcat, or as lines of JSON.

    %t topic      %p partition    %o offset     %T timestamp in milliseconds
    %k key        %K its size     %s value      %S its size      %h headers as a=1,b=2      %% a %

A null key or value is printed as an empty one, and its size is -1. \n \r \t \0 \\ \xHH in a format
are what they are in C.

A line of JSON has the fields of JsonRecord, and `odradek produce --json` sends it again. Bytes that
are no UTF-8 text are in base64, in a field of another name.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from confluent_kafka import Message

from .failure import CommandError

Headers = Sequence[tuple[str, bytes | None]]

_TOKEN = re.compile(rb"%(.)|\\x([0-9a-fA-F]{2})|\\(.)", re.DOTALL)
_ESCAPES = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"0": b"\0", b"\\": b"\\"}


class JsonHeader(msgspec.Struct, omit_defaults=True):
    """A header; without a value it is null."""

    name: str
    value: str | None = None
    value_base64: str | None = None


class JsonRecord(msgspec.Struct, omit_defaults=True):
    """A record as a line of JSON; without a key or a value, that is null."""

    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    timestamp_ms: int | None = None
    key: str | None = None
    key_base64: str | None = None
    value: str | None = None
    value_base64: str | None = None
    headers: list[JsonHeader] = []


def json_line(message: Message) -> bytes:
    """A record as a line of JSON."""
    kind, timestamp_ms = message.timestamp()
    record = JsonRecord(
        topic=message.topic(),
        partition=message.partition(),
        offset=message.offset(),
        timestamp_ms=timestamp_ms if kind else None,
        headers=[_json_header(name, value) for name, value in headers_of(message)],
    )
    record.key, record.key_base64 = _text(as_bytes(message.key()))
    record.value, record.value_base64 = _text(as_bytes(message.value()))
    return msgspec.json.encode(record) + b"\n"


def _json_header(name: str, value: bytes | None) -> JsonHeader:
    text, in_base64 = _text(value)
    return JsonHeader(name, text, in_base64)


def _text(data: bytes | None) -> tuple[str | None, str | None]:
    """The bytes as text, or else in base64."""
    if data is None:
        return None, None
    try:
        return data.decode(), None
    except UnicodeDecodeError:
        return None, base64.b64encode(data).decode()


def bytes_of(text: str | None, in_base64: str | None) -> bytes | None:
    """The bytes of a field that is there as text or in base64. Raises ValueError."""
    if in_base64 is not None:
        return base64.b64decode(in_base64, validate=True)
    return text.encode() if text is not None else None


def as_bytes(value: Any) -> bytes | None:
    """A key or value of a message; librdkafka gives bytes."""
    return value if value is None or isinstance(value, bytes) else str(value).encode()


def headers_of(message: Message) -> list[tuple[str, bytes | None]]:
    """The headers of a message; their types are wider in confluent-kafka than they are."""
    headers: Any = message.headers() or []
    return [(name, as_bytes(value)) for name, value in headers]


class RecordFormat:
    """A format string, read once. Raises CommandError for an unknown token."""

    def __init__(self, text: str) -> None:
        self._parts: list[bytes | Callable[[Message], bytes]] = []
        data = text.encode()
        position = 0
        for match in _TOKEN.finditer(data):
            self._parts.append(data[position : match.start()])
            self._parts.append(self._part(match))
            position = match.end()
        self._parts.append(data[position:])

    def line(self, message: Message) -> bytes:
        """The record in this format."""
        return b"".join(part if isinstance(part, bytes) else part(message) for part in self._parts)

    @staticmethod
    def _part(match: re.Match[bytes]) -> bytes | Callable[[Message], bytes]:
        token, code, escape = match.groups()
        if code is not None:
            return bytes([int(code, 16)])
        if escape is not None:
            if escape not in _ESCAPES:
                known = r"\n \r \t \0 \\ \xHH"
                raise CommandError(f"\\{escape.decode()} is no escape: {known} are")
            return _ESCAPES[escape]
        if token == b"%":
            return b"%"
        field = _FIELDS.get(token)
        if field is None:
            known = " ".join(f"%{each.decode()}" for each in _FIELDS)
            raise CommandError(f"%{token.decode()} is no token: {known} %% are")
        return field


def _size(data: bytes | None) -> bytes:
    return b"-1" if data is None else b"%d" % len(data)


def _header_text(message: Message) -> bytes:
    return b",".join(
        name.encode() + b"=" + (b"NULL" if value is None else value)
        for name, value in headers_of(message)
    )


_FIELDS: dict[bytes, Callable[[Message], bytes]] = {
    b"t": lambda message: (message.topic() or "").encode(),
    b"p": lambda message: b"%d" % (message.partition() or 0),
    b"o": lambda message: b"%d" % (message.offset() or 0),
    b"T": lambda message: b"%d" % message.timestamp()[1],
    b"k": lambda message: as_bytes(message.key()) or b"",
    b"K": lambda message: _size(as_bytes(message.key())),
    b"s": lambda message: as_bytes(message.value()) or b"",
    b"S": lambda message: _size(as_bytes(message.value())),
    b"h": _header_text,
}
