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
`compatibility` for `compatibilityLevel`, null subjects, unknown fields. A record that cannot be
read is ignored by replay, not deleted.

Compaction knows keys by their bytes. So a record that replaces one whose key is written in another
way must delete that key too: see state.stored.
"""

import base64
import binascii
from dataclasses import dataclass
from typing import Any, cast

from .json_text import InvalidJsonError, dumps, loads
from .schemas import AVRO, Json, Reference, Schema, SchemaVersion
from .settings import FIELDS, Level, Mode, in_order

TENANT = "default"


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
    fields = _object(stored)
    kind = fields.get("keytype")
    subject = fields.get("subject")
    if subject is not None and not isinstance(subject, str):
        raise UnreadableError(f"subject {subject!r}")
    if kind == "SCHEMA":
        if subject is None or fields.get("magic") not in (0, 1):
            raise UnreadableError(f"key {fields!r}")
        return SchemaKey(subject, _integer(fields, "version"))
    if kind == "NOOP":
        return NoopKey()
    if kind == "CONTEXT":
        return ContextKey(_text(fields, "context"), str(fields.get("tenant") or TENANT))
    if kind not in _SUBJECT_KEYS:
        raise UnreadableError(f"keytype {kind!r}")
    return cast(Key, _SUBJECT_KEYS[kind](subject or None))


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


def noop_record() -> Record:
    return Record(NoopKey().encode(), None)


def tombstone(key: Key) -> Record:
    return Record(key.encode(), None)


def decode_schema(key: SchemaKey, stored: bytes, stored_ms: int | None = None) -> SchemaVersion:
    """Raises UnreadableError."""
    fields = _object(stored)
    md5 = fields.get("md5")
    try:
        stored_md5 = base64.b64decode(md5, validate=True) if isinstance(md5, str) else None
    except binascii.Error:
        raise UnreadableError(f"md5 {md5!r}") from None
    schema = Schema(
        schema_type=str(fields.get("schemaType") or AVRO),
        text=_text(fields, "schema"),
        references=tuple(map(_reference, fields.get("references") or ())),
        metadata=_optional_object(fields, "metadata"),
        rule_set=_optional_object(fields, "ruleSet"),
        stored_md5=stored_md5,
    )
    return SchemaVersion(
        subject=key.subject,
        version=key.version,
        id=_integer(fields, "id"),
        schema=schema,
        deleted=bool(fields.get("deleted", False)),
        stored_ms=stored_ms,
    )


def decode_config(stored: bytes) -> Json:
    """Raises UnreadableError."""
    fields = _object(stored)
    if "compatibilityLevel" not in fields and "compatibility" in fields:
        fields["compatibilityLevel"] = fields["compatibility"]
    level = fields.get("compatibilityLevel")
    if level is not None and level not in Level.__members__:
        raise UnreadableError(f"compatibility level {level!r}")
    return in_order({name: fields.get(name) for name in FIELDS})


def decode_mode(stored: bytes) -> Mode:
    """Raises UnreadableError."""
    mode = _text(_object(stored), "mode")
    if mode not in Mode.__members__:
        raise UnreadableError(f"mode {mode!r}")
    return Mode[mode]


def decode_deleted_version(stored: bytes) -> int:
    """Raises UnreadableError."""
    return _integer(_object(stored), "version")


def _reference(fields: Any) -> Reference:
    if not isinstance(fields, dict):
        raise UnreadableError(f"reference {fields!r}")
    return Reference(_text(fields, "name"), _text(fields, "subject"), _integer(fields, "version"))


def _bytes(value: Json) -> bytes:
    return dumps(value).encode("utf-8", "surrogatepass")


def _object(stored: bytes) -> Json:
    try:
        fields = loads(stored.decode("utf-8", "surrogatepass"))
    except (InvalidJsonError, UnicodeDecodeError) as error:
        raise UnreadableError(str(error)) from None
    if not isinstance(fields, dict):
        raise UnreadableError(f"{fields!r} is not an object")
    return fields


def _optional_object(fields: Json, name: str) -> Json | None:
    value = fields.get(name)
    if value is not None and not isinstance(value, dict):
        raise UnreadableError(f"{name} {value!r}")
    return value


def _text(fields: Json, name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str):
        raise UnreadableError(f"{name} {value!r}")
    return value


def _integer(fields: Json, name: str) -> int:
    value = fields.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        raise UnreadableError(f"{name} {value!r}")
    return value
