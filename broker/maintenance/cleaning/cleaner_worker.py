"""The broker's end of a cleaning process: start, give a task, hear of it, end."""

from __future__ import annotations

import asyncio
import pickle
from asyncio.subprocess import Process
from collections.abc import Sequence

from odradek.broker.maintenance.workers.cleaner_messages import (
    CleanerSettings,
    CleaningFailed,
    FromProcess,
    Ready,
    Unusable,
)
from odradek.broker.maintenance.workers.worker_process import (
    WorkerProcess,
    command_of,
    start_process,
)

COMMAND = command_of("cleaner_process")

START_SECONDS = 60.0


class WorkerLostError(Exception):
    """The process has ended, or no longer says anything; the message says how."""


class CleanerWorker(WorkerProcess):
    """A cleaning process. Made by `start`; `end` must be called."""

    def __init__(self, process: Process, settings: CleanerSettings) -> None:
        super().__init__(process)
        self.settings = settings

    @classmethod
    async def start(
        cls, settings: CleanerSettings, command: Sequence[str] = COMMAND
    ) -> CleanerWorker:
        """It is ready for a task. Raises WorkerLostError: it did not start."""
        try:
            process = await start_process(command)
        except OSError as error:
            raise WorkerLostError(f"{command[0]} cannot be started: {error}") from error
        worker = cls(process, settings)
        try:
            worker.send(settings)
            answer = await worker.receive(START_SECONDS)
            if isinstance(answer, Ready):
                return worker
            reason = answer.reason if isinstance(answer, Unusable) else repr(answer)
            raise WorkerLostError(f"the cleaning process did not start: {reason}")
        except BaseException:
            await worker.end()
            raise

    async def receive(self, patience_seconds: float) -> FromProcess:
        """What it says next. Raises WorkerLostError, also after so long a silence."""
        try:
            async with asyncio.timeout(patience_seconds):
                content = await self.hear()
        except TimeoutError:
            reason = f"the cleaning process has been silent for {patience_seconds:g} seconds"
            raise WorkerLostError(reason) from None
        except (asyncio.IncompleteReadError, ConnectionError):
            raise WorkerLostError(f"the cleaning process {await self.how_it_ended()}") from None
        try:
            message: FromProcess = pickle.loads(content)
        except Exception as error:  # noqa: BLE001  unpickling may raise anything
            return CleaningFailed(f"the cleaning process made no sense: {error!r}")
        return message
