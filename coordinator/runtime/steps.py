"""A step of work that may take long: the work calls it again and again.

A step may serve other requests, see broker/turns/slices.py. The step of a decision may also raise
(group_decisions.py), so a decision changes nothing.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from heapq import merge
from typing import Any, TypeVar

T = TypeVar("T")

Step = Callable[[], object]

FEW = 20
# So many strings are sorted between two steps.
_SORTED_AT_ONCE = 1000


def no_step() -> None:
    """The step of work that is not interrupted."""


def stepping(items: Iterable[T], step: Step) -> Iterable[T]:
    """Iterate with a step before each item. A dict or a set may change in a step."""
    if step is no_step:
        return items
    return _stepping(items if isinstance(items, (list, range, Iterator)) else list(items), step)


def _stepping(items: Iterable[T], step: Step) -> Iterator[T]:
    for item in items:
        step()
        yield item


def stepping_if_many(items: Collection[T], step: Step) -> Iterable[T]:
    """As `stepping`, without a step if there are few items: it would cost more than the work."""
    return items if len(items) <= FEW else stepping(items, step)


def sorted_in_steps(texts: Iterable[str], step: Step) -> list[str]:
    """Sort strings. To sort 100,000 at once takes 40 ms."""
    unsorted = list(texts)
    if len(unsorted) <= _SORTED_AT_ONCE:
        return sorted(unsorted)
    parts = [
        sorted(unsorted[start : start + _SORTED_AT_ONCE])
        for start in stepping(range(0, len(unsorted), _SORTED_AT_ONCE), step)
    ]
    in_order = list(stepping(merge(*parts), step))
    free(step, unsorted, *parts)
    return in_order


def free(step: Step, *collections: list[Any] | set[Any] | dict[Any, Any]) -> None:
    """Empty the collections. To free thousands of objects takes as long as to make them."""
    for each in collections:
        drop = each.popitem if isinstance(each, dict) else each.pop
        for _ in stepping_if_many(range(len(each)), step):
            drop()
