"""The two formats in which Kafka stores typed records in its internal logs.

`__cluster_metadata` has no keys; a value is framed (protocol/records/metadata_frame.py).

The coordinators' logs (Kafka: CoordinatorRecordSerde) have keys, so that compaction can work:

    key   = int16 record type | message, always version 0
    value = int16 version | message            no value: a tombstone

On disk: never renumber. A record of an unknown type or version stays in the log unchanged, because
the software that wrote it may read it again. A coordinator's record of this kind decodes to None,
or to its key alone. One of the metadata log decodes to a JournalRecord with `unread` bytes, because
it must also be written into the log's snapshots.
"""

import struct
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Protocol

from odradek.protocol.declaration import cut_fields
from odradek.protocol.primitives import write_uvarint
from odradek.protocol.records.cluster_metadata import RECORD_TYPES
from odradek.protocol.records.metadata_frame import FRAME_VERSION, check_end, read_frame
from odradek.protocol.schema import DecodeError, Message, codec_for

from .outcome import JournalRecord
from .steps import Step, step_of_items

KEY_VERSION = 0
_INT16 = struct.Struct(">h")


class CorruptJournalError(Exception):
    """A record of an internal log cannot be read. The message has log, offset and reason."""


class RecordCodec(Protocol):
    """Converts typed records to the key and value bytes of log records, and back."""

    def encode(
        self, record: JournalRecord, step: Step | None = None
    ) -> tuple[bytes | None, bytes | None]:
        """Return the stored key and value. `step` is called if the record may be large."""

    def decode(self, key: bytes | None, value: bytes | None) -> JournalRecord | None:
        """Return the typed record; None when its type or version is unknown. Raises DecodeError."""

    def is_cut(self, record: JournalRecord) -> bool:
        """Whether a field is set that the record's version does not have, so that it is lost."""


class MetadataRecordCodec:
    """Keyless, framed records of `__cluster_metadata`; `types` maps record type to message."""

    def __init__(self, types: Mapping[int, type[Message]]) -> None:
        self._types = types
        self._number_of = {message: number for number, message in types.items()}

    @classmethod
    def of_cluster(cls) -> "MetadataRecordCodec":
        """Make a codec of all record types of `__cluster_metadata`."""
        return cls(RECORD_TYPES)

    def encode(self, record: JournalRecord, step: Step | None = None) -> tuple[None, bytes]:  # noqa: ARG002 # none is large
        """Return no key, and the framed value."""
        if record.unread is not None:
            return None, record.unread
        assert record.value is not None, "a metadata record always has a value"
        out = bytearray()
        write_uvarint(out, FRAME_VERSION)
        write_uvarint(out, self._number_of[type(record.value)])
        write_uvarint(out, record.value_version)
        out += record.value.encode(record.value_version)
        return None, bytes(out)

    def decode(self, key: bytes | None, value: bytes | None) -> JournalRecord:  # noqa: ARG002 # metadata records have no key
        """Return the record; one of an unknown type or version has its bytes as `unread`.

        As in Kafka, raises DecodeError also for a frame version other than 1, and for bytes after
        the record.
        """
        if value is None:
            raise DecodeError("a metadata record without a value")
        number, version, position = read_frame(value)
        message = self._types.get(number)
        if message is None or version not in message.SPEC.versions:
            return JournalRecord(None, unread=bytes(value))
        decoded, end = codec_for(message, version).decode(value, position)
        check_end(value, end, number)
        return JournalRecord(decoded, version)

    def is_cut(self, record: JournalRecord) -> bool:
        """See RecordCodec."""
        return record.value is not None and _is_cut(record.value, record.value_version)


class CoordinatorRecordCodec:
    """Keyed records of the coordinators' logs; `types` maps record type to key and value.

    `key_only_types` maps record types to keys: only the key is decoded, the value stays `unread`.
    """

    def __init__(
        self,
        types: Mapping[int, tuple[type[Message], type[Message]]],
        key_only_types: Mapping[int, type[Message]] = MappingProxyType({}),
    ) -> None:
        self._types = types
        self._key_only_types = key_only_types
        self._number_of = {key: number for number, (key, _) in types.items()}
        self._number_of.update((key, number) for number, key in key_only_types.items())

    def encode(self, record: JournalRecord, step: Step | None = None) -> tuple[bytes, bytes | None]:
        """Return key and value; a tombstone has no value."""
        assert record.key is not None, "a coordinator's record always has a key"
        number = self._number_of[type(record.key)]
        key = _numbered(number, record.key, KEY_VERSION)
        if record.value is None:
            return key, None
        version = record.value_version
        return key, _numbered(version, record.value, version, step)

    def decode(self, key: bytes | None, value: bytes | None) -> JournalRecord | None:
        """See RecordCodec."""
        number = _leading_int16(key, "key")
        known = self._types.get(number)
        if known is None:
            key_type = self._key_only_types.get(number)
            return None if key_type is None else _key_only_record(key_type, key, value)
        key_type, value_type = known
        assert key is not None  # it had a leading int16
        typed_key = key_type.decode(key, KEY_VERSION, _INT16.size)
        if value is None:
            return JournalRecord(None, 0, typed_key)
        version = _leading_int16(value, "value")
        if version not in value_type.SPEC.versions:
            return None
        return JournalRecord(value_type.decode(value, version, _INT16.size), version, typed_key)

    def is_cut(self, record: JournalRecord) -> bool:
        """See RecordCodec."""
        return record.value is not None and _is_cut(record.value, record.value_version)


def _is_cut(value: Message, version: int) -> bool:
    """Whether a field that this version does not have is set."""
    for name, default in _cut_defaults(type(value), version):  # no generator: once for each record
        if getattr(value, name) != default:
            return True
    return False


@cache
def _cut_defaults(message: type[Message], version: int) -> tuple[tuple[str, object], ...]:
    return tuple((field.name, field.default) for field in cut_fields(message, version))


def _numbered(number: int, message: Message, version: int, step: Step | None = None) -> bytes:
    out = bytearray(_INT16.pack(number))
    codec = codec_for(type(message), version)
    if step is None:
        codec.write(message, out, None)
    else:
        codec.write_in_steps(message, out, [], step_of_items(step))
    return bytes(out)


def _key_only_record(
    key_type: type[Message], key: bytes | None, value: bytes | None
) -> JournalRecord | None:
    """Decode the key alone. Returns None when it cannot be decoded."""
    assert key is not None  # it had a leading int16
    try:
        typed_key = key_type.decode(key, KEY_VERSION, _INT16.size)
    except DecodeError:
        return None
    return JournalRecord(None, 0, typed_key, None if value is None else bytes(value))


def _leading_int16(data: bytes | None, what: str) -> int:
    if data is None or len(data) < _INT16.size:
        raise DecodeError(f"a coordinator's record whose {what} has no leading version")
    number: int = _INT16.unpack_from(data)[0]
    return number
