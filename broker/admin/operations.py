"""Runs changes of the metadata. Each change that has begun is completed.

A change has two parts. First the controller decides it and appends its records to the metadata log.
Then the broker applies it: it creates logs, or changes settings. A change that is in the log and
not applied would leave, for example, a topic without logs. So a change continues even if the client
that asked for it disconnects.

A change of thousands of topics takes long. It runs in slices (broker/turns/slices.py), between
which the event loop serves other requests. One of these requests could change the metadata that an
unfinished decision has read. `decision_lock` prevents that.
"""

from __future__ import annotations

import asyncio
from typing import TypeVar

from odradek.broker.common.background_tasks import BackgroundTasks
from odradek.broker.turns.slices import Make, SliceRunner

T = TypeVar("T")


class Operations:
    """The running changes.

    The caller of the controller holds `decision_lock` from the start of a decision until its
    records are appended, so only one decision is made at a time.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, runner: SliceRunner) -> None:
        self.decision_lock = asyncio.Lock()
        self._tasks = BackgroundTasks(loop)
        self._runner = runner

    async def run(self, make: Make[T]) -> T:
        """Run the coroutine that `make` returns, in slices, and return its result.

        If the caller is cancelled, only its waiting ends. The change continues.
        """
        return await asyncio.shield(self._tasks.start(self._run_in_slices(make)))

    async def _run_in_slices(self, make: Make[T]) -> T:
        """Make a coroutine of the runner's task: `BackgroundTasks.start` takes only coroutines."""
        return await self._runner.run(make)

    async def wait(self) -> None:
        """Return when no change runs any more."""
        await self._tasks.wait()
