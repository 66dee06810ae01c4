"""Which versions of a subject a new schema is compared with. schema_work compares them."""

from collections.abc import Callable, Iterable, Sequence

from .schema_work import Check, Form, OldVersion, Reserved
from .schemas import Json, SchemaVersion
from .settings import Level

_RESERVED = "confluent:reserved"


def check_of(
    form: Form,
    metadata: Json | None,
    previous: Iterable[SchemaVersion],
    config: Json,
    form_of: Callable[[SchemaVersion], Form],
) -> Check | None:
    """Return the comparison that a configuration asks for; None if there is none.

    `previous`: in rising order. Of a compatibility group, only versions that have the new schema's
    value in this property of their metadata count. Raises InvalidSchemaError.
    """
    level = Level(config["compatibilityLevel"])
    if level is Level.NONE:
        return None
    group = config.get("compatibilityGroup")
    versions = [
        version
        for version in previous
        if group is None or _property(version.schema.metadata, group) == _property(metadata, group)
    ]
    if not level.endswith("TRANSITIVE"):
        versions = versions[-1:]
    if not versions:
        return None
    return Check(
        form,
        tuple(OldVersion(version.version, form_of(version)) for version in versions),
        level,
        is_lenient=config.get("compatibilityPolicy") == "LENIENT",
    )


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
