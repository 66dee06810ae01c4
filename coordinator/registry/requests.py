"""The schema that a request names: to register it, to look it up, or to compare it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from msgspec import ValidationError, convert

from odradek.config.java_text import JAVA_BLANKS

from . import shapes
from .errors import invalid_schema, invalid_version
from .schemas import AVRO, Json, Reference, references_of, stored_metadata, stored_rule_set
from .shapes import MAX_INT32

LATEST = -1
_INTEGER = re.compile(r"[+-]?[0-9]{1,12}")


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
        schema_type=schema_type,
        references=_references(body.get("references")),
        metadata=stored_metadata(body.get("metadata")),
        rule_set=stored_rule_set(body.get("ruleSet")),
        version=_integer(body, "version", 0),
        id=max(_integer(body, "id", -1), -1),
    )


def version_number(text: str) -> int:
    """Read a version of a path: a number, or -1 for "latest" and "-1".

    Raises INVALID_VERSION.
    """
    trimmed = text.strip(JAVA_BLANKS)
    if trimmed.lower() == "latest":
        return LATEST
    number = integer(trimmed)
    if number is None or (number != LATEST and number < 1):
        raise invalid_version(text)
    return number


def integer(text: str) -> int | None:
    """Read a number of 32 bits in decimal digits, which may have a sign; None for another text."""
    number = int(text) if _INTEGER.fullmatch(text) else MAX_INT32 + 1
    return number if abs(number) <= MAX_INT32 else None


def _references(given: Any) -> tuple[Reference, ...]:
    try:
        return references_of(convert(given, list[shapes.Reference] | None))
    except ValidationError as error:
        raise invalid_schema(f"Invalid reference: {error}") from None


def _integer(body: Mapping[str, Any], name: str, default: int) -> int:
    value = body.get(name)
    if value is None:
        return default
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) > MAX_INT32:
        raise invalid_schema(f"{name} is not an integer: {value!r}")
    return value
