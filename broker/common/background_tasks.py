"""Tasks that run to their end, even if nothing waits for them any more."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class BackgroundTasks:
    """The running tasks. `running` keeps the garbage collector from ending them.

    `is_closed`: nobody waits for tasks any more, so none may be started.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.running: set[asyncio.Task[Any]] = set()
        self.is_closed = False
        self._loop = loop

    def start(self, work: Coroutine[None, None, T]) -> asyncio.Task[T]:
        """Run a coroutine as a task."""
        task = self._loop.create_task(work)
        self.running.add(task)
        task.add_done_callback(self.running.discard)
        return task

    async def wait(self) -> None:
        """Return when all tasks have ended, with those that they started."""
        while self.running:
            await asyncio.wait(self.running)

    async def close(self) -> None:
        """Like `wait`, at the end."""
        await self.wait()
        self.is_closed = True
