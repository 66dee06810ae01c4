"""How a long decision gives way to others, in code that knows no event loop.

`sliced(items)` iterates over items, and others may run before each of them. The caller decides what
they are kept from meanwhile. See broker/turns/slices.py.
"""

from collections.abc import Iterable
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Sliced(Protocol):
    """Iterates over items and may give way before each of them."""

    def __call__(self, items: Iterable[T], /) -> Iterable[T]: ...


def at_once(items: Iterable[T], /) -> Iterable[T]:
    """Iterate without giving way."""
    return items


def free(sliced: Sliced, *collections: list[Any] | dict[Any, Any]) -> None:
    """Empty the collections. To free thousands of objects takes as long as to make them."""
    for each in collections:
        drop = each.pop if isinstance(each, list) else each.popitem
        for _ in sliced(range(len(each))):
            drop()
