"""The schema that a request names: to register it, to look it up, or to compare it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .errors import invalid_schema, invalid_version
from .schemas import AVRO, Json, Reference, stored_metadata, stored_rule_set

LATEST = -1
_MAX_VERSION = (1 << 31) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaRequest:
    """The body of such a request. No version: 0. No id: -1."""

    text: str = ""
    schema_type: str = AVRO
    references: tuple[Reference, ...] = ()
    metadata: Json | None = None
    rule_set: Json | None = None
    version: int = 0
    id: int = -1


def schema_request(body: Any) -> SchemaRequest:
    """Read the body of a request, parsed from JSON. Unknown fields are ignored.

    Raises INVALID_SCHEMA and INVALID_RULE_SET. Tags to add or remove are refused.
    """
    if not isinstance(body, Mapping):
        raise invalid_schema("the request is not an object")
    for unsupported in ("schemaTagsToAdd", "schemaTagsToRemove", "propagateSchemaTags"):
        if body.get(unsupported):
            raise invalid_schema(f"{unsupported} is not supported")
    text = body.get("schema") or ""
    schema_type = body.get("schemaType") or AVRO
    if not isinstance(text, str) or not isinstance(schema_type, str):
        raise invalid_schema("schema and schemaType are strings")
    return SchemaRequest(
        text=text,
        schema_type=schema_type.upper(),
        references=tuple(map(_reference, body.get("references") or ())),
        metadata=stored_metadata(body.get("metadata")),
        rule_set=stored_rule_set(body.get("ruleSet")),
        version=_integer(body, "version", 0),
        id=_integer(body, "id", -1),
    )


def version_number(text: str) -> int:
    """Read a version of a path: a number, or -1 for "latest" and "-1".

    Raises INVALID_VERSION.
    """
    if text.strip().lower() == "latest":
        return LATEST
    try:
        number = int(text)
    except ValueError:
        raise invalid_version(text) from None
    if number != LATEST and not 0 < number <= _MAX_VERSION:
        raise invalid_version(text)
    return number


def _reference(fields: Any) -> Reference:
    if not isinstance(fields, Mapping):
        raise invalid_schema(f"Invalid reference: {fields}")
    name, subject, version = (fields.get(field) for field in ("name", "subject", "version"))
    if not isinstance(name, str) or not isinstance(subject, str):
        raise invalid_schema(f"Invalid reference: {dict(fields)}")
    if not isinstance(version, int) or isinstance(version, bool) or abs(version) > _MAX_VERSION:
        raise invalid_schema(f"Invalid reference: {dict(fields)}")
    return Reference(name, subject, version)


def _integer(body: Mapping[str, Any], name: str, default: int) -> int:
    value = body.get(name)
    if value is None:
        return default
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) > _MAX_VERSION:
        raise invalid_schema(f"{name} is not an integer: {value!r}")
    return value
