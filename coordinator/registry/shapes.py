"""The types of the JSON that comes from outside: records of `_schemas`, and bodies of requests.

Metadata, rule sets and configurations are kept as JSON objects (`plain`): with the fields that
are named here, in this order, without those that are null. Unknown fields are left out.
"""

from typing import Annotated, Any, TypeVar

import msgspec

MAX_INT32 = (1 << 31) - 1
Int32 = Annotated[int, msgspec.Meta(ge=-MAX_INT32 - 1, le=MAX_INT32)]
Count = Annotated[int, msgspec.Meta(ge=1, le=MAX_INT32)]
Id = Annotated[int, msgspec.Meta(ge=0, le=MAX_INT32)]

S = TypeVar("S", bound=msgspec.Struct)


class Metadata(msgspec.Struct, omit_defaults=True):
    tags: dict[str, list[str]] | None = None
    properties: dict[str, str] | None = None
    sensitive: list[str] | None = None


class Rule(msgspec.Struct, omit_defaults=True):
    name: str
    doc: str | None = None
    kind: str | None = None
    mode: str | None = None
    type: str | None = None
    tags: list[str] | None = None
    params: dict[str, str] | None = None
    expr: str | None = None
    onSuccess: str | None = None  # noqa: N815
    onFailure: str | None = None  # noqa: N815
    disabled: bool | None = None


class RuleSet(msgspec.Struct, omit_defaults=True, rename="camel"):
    migration_rules: list[Rule] | None = None
    domain_rules: list[Rule] | None = None
    encoding_rules: list[Rule] | None = None
    enable_at: str | None = None


class Reference(msgspec.Struct):
    name: str
    subject: str
    version: Int32


class Key(msgspec.Struct):
    keytype: str
    subject: str | None = None
    version: Count | None = None
    magic: int | None = None
    context: str | None = None
    tenant: str | None = None


class SchemaValue(msgspec.Struct, rename="camel"):
    id: Id
    schema: str
    schema_type: str | None = None
    references: list[Reference] | None = None
    metadata: Metadata | None = None
    rule_set: RuleSet | None = None
    md5: str | None = None
    deleted: bool | None = None


class ConfigValue(msgspec.Struct, omit_defaults=True, rename="camel"):
    alias: str | None = None
    alias_for_deks: str | None = None
    normalize: bool | None = None
    validate_fields: bool | None = None
    validate_new_schemas: bool | None = None
    validate_rules: bool | None = None
    compatibility_level: str | None = None
    compatibility: str | None = None  # what releases before 4.1 call the level
    compatibility_policy: str | None = None
    compatibility_group: str | None = None
    default_metadata: Metadata | None = None
    override_metadata: Metadata | None = None
    default_rule_set: RuleSet | None = None
    override_rule_set: RuleSet | None = None


class ModeValue(msgspec.Struct):
    mode: str


class DeletedVersion(msgspec.Struct):
    version: Int32


def decoded(stored: bytes, shape: type[S]) -> S:
    """Decode JSON of a shape. A lone surrogate is not a character. Raises ValueError."""
    try:
        return msgspec.json.decode(stored, type=shape)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def plain(shape: msgspec.Struct | None) -> dict[str, Any] | None:
    """Return a decoded object as it is kept."""
    found: dict[str, Any] | None = msgspec.to_builtins(shape)
    return found
