"""Pages of long lists.

A list is sorted in parts, which are merged as far as the page needs: nothing here takes long
between two turns of the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Annotated, Any, TypeVar

from msgspec import Meta, field

from odradek.coordinator.runtime.steps import in_order

from .calls import Call
from .view import View

T = TypeVar("T")

MAX_LIMIT = 1000
MAX_FIRST = 1 << 53  # the numbers that are exact in every language


# Where a page begins.
First = Annotated[int, Meta(ge=0, le=MAX_FIRST)]


class Page(View):
    """A page of a list."""

    first: First = field(default=0, name="from")
    limit: Annotated[int, Meta(ge=1, le=MAX_LIMIT)] = 100


class PageRequest(Page):
    """A page of a list: those items whose name contains `search`, in any case of letters."""

    search: str = ""

    def matches(self, name: str) -> bool:
        """Whether a name contains what is searched for."""
        return self.search.lower() in name.lower()


def page_of(
    call: Call,
    items: Sequence[T],
    key: Callable[[T], Any],
    request: Page,
    *,
    descending: bool = False,
) -> list[T]:
    """The items of a page, if all were sorted by their keys."""
    found = in_order(items, call.slices.step, key=key, reverse=descending)
    return list(islice(found, request.first, request.first + request.limit))
