"""The formats of a registry's schemas, by the names that users write."""

from typing import Literal, get_args

RegistryFormat = Literal["avro", "protobuf", "json-schema"]
REGISTRY_FORMATS: tuple[RegistryFormat, ...] = get_args(RegistryFormat)


class SchemaError(ValueError):
    """A schema of which no columns can be made. The message names the field."""
