"""The broker's end of a recovering process: start, give a log, hear of it, end."""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable
from contextlib import suppress

from ..storage.found_log import RecoveryTask
from .recovery_messages import LENGTH, Ending, FromProcess, Progress, RecoveryFailed, pack

# -P: what lies in the current directory is not looked at when modules are imported.
COMMAND = (sys.executable, "-P", "-m", f"{__package__}.recovery_process")


class RecoveryWorker:
    """A recovering process. Made by `start`; `end` must be called."""

    def __init__(self, process: Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._to = process.stdin
        self._from = process.stdout

    @classmethod
    async def start(cls) -> RecoveryWorker:
        """Raises OSError."""
        return cls(await asyncio.create_subprocess_exec(*COMMAND, stdin=PIPE, stdout=PIPE))

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process.returncode is None

    async def recover(self, task: RecoveryTask, report: Callable[[str], None]) -> Ending:
        """How it went; also where the process has ended before."""
        self._to.write(pack(task))
        try:
            while isinstance(message := await self._receive(), Progress):
                report(message.line)
        except (asyncio.IncompleteReadError, ConnectionError):
            self._kill()  # it may only have closed its end
            code = await self._process.wait()
            how = f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"
            return RecoveryFailed(f"the recovering process {how}")
        return message

    async def _receive(self) -> FromProcess:
        (length,) = LENGTH.unpack(await self._from.readexactly(LENGTH.size))
        message: FromProcess = pickle.loads(await self._from.readexactly(length))
        return message

    def stop_now(self) -> None:
        """End it, whatever it does; it touches no file any more when this returns. Any thread."""
        self._kill()
        with suppress(ChildProcessError):
            os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)

    def _kill(self) -> None:
        if self.is_alive:
            with suppress(ProcessLookupError):
                os.kill(self._process.pid, signal.SIGKILL)

    async def end(self) -> None:
        """It is gone when this returns. Twice is harmless."""
        self._kill()
        self._to.close()
        await self._process.wait()
        with suppress(ConnectionError):
            await self._to.wait_closed()
