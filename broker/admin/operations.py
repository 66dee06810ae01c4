"""Runs changes of the metadata, one decision at a time, and to their end.

A change is decided and committed, and then done: logs are created, settings applied. It must not
end in between, also if the client that asked for it disconnects. A change of thousands of topics is
made in slices (broker/turns/slices.py). While one is decided, no other may change what it depends
on.
"""

from __future__ import annotations

import asyncio
from typing import TypeVar

from odradek.broker.common.background_tasks import BackgroundTasks
from odradek.broker.turns.slices import Make, SliceRunner

T = TypeVar("T")


class Operations:
    """The running changes. `decision_lock` is held while the controller decides in slices."""

    def __init__(self, loop: asyncio.AbstractEventLoop, runner: SliceRunner) -> None:
        self.decision_lock = asyncio.Lock()
        self._tasks = BackgroundTasks(loop)
        self._runner = runner

    async def run(self, make: Make[T]) -> T:
        """Wait for a change, which runs to its end even if the caller is cancelled."""
        return await asyncio.shield(self._tasks.start(self._in_slices(make)))

    async def _in_slices(self, make: Make[T]) -> T:
        return await self._runner.run(make)

    async def wait(self) -> None:
        """Return when all changes have ended."""
        await self._tasks.wait()
