"""Steps: how work that may take long lets other requests be served meanwhile.

Such work takes a function `step` as an argument, and calls it between its items. If the work has
had the event loop for long enough, `step` returns only after other requests were served: the work
gives way (broker/turns/slices.py). So what the work has read before a step may have changed after
it. The step of a decision may also raise TakesLongError, and end the decision, which is then made
again, in slices (group_decisions.py). So a decision must not change anything.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from heapq import merge
from typing import Any, TypeVar

T = TypeVar("T")

Step = Callable[[], object]  # see the module's docstring

FEW = 20
# The number of items that are sorted between two steps.
_SORTED_AT_ONCE = 1000


class TakesLongError(Exception):
    """The work has taken more than it may take at once."""


def no_step() -> None:
    """The step of work that is not interrupted."""


def stepping(items: Iterable[T], step: Step) -> Iterable[T]:
    """Iterate, and call `step` before each item: other requests may be served in this call.

    A dict or a set is copied first, because these requests may change it.
    """
    if step is no_step:
        return items
    return _stepping(items if isinstance(items, (list, range, Iterator)) else list(items), step)


def _stepping(items: Iterable[T], step: Step) -> Iterator[T]:
    for item in items:
        step()
        yield item


def stepping_if_many(items: Collection[T], step: Step) -> Iterable[T]:
    """Like `stepping`, without steps if there are few items: they would cost more than the work."""
    return items if len(items) <= FEW else stepping(items, step)


def step_of_items(step: Step) -> Callable[[int], None]:
    """Return the step of a codec of the protocol, which is told how many items were handled."""

    def take_step(_items: int) -> None:
        step()

    return take_step


def _itself(item: Any) -> Any:
    return item


def in_order(
    items: Sequence[T],
    step: Step,
    *,
    key: Callable[[T], Any] = _itself,
    reverse: bool = False,
) -> Iterator[T]:
    """Iterate over the items in the order of `sorted`, which takes 40 ms for 100,000 strings."""
    parts = [
        sorted(items[start : start + _SORTED_AT_ONCE], key=key, reverse=reverse)
        for start in stepping(range(0, len(items), _SORTED_AT_ONCE), step)
    ]
    yield from stepping(merge(*parts, key=key, reverse=reverse), step)
    free(step, *parts)


def sorted_in_steps(texts: Iterable[str], step: Step) -> list[str]:
    """Sort strings."""
    unsorted = list(texts)
    if len(unsorted) <= _SORTED_AT_ONCE:
        return sorted(unsorted)
    found = list(in_order(unsorted, step))
    free(step, unsorted)
    return found


def free(step: Step, *collections: list[Any] | set[Any] | dict[Any, Any]) -> None:
    """Empty the collections. Freeing thousands of objects takes as long as making them."""
    for each in collections:
        drop = each.popitem if isinstance(each, dict) else each.pop
        for _ in stepping_if_many(range(len(each)), step):
            drop()
