"""Makes equal values one object.

Thousands of logs have the same settings. If they share the object, it stays in the processor's
cache while a request appends to all of them.
"""

import functools
from collections.abc import Hashable
from typing import TypeVar, cast

T = TypeVar("T", bound=Hashable)

_VALUES_KEPT = 1024


def shared(value: T) -> T:
    """The first value that was equal, of those that were asked for last."""
    return cast(T, _first_equal(value))


@functools.lru_cache(_VALUES_KEPT)
def _first_equal(value: Hashable) -> Hashable:
    return value
