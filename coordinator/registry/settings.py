"""Configurations and modes: which changes of a subject are allowed.

A configuration is kept as the JSON object of its record, without `subject`; FIELDS has its fields
in the order of the record. A request changes only the fields that it has; a field that is null is
removed. What a subject does not have itself comes from its context, from the context `.__GLOBAL`,
and last from the default (see state.config_in_scope).

A mode says what may be written:

| mode              | new schemas | schemas with ids | deletes, configuration |
| READWRITE         | yes         | no               | yes                    |
| READONLY          | no          | no               | no                     |
| READONLY_OVERRIDE | no          | no               | no                     |
| IMPORT            | no          | yes, unchecked   | yes                    |
| FORWARD           | no          | yes, unchecked   | yes                    |
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from .errors import invalid_compatibility_level, invalid_mode, invalid_schema
from .schemas import Json, stored_metadata, stored_rule_set


class Level(StrEnum):
    """What a new schema must be able to read, and be read by.

    BACKWARD: it reads data of the latest version. FORWARD: the latest version reads its data. FULL:
    both. _TRANSITIVE: the same for all versions.
    """

    NONE = "NONE"
    BACKWARD = "BACKWARD"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FORWARD = "FORWARD"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL = "FULL"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"


class Mode(StrEnum):
    READWRITE = "READWRITE"
    READONLY = "READONLY"
    READONLY_OVERRIDE = "READONLY_OVERRIDE"
    IMPORT = "IMPORT"
    FORWARD = "FORWARD"

    @property
    def is_read_only(self) -> bool:
        return self in (Mode.READONLY, Mode.READONLY_OVERRIDE)

    @property
    def is_import(self) -> bool:
        return self in (Mode.IMPORT, Mode.FORWARD)


FIELDS = (
    "alias",
    "aliasForDeks",
    "normalize",
    "validateFields",
    "validateNewSchemas",
    "validateRules",
    "compatibilityLevel",
    "compatibilityPolicy",
    "compatibilityGroup",
    "defaultMetadata",
    "overrideMetadata",
    "defaultRuleSet",
    "overrideRuleSet",
)
_BOOLEANS = ("normalize", "validateFields", "validateNewSchemas", "validateRules")
_TEXTS = ("alias", "aliasForDeks", "compatibilityGroup")
_METADATA = ("defaultMetadata", "overrideMetadata")
_RULE_SETS = ("defaultRuleSet", "overrideRuleSet")
_POLICIES = ("STRICT", "LENIENT")  # LOGICAL needs Flink's types: refused

# What a subject takes from the top level when it has a configuration, but not this field.
_INHERITED = (*_BOOLEANS, "compatibilityPolicy", "compatibilityGroup")


def level_named(name: Any) -> Level:
    """Raises INVALID_COMPATIBILITY_LEVEL."""
    try:
        return Level(str(name).upper())
    except ValueError:
        raise invalid_compatibility_level() from None


def mode_named(name: Any) -> Mode:
    """Raises INVALID_MODE."""
    try:
        return Mode(str(name).upper())
    except ValueError:
        raise invalid_mode() from None


def changed_config(old: Json | None, request: Mapping[str, Any]) -> Json:
    """Return a configuration with the changes of a request.

    The request may call the level `compatibility`, as requests of PUT /config do. Raises
    INVALID_COMPATIBILITY_LEVEL, INVALID_RULE_SET, and INVALID_SCHEMA for a field of another type.
    """
    changes = dict(request)
    if "compatibility" in changes:
        changes["compatibilityLevel"] = changes.pop("compatibility")
    values = dict(old or {})
    for name in FIELDS:
        if name in changes:
            values[name] = _checked(name, changes[name])
    return in_order(values)


def in_order(config: Mapping[str, Any]) -> Json:
    """Return the fields that have values, in the order of the record."""
    return {name: config[name] for name in FIELDS if config.get(name) not in (None, "")}


def with_inherited(config: Json, top: Json) -> Json:
    """Return a subject's configuration with what it takes from the top level's."""
    inherited = {name: top[name] for name in _INHERITED if name in top}
    return in_order({**inherited, **config})


def _checked(name: str, value: Any) -> Any:
    if value is None:
        return None
    if name == "compatibilityLevel":
        return level_named(value).value
    if name == "compatibilityPolicy":
        if str(value).upper() not in _POLICIES:
            raise invalid_schema(f"compatibilityPolicy can only be {' or '.join(_POLICIES)}")
        return str(value).upper()
    if name in _METADATA:
        return stored_metadata(value)
    if name in _RULE_SETS:
        return stored_rule_set(value)
    if not isinstance(value, bool if name in _BOOLEANS else str):
        raise invalid_schema(f"{name} cannot be {value!r}")
    return value
