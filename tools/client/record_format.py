r"""Prints records by a format string, with the tokens of kcat.

    %t topic      %p partition    %o offset     %T timestamp in milliseconds
    %k key        %K its size     %s value      %S its size      %h headers as a=1,b=2      %% a %

A null key or value is printed as an empty one, and its size is -1. \n \r \t \0 \\ \xHH in a format
are what they are in C.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from confluent_kafka import Message

from .failure import CommandError
from .messages import as_bytes, headers_of

_TOKEN = re.compile(r"%(.)|\\x([0-9a-fA-F]{2})|\\(.)", re.DOTALL)
_ESCAPES = {"n": b"\n", "r": b"\r", "t": b"\t", "0": b"\0", "\\": b"\\"}


class RecordFormat:
    """A format string, read once. Raises CommandError for an unknown token."""

    def __init__(self, text: str) -> None:
        self._parts: list[bytes | Callable[[Message], bytes]] = []
        position = 0
        for match in _TOKEN.finditer(text):
            self._parts.append(_bytes(text[position : match.start()]))
            self._parts.append(self._part(match))
            position = match.end()
        self._parts.append(_bytes(text[position:]))

    def line(self, message: Message) -> bytes:
        """The record in this format."""
        return b"".join(part if isinstance(part, bytes) else part(message) for part in self._parts)

    @staticmethod
    def _part(match: re.Match[str]) -> bytes | Callable[[Message], bytes]:
        token, code, escape = match.groups()
        if code is not None:
            return bytes([int(code, 16)])
        if escape is not None:
            if escape not in _ESCAPES:
                known = r"\n \r \t \0 \\ \xHH"
                raise CommandError(f"\\{escape} is no escape: {known} are")
            return _ESCAPES[escape]
        if token == "%":
            return b"%"
        field = _FIELDS.get(token)
        if field is None:
            known = " ".join(f"%{each}" for each in _FIELDS)
            raise CommandError(f"%{token} is no token: {known} %% are")
        return field


def _bytes(text: str) -> bytes:
    """As they were typed, also where they are not UTF-8."""
    return text.encode(errors="surrogateescape")


def _size(data: bytes | None) -> bytes:
    return b"-1" if data is None else b"%d" % len(data)


def _header_text(message: Message) -> bytes:
    return b",".join(
        name.encode() + b"=" + (b"NULL" if value is None else value)
        for name, value in headers_of(message)
    )


_FIELDS: dict[str, Callable[[Message], bytes]] = {
    "t": lambda message: (message.topic() or "").encode(),
    "p": lambda message: b"%d" % (message.partition() or 0),
    "o": lambda message: b"%d" % (message.offset() or 0),
    "T": lambda message: b"%d" % message.timestamp()[1],
    "k": lambda message: as_bytes(message.key()) or b"",
    "K": lambda message: _size(as_bytes(message.key())),
    "s": lambda message: as_bytes(message.value()) or b"",
    "S": lambda message: _size(as_bytes(message.value())),
    "h": _header_text,
}
