"""Requests about many things, in parts: odradek refuses a request with more than 100,000 items."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")

ITEMS_OF_A_REQUEST = 10_000


def request_parts(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """Divide the items into as many as a request may have."""
    for start in range(0, len(items), ITEMS_OF_A_REQUEST):
        yield items[start : start + ITEMS_OF_A_REQUEST]
