"""The broker's end of a recovering process: start, give a log, hear of it, end."""

from __future__ import annotations

import asyncio
import logging
import os
import pickle
import time
from collections.abc import Callable

from odradek.storage.recovering.task import RecoveryTask

from .recovery_messages import Ending, FromProcess, Progress, RecoveryFailed
from .worker_process import WorkerProcess, command_of, start_process

logger = logging.getLogger("odradek.recovery")

COMMAND = command_of("recovery_process")
# So long may the event loop wait for a process that was killed. Most end within a millisecond.
STOP_SECONDS = 1.0
LOOK_EVERY_SECONDS = 0.001


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
        """End it, whatever it does; it touches no file any more when this returns. Any thread.

        Where it does not end soon it is left alone: no more than the system call that it is in
        can still be carried out.
        """
        self.kill()
        deadline = time.monotonic() + STOP_SECONDS
        while self._runs():
            if time.monotonic() > deadline:
                logger.error("the recovering process %d was killed and does not end", self.pid)
                return
            time.sleep(LOOK_EVERY_SECONDS)

    def _runs(self) -> bool:
        try:
            state = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
        except ChildProcessError:
            return False
        return state is None
