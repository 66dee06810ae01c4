"""Cleanups that take long: they give way like other work, and are done to their end."""

import asyncio
from collections.abc import Collection, Iterator
from typing import TypeVar

from odradek.coordinator.runtime.steps import Step

T = TypeVar("T")


def stepping_to_end(items: Collection[T], step: Step) -> Iterator[T]:
    """Iterate with a step before each item, also after the work was cancelled at one of them.

    The cancellation is raised after the last item. Nobody else may change the collection.
    """
    cancelled: asyncio.CancelledError | None = None
    for item in items:
        try:
            step()
        except asyncio.CancelledError as error:
            cancelled = error
        yield item
    if cancelled is not None:
        raise cancelled
