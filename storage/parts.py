"""Divides work on many things into parts of half a millisecond, between which others are served."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

ITEMS_OF_A_PART = 1_000


def in_parts(items: Iterable[T]) -> Iterator[list[T]]:
    """Copy the items, and yield the copy in parts. What they come from may change in between."""
    return _taken_from(list(items))


def _taken_from(left: list[T]) -> Iterator[list[T]]:
    while left:  # it gets shorter: freeing it as a whole would take milliseconds, too
        part = left[:ITEMS_OF_A_PART]
        del left[:ITEMS_OF_A_PART]
        yield part
