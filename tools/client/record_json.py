"""Records as lines of JSON: odradek's own form (`--json`), and that of kcat (`-J`).

protocol/record_json.py describes odradek's form. kcat's form has no base64. Its headers are one
list: name, value, name, value, …
kcat: json.c.
"""

from __future__ import annotations

import base64
from typing import Literal

import msgspec
from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, Message

from odradek.protocol.record_json import UNSET, JsonRecord, Unset, line_of

from .failure import CommandError
from .messages import as_bytes, headers_of

Headers = list[tuple[str, bytes | None]]
NO_BROKER = -1  # what kcat prints if the client does not know the broker


class ParsedRecord(msgspec.Struct):
    """A record that a line describes."""

    key: bytes | None
    value: bytes | None
    headers: Headers
    partition: int | None
    timestamp_ms: int | None


class KcatRecord(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """A record in kcat's form, with kcat's order of the fields."""

    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    tstype: Literal["create", "logappend", "unknown"] | None = None
    ts: int | None = None
    broker: int | None = None
    headers: list[str | None] = []
    key: str | Unset | None = UNSET
    payload: str | None


def json_line(message: Message) -> bytes:
    """A record in odradek's form."""
    kind, timestamp_ms = message.timestamp()
    return line_of(
        topic=message.topic(),
        partition=message.partition(),
        offset=message.offset(),
        timestamp_ms=timestamp_ms if kind else None,
        key=as_bytes(message.key()),
        value=as_bytes(message.value()),
        headers=tuple(headers_of(message)),
    )


def parse_json(line: bytes) -> ParsedRecord:
    """Read a line in odradek's form. Raises ValueError."""
    record = msgspec.json.decode(line, type=JsonRecord)
    has_key = record.key is not UNSET or record.key_base64 is not UNSET
    return ParsedRecord(
        key=_bytes("key", record.key, record.key_base64) if has_key else None,
        value=_bytes("value", record.value, record.value_base64),
        headers=[
            (each.name, _bytes(f"value of the header {each.name}", each.value, each.value_base64))
            for each in record.headers
        ],
        partition=record.partition,
        timestamp_ms=record.timestamp_ms,
    )


def kcat_line(message: Message) -> bytes:
    """A record in kcat's form. Raises CommandError if it has bytes that are no UTF-8 text."""
    kind, timestamp_ms = message.timestamp()
    try:
        key, value = _text(message.key()), _text(message.value())
        headers = [each for name, data in headers_of(message) for each in (name, _text(data))]
    except UnicodeDecodeError:
        place = f"{message.topic()}-{message.partition()}, offset {message.offset()}"
        raise CommandError(
            f"{place}: the record has bytes that are no UTF-8 text, which kcat's JSON cannot hold;"
            " use --json"
        ) from None
    record = KcatRecord(
        topic=message.topic(),
        partition=message.partition(),
        offset=message.offset(),
        broker=NO_BROKER,
        headers=headers,
        key=key,
        payload=value,
    )
    if kind:
        record.tstype = "logappend" if kind == TIMESTAMP_LOG_APPEND_TIME else "create"
        record.ts = timestamp_ms
    return msgspec.json.encode(record) + b"\n"


def parse_kcat(line: bytes) -> ParsedRecord:
    """Read a line in kcat's form. Raises ValueError."""
    record = msgspec.json.decode(line, type=KcatRecord)
    headers: Headers = []
    if len(record.headers) % 2:
        raise ValueError("the list of headers has a name without a value")
    for name, value in zip(record.headers[::2], record.headers[1::2], strict=True):
        if name is None:
            raise ValueError("a header's name is null")
        headers.append((name, None if value is None else value.encode()))
    return ParsedRecord(
        key=record.key.encode() if isinstance(record.key, str) else None,
        value=None if record.payload is None else record.payload.encode(),
        headers=headers,
        partition=record.partition,
        timestamp_ms=None if record.tstype in (None, "unknown") else record.ts,
    )


def _bytes(what: str, text: str | Unset | None, in_base64: str | Unset) -> bytes | None:
    """The bytes of a field that is there as text or in base64. Raises ValueError."""
    if in_base64 is UNSET:
        if text is UNSET:
            raise ValueError(f'there is no {what}: write "value": null if it is null')
        return None if text is None else text.encode()
    if text is not UNSET:
        raise ValueError(f"the {what} is there twice, as text and in base64")
    return base64.b64decode(in_base64, validate=True)


def _text(data: str | bytes | None) -> str | None:
    return data.decode() if isinstance(data, bytes) else data
