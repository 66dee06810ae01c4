"""Makes equal values one object.

Thousands of logs have the same settings. If they share the object, it stays in the processor's
cache while a request appends to all of them.
"""

from collections.abc import Hashable
from typing import TypeVar

T = TypeVar("T", bound=Hashable)

_known: dict[Hashable, Hashable] = {}


def shared(value: T) -> T:
    """The first value that was equal. It is kept for ever, so there must be few different ones."""
    return _known.setdefault(value, value)  # type: ignore[return-value] # equal, so of its type
