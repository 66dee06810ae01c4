"""Tasks that no request waits for; the broker waits for them before it closes."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine


class BackgroundTasks:
    """The tasks that run. Holding them keeps the garbage collector from ending them."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._running: set[asyncio.Task[None]] = set()

    @property
    def is_idle(self) -> bool:
        """Whether no task runs."""
        return not self._running

    def start(self, work: Coroutine[None, None, None]) -> None:
        """Run a coroutine as a task."""
        task = self._loop.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def wait(self) -> None:
        """Return when all tasks have ended, with those that they started."""
        while self._running:
            await asyncio.wait(self._running)
