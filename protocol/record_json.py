"""Records as lines of JSON in odradek's own form.

Bytes that are not UTF-8 text go in base64 into `key_base64` or `value_base64`, so that every record
can be written. A null value deletes a key from a compacted topic, so it must be explicit:
`"value": null`. Readers refuse a line without a value (tools/client/record_json.py), or with a
field that is not declared here.
"""

from __future__ import annotations

import base64
from collections.abc import Callable

import msgspec

from .record import RecordHeaders

Unset = msgspec.UnsetType
UNSET = msgspec.UNSET

_HEADERS_BETWEEN_STEPS = 200


class JsonHeader(msgspec.Struct, forbid_unknown_fields=True):
    """A header of a JsonRecord. Either `value`, which may be null, or `value_base64` is set."""

    name: str
    value: str | Unset | None = UNSET
    value_base64: str | Unset = UNSET


class JsonRecord(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A record in odradek's form. If no key is set, the key is null."""

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
    """Encode headers as a list in JSON; no headers give b"".

    A record may have 100,000 headers, so `step` is called between parts of them.
    """
    parts = []
    for start in range(0, len(headers), _HEADERS_BETWEEN_STEPS):
        step()
        some = headers[start : start + _HEADERS_BETWEEN_STEPS]
        part = [JsonHeader(name, *fields_of(data)) for name, data in some]
        parts.append(msgspec.json.encode(part)[1:-1])
    return b"[%b]" % b",".join(parts) if parts else b""


def fields_of(data: bytes | None) -> tuple[str | Unset | None, str | Unset]:
    """Return (text, UNSET), or (UNSET, base64) for bytes that are not UTF-8; null is a text."""
    if data is None:
        return None, UNSET
    try:
        return data.decode(), UNSET
    except UnicodeDecodeError:
        return UNSET, base64.b64encode(data).decode()
