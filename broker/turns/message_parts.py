"""Takes a large message apart, so that its objects can be freed in slices.

Python frees a message at once when the last reference to it goes away, and that takes as long as
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
    _collect([message], parts, slices)
    del parts[-1]  # the message itself
    return parts


def _collect(items: list[Any], parts: Parts, slices: Slices) -> None:
    """Add the items of an array, after those of the arrays in them: parts are freed from the end.

    An item that is freed before frees its array, but not what a part has of it.
    """
    names = _names_of_inner(items[0])
    for start in range(0, len(items), _ITEMS_OF_A_PART):
        part = items[start : start + _ITEMS_OF_A_PART]
        for name in names:
            for inner in [value for item in part if (value := getattr(item, name))]:
                _collect(inner if inner.__class__ is list else [inner], parts, slices)
        parts.append(part)
        slices.step()


def _names_of_inner(item: Any) -> list[str]:
    """The fields that have arrays, or structs with arrays, in this item, and so in all others."""
    names = item.__struct_fields__ if isinstance(item, Struct) else ()
    return [name for name in names if _has_arrays(getattr(item, name))]


def _has_arrays(value: Any) -> bool:
    return value.__class__ is list or (isinstance(value, Struct) and bool(_names_of_inner(value)))
