"""Messages made of dictionaries: zeros and empty lists for all that is required and not given."""

from typing import Any

import msgspec

from odradek.protocol.declaration import ListOf, Wire, present_fields


def build(declared: type[Any], version: int, **values: Any) -> Any:
    """A message or struct; nested structs are given as dictionaries."""
    given = {}
    for field, _ in present_fields(declared, version):
        if field.name in values:
            given[field.name] = _value(field.wire, version, values.pop(field.name))
        elif field.default is msgspec.NODEFAULT:
            given[field.name] = _zero(field.wire, version)
    assert not values, f"{declared.__name__} v{version} has no {', '.join(values)}"
    return declared(**given)


def _value(wire: Wire, version: int, value: Any) -> Any:
    if isinstance(wire, ListOf) and value is not None:
        return [_value(wire.item, version, item) for item in value]
    if isinstance(wire, type) and isinstance(value, dict):
        return build(wire, version, **value)
    return value


def _zero(wire: Wire, version: int) -> Any:
    if isinstance(wire, ListOf):
        return []
    return build(wire, version) if isinstance(wire, type) else wire.zero
