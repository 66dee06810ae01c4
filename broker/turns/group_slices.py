"""Slices for decisions of the group coordinator. See coordinator/groups/group_decisions.py."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from time import monotonic
from typing import Any, TypeVar

from odradek.coordinator.runtime.steps import Step, TakesLongError

from .slices import SliceRunner

T = TypeVar("T")

# How long a decision may run before it is made in slices.
AT_ONCE_S = 0.001


class GroupSlices:
    """Runs decisions in the slices of a broker."""

    def __init__(self, runner: SliceRunner) -> None:
        self._runner = runner
        self._ends_s = 0.0  # of the work that runs at once; there is one at a time
        self._bound_limit = self._limit
        self._running: set[asyncio.Task[Any]] = set()

    def limited(self) -> Step:
        """Return a step that raises TakesLongError when the time for work at once is over."""
        self._ends_s = monotonic() + AT_ONCE_S
        return self._bound_limit

    def _limit(self) -> None:
        if monotonic() >= self._ends_s:
            raise TakesLongError

    def run(self, work: Callable[[Step], Coroutine[Any, Any, T]]) -> Awaitable[T]:
        """Begin work that gives way at its steps.

        It continues if nobody waits for it any more: a client's request is decided even if its
        connection closes meanwhile.
        """
        running = self._runner.run(lambda slices: work(slices.step))
        self._running.add(running)
        running.add_done_callback(self._running.discard)
        return asyncio.shield(running)
