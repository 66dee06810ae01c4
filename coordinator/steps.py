"""A step of work that may take long: the work calls it again and again.

A step may serve other requests, or raise, so whatever calls it changes nothing.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

Step = Callable[[], object]


def no_step() -> None:
    """The step of work that is not interrupted."""


def stepping(items: Iterable[T], step: Step) -> Iterator[T]:
    """Iterate with a step before each item."""
    for item in items:
        step()
        yield item
