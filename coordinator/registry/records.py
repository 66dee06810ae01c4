"""The records of `_schemas`: the keys and values of Confluent's Schema Registry, byte for byte.

The topic has one partition and is compacted. Keys and values are JSON, written by Jackson from
classes with a fixed order of fields; what is null or empty is left out, `false` is not:

    {"keytype":"SCHEMA","subject":"s","version":1,"magic":1}
    {"subject":"s","version":1,"id":1,"schemaType":"AVRO","schema":"\\"int\\"","deleted":false}
    {"keytype":"CONFIG","magic":0}                    of all subjects: no subject
    {"compatibilityLevel":"FULL"}
    {"keytype":"MODE","subject":"s","magic":0}
    {"subject":"s","mode":"READONLY"}
    {"keytype":"DELETE_SUBJECT","subject":"s","magic":0}
    {"subject":"s","version":3}                       versions up to 3 are soft-deleted
    {"keytype":"CLEAR_SUBJECT","subject":"s","magic":0}
    {"subject":"s"}                                   its soft-deleted versions are gone
    {"keytype":"CONTEXT","tenant":"default","context":".prod","magic":0}
    {"tenant":"default","context":".prod"}
    {"keytype":"NOOP","magic":0}                      no value

What is read is more than what is written: fields in any order and with blanks (Karapace writes
`{"keytype": ...}` in other orders and with blanks), no `schemaType` for Avro (releases before 8),
`compatibility` for `compatibilityLevel`, null subjects, unknown fields. A record that is not of the
types that shapes.py names cannot be read: it is ignored by replay, not deleted.

Compaction knows keys by their bytes. So a record that replaces one whose key is written in another
way must delete that key too: see state.stored.
"""

import base64
from dataclasses import dataclass
from typing import TypeVar, cast

import msgspec

from . import shapes
from .json_text import dumps
from .schemas import AVRO, Json, Schema, SchemaVersion, references_of
from .settings import Level, Mode, in_order
from .shapes import decoded, plain

TENANT = "default"
S = TypeVar("S", bound=msgspec.Struct)


@dataclass(frozen=True, slots=True)
class SchemaKey:
    subject: str
    version: int

    def encode(self) -> bytes:
        return _bytes(
            {"keytype": "SCHEMA", "subject": self.subject, "version": self.version, "magic": 1}
        )


@dataclass(frozen=True, slots=True)
class _SubjectKey:
    """A key with a subject, or none for all subjects."""

    subject: str | None

    def encode(self) -> bytes:
        key: Json = {"keytype": _KEY_TYPES[type(self)]}
        if self.subject:
            key["subject"] = self.subject
        return _bytes({**key, "magic": 0})


class ConfigKey(_SubjectKey):
    __slots__ = ()


class ModeKey(_SubjectKey):
    __slots__ = ()


class DeleteSubjectKey(_SubjectKey):
    __slots__ = ()


class ClearSubjectKey(_SubjectKey):
    __slots__ = ()


@dataclass(frozen=True, slots=True)
class ContextKey:
    context: str
    tenant: str = TENANT

    def encode(self) -> bytes:
        return _bytes(
            {"keytype": "CONTEXT", "tenant": self.tenant, "context": self.context, "magic": 0}
        )


@dataclass(frozen=True, slots=True)
class NoopKey:
    def encode(self) -> bytes:
        return _bytes({"keytype": "NOOP", "magic": 0})


Key = SchemaKey | ConfigKey | ModeKey | DeleteSubjectKey | ClearSubjectKey | ContextKey | NoopKey

_KEY_TYPES: dict[type[_SubjectKey], str] = {
    ConfigKey: "CONFIG",
    ModeKey: "MODE",
    DeleteSubjectKey: "DELETE_SUBJECT",
    ClearSubjectKey: "CLEAR_SUBJECT",
}
_SUBJECT_KEYS = {name: kind for kind, name in _KEY_TYPES.items()}


@dataclass(frozen=True, slots=True)
class Record:
    """One record of the topic. No value: the key is deleted (a NOOP has none either)."""

    key: bytes
    value: bytes | None


class UnreadableError(ValueError):
    """A record of another kind, or one that is not as described above."""


def decode_key(stored: bytes) -> Key:
    """Raises UnreadableError."""
    key = _decoded(stored, shapes.Key)
    match key.keytype:
        case "SCHEMA":
            if key.subject is None or key.version is None or key.magic not in (0, 1):
                raise UnreadableError(f"a key of a schema without what it needs: {key}")
            return SchemaKey(key.subject, key.version)
        case "NOOP":
            return NoopKey()
        case "CONTEXT":
            if key.context is None:
                raise UnreadableError("a key of a context without its name")
            return ContextKey(key.context, key.tenant or TENANT)
        case kind if kind in _SUBJECT_KEYS:
            return cast(Key, _SUBJECT_KEYS[kind](key.subject or None))
    raise UnreadableError(f"keytype {key.keytype!r:.100}")


# -- values ----------------------------------------------------------------------------------------


def schema_record(version: SchemaVersion) -> Record:
    schema = version.schema
    value: Json = {"subject": version.subject, "version": version.version, "id": version.id}
    if schema.stored_md5 is not None:
        value["md5"] = base64.b64encode(schema.stored_md5).decode()
    value["schemaType"] = schema.schema_type
    if schema.references:
        value["references"] = [
            {"name": reference.name, "subject": reference.subject, "version": reference.version}
            for reference in schema.references
        ]
    if schema.metadata is not None:
        value["metadata"] = schema.metadata
    if schema.rule_set is not None:
        value["ruleSet"] = schema.rule_set
    value["schema"] = schema.text
    value["deleted"] = version.deleted
    return Record(SchemaKey(version.subject, version.version).encode(), _bytes(value))


def config_record(subject: str | None, config: Json) -> Record:
    value = {"subject": subject, **config} if subject else config
    return Record(ConfigKey(subject).encode(), _bytes(value))


def mode_record(subject: str | None, mode: Mode) -> Record:
    value = {"subject": subject, "mode": mode.value} if subject else {"mode": mode.value}
    return Record(ModeKey(subject).encode(), _bytes(value))


def delete_subject_record(subject: str, last_version: int) -> Record:
    value = {"subject": subject, "version": last_version}
    return Record(DeleteSubjectKey(subject).encode(), _bytes(value))


def clear_subject_record(subject: str | None) -> Record:
    value = {"subject": subject} if subject else {}
    return Record(ClearSubjectKey(subject).encode(), _bytes(value))


def context_record(context: str) -> Record:
    value = {"tenant": TENANT, "context": context}
    return Record(ContextKey(context).encode(), _bytes(value))


def tombstone(key: Key) -> Record:
    return Record(key.encode(), None)


def decode_schema(key: SchemaKey, stored: bytes, stored_ms: int | None = None) -> SchemaVersion:
    """Raises UnreadableError."""
    value = _decoded(stored, shapes.SchemaValue)
    schema = Schema(
        schema_type=value.schema_type or AVRO,
        text=value.schema,
        references=references_of(value.references),
        metadata=plain(value.metadata),
        rule_set=plain(value.rule_set),
        stored_md5=_md5(value.md5) if value.md5 else None,
    )
    return SchemaVersion(
        subject=key.subject,
        version=key.version,
        id=value.id,
        schema=schema,
        deleted=bool(value.deleted),
        stored_ms=stored_ms,
    )


def decode_config(stored: bytes) -> Json:
    """Raises UnreadableError."""
    value = _decoded(stored, shapes.ConfigValue)
    level = value.compatibility_level or value.compatibility
    if level is not None and level not in Level.__members__:
        raise UnreadableError(f"compatibility level {level!r:.100}")
    return in_order({**(plain(value) or {}), "compatibilityLevel": level})


def decode_mode(stored: bytes) -> Mode:
    """Raises UnreadableError."""
    mode = _decoded(stored, shapes.ModeValue).mode
    if mode not in Mode.__members__:
        raise UnreadableError(f"mode {mode!r:.100}")
    return Mode[mode]


def decode_deleted_version(stored: bytes) -> int:
    """Raises UnreadableError."""
    return _decoded(stored, shapes.DeletedVersion).version


def _md5(text: str) -> bytes:
    try:
        md5 = base64.b64decode(text, validate=True)
    except ValueError:
        raise UnreadableError(f"md5 {text!r:.100}") from None
    if len(md5) != 16:
        raise UnreadableError(f"md5 {text!r:.100}")
    return md5


def _bytes(value: Json) -> bytes:
    return dumps(value).encode()


def _decoded(stored: bytes, shape: type[S]) -> S:
    try:
        return decoded(stored, shape)
    except ValueError as error:
        raise UnreadableError(str(error)) from None
