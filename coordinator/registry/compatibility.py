"""Which versions of a subject a new schema is compared with. schema_work.Check compares them."""

from collections.abc import Callable, Iterable

from .schema_work import Check, Form, OldVersion
from .schemas import Json, SchemaVersion
from .settings import Level


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
        if group is None
        or _group_value(version.schema.metadata, group) == _group_value(metadata, group)
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
        validates_fields=bool(config.get("validateFields")),
    )


def _group_value(metadata: Json | None, group: str) -> str | None:
    value: str | None = (metadata or {}).get("properties", {}).get(group)
    return value
