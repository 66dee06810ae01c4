"""The broker's end of a cleaning process: start, give a task, hear of it, end.

A process that is no longer wanted is killed, at whatever it is: it holds nothing. When the broker
dies first, its pipes close, and that ends the process.
"""

from __future__ import annotations

import asyncio
import pickle
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from contextlib import suppress

from .cleaner_messages import (
    LENGTH,
    CleanerSettings,
    CleaningFailed,
    FromProcess,
    Ready,
    ToProcess,
    Unusable,
    pack,
)

# -P: what lies in the current directory is not looked at when modules are imported.
COMMAND = (sys.executable, "-P", "-m", f"{__package__}.cleaner_process")

START_SECONDS = 60.0


class WorkerLostError(Exception):
    """The process has ended, or no longer says anything; the message says how."""


class CleanerWorker:
    """A cleaning process. Made by `start`; `end` must be called."""

    def __init__(self, process: Process, settings: CleanerSettings) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.settings = settings
        self._process = process
        self._to = process.stdin
        self._from = process.stdout

    @classmethod
    async def start(
        cls, settings: CleanerSettings, command: Sequence[str] = COMMAND
    ) -> CleanerWorker:
        """It is ready for a task. Raises WorkerLostError: it did not start."""
        try:
            process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE)
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

    @property
    def is_alive(self) -> bool:
        return self._process.returncode is None

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, message: ToProcess) -> None:
        """Say something; waits for nothing. To one who is gone nothing is said."""
        if self.is_alive:
            self._to.write(pack(message))

    async def receive(self, patience_seconds: float) -> FromProcess:
        """What it says next. Raises WorkerLostError, also after so long a silence."""
        try:
            async with asyncio.timeout(patience_seconds):
                (length,) = LENGTH.unpack(await self._from.readexactly(LENGTH.size))
                content = await self._from.readexactly(length)
        except TimeoutError:
            reason = f"the cleaning process has been silent for {patience_seconds:g} seconds"
            raise WorkerLostError(reason) from None
        except (asyncio.IncompleteReadError, ConnectionError):
            raise WorkerLostError(f"the cleaning process {await self._how_it_ended()}") from None
        try:
            message: FromProcess = pickle.loads(content)
        except Exception as error:  # noqa: BLE001  unpickling may raise anything
            return CleaningFailed(f"the cleaning process made no sense: {error!r}")
        return message

    async def _how_it_ended(self) -> str:
        self.kill()  # it may only have closed its end
        code = await self._process.wait()
        return f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"

    def kill(self) -> None:
        """End it at once; `end` waits for that."""
        if self.is_alive:
            with suppress(ProcessLookupError):
                self._process.kill()

    async def end(self) -> None:
        """It is gone when this returns. Twice is harmless."""
        self.kill()
        self._to.close()
        await self._process.wait()
        with suppress(ConnectionError):
            await self._to.wait_closed()
