"""Compares a new schema with the versions before it, by a level (settings.Level).

The texts are those of Confluent's registry: each reason names the schema that reads and the one
that is read ("new", "old"); after the reasons of a version come its number, and its text up to a
limit. Versions are compared from the latest on, up to the first that is not compatible.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from .formats import Parsed, compatibility
from .schemas import Json, SchemaVersion
from .settings import Level

_OTHER_TYPE = "Incompatible because of different schema type"
_MAX_TEXT = 10 * 1024

# Returns the parsed form of a stored version.
Parse = Callable[[SchemaVersion], Parsed]


@dataclass(frozen=True, slots=True)
class Candidate:
    """The new schema."""

    schema_type: str
    parsed: Parsed
    metadata: Json | None = None


def check(
    candidate: Candidate, previous: Iterable[SchemaVersion], config: Json, parse: Parse
) -> list[str]:
    """Return the reasons against a schema; nothing if it is compatible.

    `previous`: in rising order. Of a compatibility group, only versions that have the candidate's
    value in this property of their metadata count. May be long: each version that counts is parsed
    and compared. Raises InvalidSchemaError.
    """
    level = Level(config["compatibilityLevel"])
    if level is Level.NONE:
        return []
    group = config.get("compatibilityGroup")
    versions = [
        version
        for version in previous
        if group is None
        or _group_value(version.schema.metadata, group) == _group_value(candidate.metadata, group)
    ]
    if not level.endswith("TRANSITIVE"):
        versions = versions[-1:]
    lenient = config.get("compatibilityPolicy") == "LENIENT"
    for version in reversed(versions):
        reasons = _reasons(candidate, version, level, parse, lenient=lenient)
        if reasons:
            validates = "true" if config.get("validateFields") else "false"
            return [*reasons, f"{{validateFields: '{validates}', compatibility: '{level}'}}"]
    return []


def _group_value(metadata: Json | None, group: str) -> str | None:
    value: str | None = (metadata or {}).get("properties", {}).get(group)
    return value


def _reasons(
    candidate: Candidate, version: SchemaVersion, level: Level, parse: Parse, *, lenient: bool
) -> list[str]:
    schema_type = candidate.schema_type
    if schema_type != version.schema.schema_type:
        return [_OTHER_TYPE]
    old = parse(version)
    reasons: list[str] = []
    if not level.startswith("BACKWARD"):
        found = compatibility(schema_type, old, candidate.parsed, lenient=lenient)
        reasons += [_named(reason, "old", "new") for reason in found]
    if not level.startswith("FORWARD"):
        found = compatibility(schema_type, candidate.parsed, old, lenient=lenient)
        reasons += [_named(reason, "new", "old") for reason in found]
        if not found and level.startswith("FULL"):
            return reasons
    return [*reasons, *_described(version)] if reasons else []


def _named(reason: str, reader: str, writer: str) -> str:
    return reason.replace("%s", reader, 1).replace("%s", writer, 1)


def _described(version: SchemaVersion) -> list[str]:
    text = version.schema.text
    shown = f"'{text}'" if len(text) <= _MAX_TEXT else f"<truncated> '{text[:_MAX_TEXT]}...'"
    return [f"{{oldSchemaVersion: {version.version}}}", f"{{oldSchema: {shown}}}"]
