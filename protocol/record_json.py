"""Records as lines of JSON in odradek's own form.

Bytes that are no UTF-8 text are in base64, in a field of another name. It holds every record. A
null value deletes a key from a compacted topic, so it has to be written, as `"value": null`: a line
that lacks the value, or has a field of another name, is refused.
"""

from __future__ import annotations

import base64
from collections.abc import Callable

import msgspec

from .record import RecordHeaders

Unset = msgspec.UnsetType
UNSET = msgspec.UNSET

_PART = 200  # headers that are written between two steps


class JsonHeader(msgspec.Struct, forbid_unknown_fields=True):
    """A header of a JsonRecord. It has a value, which may be null, or one in base64."""

    name: str
    value: str | Unset | None = UNSET
    value_base64: str | Unset = UNSET


class JsonRecord(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A record in odradek's form. Without a key, the key is null."""

    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    timestamp_ms: int | None = None
    key: str | Unset | None = UNSET
    key_base64: str | Unset = UNSET
    value: str | Unset | None = UNSET
    value_base64: str | Unset = UNSET
    headers: list[JsonHeader] = []


def line_of(
    *,
    topic: str | None,
    partition: int | None,
    offset: int | None,
    timestamp_ms: int | None,
    key: bytes | None,
    value: bytes | None,
    headers: RecordHeaders | bytes,
) -> bytes:
    """The line of a record. No timestamp: None. `headers` may be what `headers_json` returns."""
    record = JsonRecord(topic=topic, partition=partition, offset=offset, timestamp_ms=timestamp_ms)
    if key is not None:
        record.key, record.key_base64 = fields_of(key)
    record.value, record.value_base64 = fields_of(value)
    line = msgspec.json.encode(record)
    if headers:
        listed = headers if isinstance(headers, bytes) else headers_json(headers)
        line = b'%b,"headers":%b}' % (line[:-1], listed)
    return line + b"\n"


def headers_json(headers: RecordHeaders, step: Callable[[], object] = lambda: None) -> bytes:
    """The headers as a list in JSON; without headers nothing. A record may have 100,000."""
    parts = []
    for start in range(0, len(headers), _PART):
        step()
        part = [JsonHeader(name, *fields_of(data)) for name, data in headers[start : start + _PART]]
        parts.append(msgspec.json.encode(part)[1:-1])
    return b"[%b]" % b",".join(parts) if parts else b""


def fields_of(data: bytes | None) -> tuple[str | Unset | None, str | Unset]:
    """The bytes as text, or else in base64; one of both is not set."""
    if data is None:
        return None, UNSET
    try:
        return data.decode(), UNSET
    except UnicodeDecodeError:
        return UNSET, base64.b64encode(data).decode()
