"""The broker's end of a recovering process: start, give a log, hear of it, end."""

from __future__ import annotations

import asyncio
import os
import pickle
from collections.abc import Callable
from contextlib import suppress

from odradek.storage.recovering.task import RecoveryTask

from .recovery_messages import Ending, FromProcess, Progress, RecoveryFailed
from .worker_process import WorkerProcess, command_of, start_process

COMMAND = command_of("recovery_process")


class RecoveryWorker(WorkerProcess):
    """A recovering process. Made by `start`; `end` must be called."""

    @classmethod
    async def start(cls) -> RecoveryWorker:
        """Raises OSError."""
        return cls(await start_process(COMMAND))

    async def recover(self, task: RecoveryTask, report: Callable[[str], None]) -> Ending:
        """How it went; also where the process has ended before."""
        self.send(task)
        try:
            while isinstance(message := await self._receive(), Progress):
                report(message.line)
        except (asyncio.IncompleteReadError, ConnectionError):
            return RecoveryFailed(f"the recovering process {await self.how_it_ended()}")
        return message

    async def _receive(self) -> FromProcess:
        message: FromProcess = pickle.loads(await self.hear())
        return message

    def stop_now(self) -> None:
        """End it, whatever it does; it touches no file any more when this returns. Any thread."""
        self.kill()
        with suppress(ChildProcessError):
            os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
