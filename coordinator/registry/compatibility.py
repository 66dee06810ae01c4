"""Which versions of a subject a new schema is compared with. schema_work compares them."""

from collections.abc import Iterable, Sequence

from .schema_work import Check, Form, Reserved
from .schemas import Json, SchemaVersion
from .settings import Level

_RESERVED = "confluent:reserved"


def check_of(form: Form, config: Json) -> Check | None:
    """Return the comparison that a configuration asks for, without versions, or None."""
    level = Level(config["compatibilityLevel"])
    is_lenient = config.get("compatibilityPolicy") == "LENIENT"
    return None if level is Level.NONE else Check(form, level, is_lenient)


def compared_versions(
    metadata: Json | None, previous: Iterable[SchemaVersion], config: Json
) -> list[SchemaVersion]:
    """Return the versions to compare with, the latest first.

    `previous`: in rising order. Of a compatibility group, only versions that have the new schema's
    value in this property of their metadata count.
    """
    group = config.get("compatibilityGroup")
    versions = [
        version
        for version in previous
        if group is None or _property(version.schema.metadata, group) == _property(metadata, group)
    ]
    is_transitive = Level(config["compatibilityLevel"]).endswith("TRANSITIVE")
    return versions[::-1] if is_transitive else versions[-1:]


def reserved_check_of(
    form: Form, metadata: Json | None, previous: Sequence[SchemaVersion], config: Json
) -> Reserved | None:
    """Return the check of reserved fields that a configuration asks for; None if there is none."""
    fields = _property(metadata, _RESERVED) or ""
    before = _property(previous[-1].schema.metadata, _RESERVED) or "" if previous else ""
    is_asked_for = config.get("validateFields") and (fields or before)
    return Reserved(form, fields, before) if is_asked_for else None


def _property(metadata: Json | None, name: str) -> str | None:
    value: str | None = (metadata or {}).get("properties", {}).get(name)
    return value
