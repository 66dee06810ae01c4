"""Pages of long lists.

A list is sorted in parts of PART items, which are merged as far as the page needs: nothing here
takes long between two turns of the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import merge
from itertools import islice
from typing import Annotated, Any, TypeVar

from msgspec import Meta, field

from .calls import Call
from .view import View

T = TypeVar("T")

PART = 500
MAX_LIMIT = 1000
MAX_FIRST = 1 << 53  # the numbers that are exact in every language


# Where a page begins.
First = Annotated[int, Meta(ge=0, le=MAX_FIRST)]


class PageRequest(View):
    """A page of a list: those items whose name contains `search`, in any case of letters."""

    first: First = field(default=0, name="from")
    limit: Annotated[int, Meta(ge=1, le=MAX_LIMIT)] = 100
    search: str = ""

    def matches(self, name: str) -> bool:
        """Whether a name contains what is searched for."""
        return self.search.lower() in name.lower()


def page_of(
    call: Call,
    items: Sequence[T],
    key: Callable[[T], Any],
    request: PageRequest,
    *,
    descending: bool = False,
) -> list[T]:
    """The items of a page, if all were sorted by their keys."""
    parts = [
        sorted(items[start : start + PART], key=key, reverse=descending)
        for start in call.sliced(iter(range(0, len(items), PART)))
    ]
    merged = call.sliced(merge(*parts, key=key, reverse=descending))
    return list(islice(merged, request.first, request.first + request.limit))
