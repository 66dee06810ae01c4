"""Keys and values as text.

`auto` takes the first that fits: a record of an internal topic, a value with a schema, JSON, text,
and else hexadecimal digits. Where a value is not shown as the client asked, `reason` says why.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import msgspec

from odradek.broker.console.calls import Call
from odradek.broker.console.view import View
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.coordinator.inspect.internal_records import AnyRecord, decode_control
from odradek.coordinator.registry.schemas import TOPIC as SCHEMAS_TOPIC
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.record import Record, RecordHeaders
from odradek.storage.inspect.raw_message import UnreadableError

from .filters import JsonPath, looks_like_json
from .framing import framed
from .internal_values import (
    DECODERS,
    SHORT_BYTES,
    internal_matches_path,
    json_text,
    texts_of,
    walk_record,
)
from .picking import LARGE_JSON_BYTES, Picked, matches_path, walk_value
from .schemas import FORMATS, Schemas, UndecodableError

T = TypeVar("T")

AUTO, TEXT, JSON, HEX, INTERNAL = "auto", "text", "json", "hex", "internal"
NAMES = (AUTO, TEXT, JSON, HEX, INTERNAL, *FORMATS.values())
# Larger values are not decoded, but shown as text or in hexadecimal.
MAX_DECODED_BYTES = 64 << 10
# What may stand in a text.
_CONTROL = frozenset(map(chr, range(32))) - frozenset("\t\n\r")


class Data(View):
    """A key or a value. `text` is cut if `is_cut`; `size_bytes` is the size in the log.

    `format`: text, json, hex, avro, protobuf, jsonschema or internal. `reason`: why it is not shown
    in the format that was asked for, or by its schema.
    """

    text: str
    format: str
    size_bytes: int
    schema_id: int | None = None
    is_cut: bool = False
    reason: str | None = None


class Decoder:
    """Shows the keys and values of one topic, as texts of at most `max_text` letters."""

    def __init__(self, call: Call, topic: str, name: str, max_text: int, schemas: Schemas) -> None:
        """Raises ApiError if there is no such format."""
        if name not in NAMES:
            text = f"the format {name!r} is none of {', '.join(NAMES)}"
            raise ApiError(ErrorCode.INVALID_REQUEST, text)
        self._call = call
        self._format = name
        self.max_text = max_text
        self._schemas = schemas
        self._topic = topic
        self._is_internal = topic in DECODERS

    async def key_and_value(self, picked: Picked) -> tuple[Data | None, Data | None]:
        """The key and the value of a record; None for null."""
        if picked.header.is_control:
            return self._hex(picked.key, picked.key_bytes), self._control(picked)
        if self._is_internal and self._format in (AUTO, INTERNAL):
            shown = await self._internal_record(picked)
            if shown is not None:
                return shown
        return (
            await self._data(picked.key, picked.key_bytes, picked.headers, is_key=True),
            await self._data(picked.value, picked.value_bytes, picked.headers, is_key=False),
        )

    async def header(self, value: bytes | None) -> Data | None:
        """The value of a header."""
        return None if value is None else self._plain(AUTO, value, len(value), None)

    async def matches_path(self, record: Record, path: JsonPath) -> bool:
        """Whether the JSON of a record's value has what a path says."""
        if self._is_internal:
            work = partial(internal_matches_path, topic=self._topic, path=path)
            return await self._decoded(work, record)
        value, step = record.value, self._call.slices.step
        try:
            if value is not None and not looks_like_json(value):
                text, _, _ = await self._by_schema(value, record.headers, is_key=False)
                value = text.encode()
        except UndecodableError:
            return False
        if value is None or len(value) <= LARGE_JSON_BYTES:
            return matches_path(path, value, step)
        walk = partial(walk_value, path=path)
        walks = self._call.observed.broker.fetching.walks
        return await walks.run(walk, bytes(value), self._call.session.client)

    # -- one kind of value ------------------------------------------------------------------------

    async def _data(
        self, data: bytes | None, size_bytes: int, headers: RecordHeaders, *, is_key: bool
    ) -> Data | None:
        if data is None:
            return None
        reason = None
        is_by_schema = self._format in FORMATS.values()
        if self._format == AUTO or is_by_schema:
            try:
                if size_bytes > len(data):
                    raise UndecodableError(f"values of over {len(data)} bytes are not decoded")
                text, name, schema_id = await self._by_schema(data, headers, is_key=is_key)
                shown = self._data_of(text, name, size_bytes)
                shown.schema_id = schema_id
                return shown
            except UndecodableError as error:
                names_schema = framed(data, headers, is_key=is_key) is not None
                reason = str(error) if is_by_schema or names_schema else None
        elif self._format == INTERNAL:
            reason = "only the records of internal topics have this format"
        return self._plain(AUTO if is_by_schema else self._format, data, size_bytes, reason)

    async def _by_schema(
        self, data: bytes, headers: RecordHeaders, *, is_key: bool
    ) -> tuple[str, str, int]:
        """The JSON of a value, its format and its schema. Raises UndecodableError."""
        value = framed(data, headers, is_key=is_key)
        if value is None:
            raise UndecodableError("it does not name a schema")
        if not self._call.may(AclOperation.READ, ResourceType.TOPIC, SCHEMAS_TOPIC):
            raise UndecodableError(f"you may not read the topic {SCHEMAS_TOPIC}")
        shape = await self._schemas.shape(value, self._call.session.client)
        try:
            shown = await shape.json_of(value.payload, self._call.slices.step)
            return shown.decode(), shape.format, shape.schema_id
        except UndecodableError:
            raise
        except Exception as error:  # noqa: BLE001 # libraries raise what they like for strange bytes
            text = f"schema {shape.schema_id} ({shape.format}) does not fit: {error}"
            raise UndecodableError(text) from None

    async def _internal_record(self, picked: Picked) -> tuple[Data | None, Data | None] | None:
        """None if the decoder cannot read it."""
        if max(picked.key_bytes, picked.value_bytes) > MAX_DECODED_BYTES:
            return None
        texts = await self._decoded(partial(texts_of, topic=self._topic), picked)
        if texts is None:
            return None
        key, value = texts
        return (
            self._data_of(key, INTERNAL, picked.key_bytes),
            None if value is None else self._data_of(value, INTERNAL, picked.value_bytes),
        )

    async def _decoded(self, work: Callable[[AnyRecord], T], record: AnyRecord) -> T:
        """Do `work` with a record of an internal topic, a long one in another process."""
        value = record.value
        if value is None or len(value) <= SHORT_BYTES:
            return work(record)
        walk = partial(walk_record, work=work, key=record.key, offset=record.offset)
        walks = self._call.observed.broker.fetching.walks
        return await walks.run(walk, bytes(value), self._call.session.client)

    def _control(self, picked: Picked) -> Data | None:
        try:
            control = decode_control(picked.key, picked.value)
        except UnreadableError:
            return self._hex(picked.value, picked.value_bytes)
        shown: dict[str, Any] = {
            "type": control.type_id if control.kind is None else control.kind.name
        }
        if control.message is None:
            shown["coordinatorEpoch"] = control.coordinator_epoch
        else:
            shown["data"] = control.message
        return self._data_of(json_text(shown), INTERNAL, max(picked.value_bytes, 0))

    def _hex(self, data: bytes | None, size_bytes: int) -> Data | None:
        return None if data is None else self._plain(HEX, data, size_bytes, None)

    def _plain(self, name: str, data: bytes, size_bytes: int, reason: str | None) -> Data:
        """A value as JSON, text or hexadecimal digits."""
        is_whole = len(data) == size_bytes
        text = None if name == HEX else _text_of(data, is_whole=is_whole)
        if text is None or (name == AUTO and not _CONTROL.isdisjoint(text[:1000])):
            if name in (TEXT, JSON):
                reason = reason or "it is no UTF-8 text"
            shown = data[: self.max_text // 2].hex()
            is_cut = len(data) > self.max_text // 2 or not is_whole
            return Data(text=shown, format=HEX, size_bytes=size_bytes, is_cut=is_cut, reason=reason)
        is_json = name in (AUTO, JSON) and _is_json(data, is_whole=is_whole, strict=name == AUTO)
        if name == JSON and not is_json:
            reason = reason or "it is not JSON"
        found = self._data_of(text, JSON if is_json else TEXT, size_bytes)
        found.is_cut = found.is_cut or not is_whole
        found.reason = reason
        return found

    def _data_of(self, text: str, name: str, size_bytes: int) -> Data:
        return Data(
            text=text[: self.max_text],
            format=name,
            size_bytes=size_bytes,
            is_cut=len(text) > self.max_text,
        )


def _text_of(data: bytes, *, is_whole: bool) -> str | None:
    """The text of UTF-8 bytes, which may be cut within a letter; None for other bytes."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        if is_whole or error.start < len(data) - 3:
            return None
        return data[: error.start].decode()


def _is_json(data: bytes, *, is_whole: bool, strict: bool) -> bool:
    """Whether it is JSON. With `strict` only objects, lists and quoted texts are taken for it.

    Of what is cut, only the beginning is known.
    """
    first = data[:64].lstrip()[:1]
    if strict and first not in (b"{", b"[", b'"'):
        return False
    if not is_whole:
        return first in (b"{", b"[", b'"')
    try:
        msgspec.json.decode(data, type=msgspec.Raw)  # makes no objects, which takes long
    except (msgspec.MsgspecError, RecursionError):
        return False
    return True
