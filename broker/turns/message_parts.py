"""Takes a large message apart, so that its objects can be freed in slices.

Python frees a message when the last reference to it goes, all at once, and that takes as long as
making it. So a caller gets the parts, drops the message, and calls `steps.free`, which drops one
part in each step.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from .slices import Slices

_ITEMS_OF_A_PART = 256

Parts = list[list[Any]]


def parts_of(message: Struct, slices: Slices) -> Parts:
    """Return lists of bounded length with the items of all arrays in a message."""
    parts: Parts = []
    _collect(message, parts, slices)
    return parts


def _collect(struct: Struct, parts: Parts, slices: Slices) -> None:
    for name in struct.__struct_fields__:
        value = getattr(struct, name)
        if isinstance(value, Struct):
            _collect(value, parts, slices)
        if value.__class__ is not list or not value:
            continue
        if isinstance(value[0], Struct) and _has_lists(value[0]):
            for item in slices.of(value):
                _collect(item, parts, slices)
        for start in range(0, len(value), _ITEMS_OF_A_PART):
            parts.append(value[start : start + _ITEMS_OF_A_PART])
            slices.step()


def _has_lists(struct: Struct) -> bool:
    return any(
        isinstance(getattr(struct, name), (list, Struct)) for name in struct.__struct_fields__
    )
