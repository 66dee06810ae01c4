"""What the registry keeps of a schema, and the fingerprint by which it knows it again.

Metadata and rule sets are kept as JSON objects in their stored form (see `stored_metadata` and
`stored_rule_set`): the registry returns them, and compares them as part of a schema.

The fingerprint is the MD5 of the text, the references, the metadata and the rule set, in this
order. As a UUID it is the schema's guid. Two schemas with one fingerprint have one id in a context.
"""

import hashlib
import re
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from msgspec import ValidationError, convert

from . import shapes
from .errors import invalid_rule_set, invalid_schema

TOPIC = "_schemas"  # that keeps them
AVRO, JSON, PROTOBUF = "AVRO", "JSON", "PROTOBUF"
SCHEMA_TYPES = (JSON, PROTOBUF, AVRO)  # in the order of GET /schemas/types

Json = dict[str, Any]

VERSION_PROPERTY = "confluent:version"

_RULE_KINDS = ("TRANSFORM", "CONDITION")
_RULE_NAME = re.compile(r"[^\W\d][\w-]{0,255}")
_MODES = {
    "migrationRules": ("Migration", ("UPGRADE", "DOWNGRADE", "UPDOWN")),
    "domainRules": ("Domain", ("WRITE", "READ", "WRITEREAD")),
    "encodingRules": ("Encoding", ("WRITE", "READ", "WRITEREAD")),
}
_RULE_LISTS = tuple(_MODES)


@dataclass(frozen=True, slots=True, order=True)
class Reference:
    """A version of a subject that a schema names: Avro by full name, others by file or URL."""

    name: str
    subject: str
    version: int


def references_of(given: Iterable[shapes.Reference] | None) -> tuple[Reference, ...]:
    """The references that a record or a request names."""
    return tuple(Reference(each.name, each.subject, each.version) for each in given or ())


@dataclass(frozen=True, kw_only=True)
class Schema:
    """A schema without its place: type, text, references, metadata and rules."""

    schema_type: str = AVRO
    text: str
    references: tuple[Reference, ...] = ()
    metadata: Json | None = None
    rule_set: Json | None = None
    stored_md5: bytes | None = field(default=None, compare=False)  # of a registry that encrypts

    @cached_property
    def md5(self) -> bytes:
        return self.stored_md5 or _fingerprint(self)

    @property
    def guid(self) -> str:
        return str(uuid.UUID(bytes=self.md5))


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaVersion:
    """A schema as one version of a subject. `stored_ms` is the time of its record; None: new."""

    subject: str
    version: int
    id: int
    schema: Schema
    deleted: bool = False
    stored_ms: int | None = field(default=None, compare=False)

    def as_deleted(self) -> "SchemaVersion":
        return replace(self, deleted=True)


def _fingerprint(schema: Schema) -> bytes:
    digest = hashlib.md5(schema.text.encode(), usedforsecurity=False)
    for reference in schema.references:
        digest.update(reference.name.encode())
        digest.update(reference.subject.encode())
        digest.update(reference.version.to_bytes(4, "big", signed=True))
    if schema.metadata is not None:
        digest.update(b"\x01")  # tells empty metadata from none
        for part in _texts_of_metadata(schema.metadata):
            digest.update(part.encode())
    if schema.rule_set is not None:
        digest.update(b"\x01")
        for part in _texts_of_rule_set(schema.rule_set):
            digest.update(part.encode())
    return digest.digest()


def _texts_of_metadata(metadata: Json) -> Iterable[str]:
    for path, tags in sorted(metadata.get("tags", {}).items()):
        yield path
        yield from tags
    for name, value in sorted(metadata.get("properties", {}).items()):
        yield name
        yield value
    yield from metadata.get("sensitive", ())


def _texts_of_rule_set(rule_set: Json) -> Iterable[str]:
    for rules in _RULE_LISTS:
        for rule in rule_set.get(rules, ()):
            yield from (
                rule[name] for name in ("name", "doc", "kind", "mode", "type") if name in rule
            )
            yield from rule.get("tags", ())
            for name, value in sorted(rule.get("params", {}).items()):
                yield name
                yield value
            yield from (rule[name] for name in ("expr", "onSuccess", "onFailure") if name in rule)
            if rule.get("disabled"):
                yield "\x01"
    if "enableAt" in rule_set:
        yield rule_set["enableAt"]


def stored_metadata(metadata: Any) -> Json | None:
    """Return metadata of a request in its stored form: sorted, without what is empty.

    Raises INVALID_SCHEMA when it has another shape.
    """
    if metadata is None:
        return None
    try:
        given = convert(metadata, shapes.Metadata)
    except ValidationError as error:
        raise invalid_schema(f"metadata: {error}") from None
    stored: Json = {}
    if given.tags:
        stored["tags"] = {path: sorted(set(given.tags[path])) for path in sorted(given.tags)}
    if given.properties:
        stored["properties"] = dict(sorted(given.properties.items()))
    if given.sensitive:
        stored["sensitive"] = sorted(set(given.sensitive))
    return stored


def stored_rule_set(rule_set: Any) -> Json | None:
    """Return a rule set of a request in its stored form. Raises INVALID_RULE_SET."""
    if rule_set is None:
        return None
    try:
        given = convert(rule_set, shapes.RuleSet)
    except ValidationError as error:
        raise invalid_rule_set(f"ruleSet: {error}") from None
    stored: Json = {}
    for kind, rules in zip(
        _RULE_LISTS, (given.migration_rules, given.domain_rules, given.encoding_rules), strict=True
    ):
        if rules:
            stored[kind] = _stored_rules(rules, kind)
    if given.enable_at:
        stored["enableAt"] = given.enable_at
    return stored


def _stored_rules(rules: Iterable[shapes.Rule], kind: str) -> list[Json]:
    stored: list[Json] = []
    names: set[str] = set()
    for rule in rules:
        if not _RULE_NAME.fullmatch(rule.name):
            raise invalid_rule_set(f"Illegal rule name: {rule.name}")
        if rule.name in names:
            raise invalid_rule_set(f"Found rule with duplicate name '{rule.name}'")
        names.add(rule.name)
        if not rule.type:
            raise invalid_rule_set("Missing rule type")
        _check_modes(rule, kind)
        stored.append(_stored_rule(rule))
    return stored


def _check_modes(rule: shapes.Rule, kind: str) -> None:
    title, modes = _MODES[kind]
    if rule.mode not in modes:
        raise invalid_rule_set(f"{title} rules can only be {', '.join(modes)}")
    if rule.kind not in (None, *_RULE_KINDS):
        raise invalid_rule_set(f"the kind of a rule can only be {', '.join(_RULE_KINDS)}")
    actions = (rule.onSuccess or "", rule.onFailure or "")
    if rule.mode not in ("WRITEREAD", "UPDOWN") and any("," in action for action in actions):
        raise invalid_rule_set("Multiple actions only valid with WRITEREAD and UPDOWN")


def _stored_rule(rule: shapes.Rule) -> Json:
    """Return a rule sorted, without what is empty."""
    given = shapes.plain(rule) or {}
    stored = {name: value for name, value in given.items() if value}
    if "tags" in stored:
        stored["tags"] = sorted(set(stored["tags"]))
    if "params" in stored:
        stored["params"] = dict(sorted(stored["params"].items()))
    return {**stored, "disabled": bool(rule.disabled)}


# -- merging: the defaults and overrides of a subject's configuration ------------------------------


def merged_metadata(under: Json | None, over: Json | None) -> Json | None:
    """Return the union of two metadata; where both have a name, `over` counts."""
    if under is None or over is None:
        return over if under is None else under
    merged: Json = {}
    for name in ("tags", "properties"):
        values = {**under.get(name, {}), **over.get(name, {})}
        if values:
            merged[name] = {key: values[key] for key in sorted(values)}
    sensitive = {*under.get("sensitive", ()), *over.get("sensitive", ())}
    if sensitive:
        merged["sensitive"] = sorted(sensitive)
    return merged


def merged_rule_sets(under: Json | None, over: Json | None) -> Json | None:
    """Return both rule sets' rules; a rule of `over` replaces one of its name."""
    if under is None or over is None:
        return over if under is None else under
    merged: Json = {}
    for rules in _RULE_LISTS:
        replaced = {rule["name"] for rule in over.get(rules, ())}
        joined = [rule for rule in under.get(rules, ()) if rule["name"] not in replaced]
        joined += over.get(rules, ())
        if joined:
            merged[rules] = joined
    enable_at = over.get("enableAt") or under.get("enableAt")
    if enable_at:
        merged["enableAt"] = enable_at
    return merged


def version_property(metadata: Json | None) -> str | None:
    properties: dict[str, str] = (metadata or {}).get("properties", {})
    return properties.get(VERSION_PROPERTY)


def with_version_property(metadata: Json | None, version: int) -> Json:
    properties = {**(metadata or {}).get("properties", {}), VERSION_PROPERTY: str(version)}
    return merged_metadata(metadata, {"properties": properties}) or {}


def without_version_property(metadata: Json | None) -> Json:
    """Return metadata without the version; empty metadata instead of none."""
    kept = dict(metadata or {})
    properties = {k: v for k, v in kept.pop("properties", {}).items() if k != VERSION_PROPERTY}
    if not properties:
        return kept
    in_order = {
        "tags": kept.get("tags"),
        "properties": properties,
        "sensitive": kept.get("sensitive"),
    }
    return {name: value for name, value in in_order.items() if value}
