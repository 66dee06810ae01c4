"""What the broker does by the clock: retention, checkpoints, flushes, clean-up of deleted files.

Each chore is a function of the time that runs to its end on the loop or hands its waiting to the
disk threads; a chore that fails is logged and tried again at its next turn. Chores hold still while
the broker stops.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

logger = logging.getLogger("odradek.housekeeping")


@dataclass(frozen=True, slots=True, kw_only=True)
class Chore:
    """Something to do every so often; `run` may be plain or a coroutine function."""

    name: str
    every_ms: int
    first_after_ms: int
    run: Callable[[], object]


class Housekeeping:
    """Runs the chores, each in its own rhythm."""

    def __init__(self, chores: list[Chore]) -> None:
        self._tasks = [asyncio.ensure_future(self._repeat(chore)) for chore in chores]

    async def _repeat(self, chore: Chore) -> None:
        await asyncio.sleep(chore.first_after_ms / 1000)
        while True:
            try:
                result = chore.run()
                if isinstance(result, Awaitable):
                    await result
            except asyncio.CancelledError:
                raise
            except Exception:
                # The root of a background task: the next turn may succeed.
                logger.exception("%s failed", chore.name)
            await asyncio.sleep(chore.every_ms / 1000)

    async def close(self) -> None:
        """Stop all chores; one that is under way is cancelled at its next wait."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
