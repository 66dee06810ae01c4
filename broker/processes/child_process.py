"""The broker's end of its worker processes: start, send, receive, end.

A process that is no longer wanted is killed, whatever it is doing: it keeps no state of its own.
When the broker dies first, the pipes close and the process exits (process_pipe.py).

A killed process may stay in a system call if a disk hangs. The broker gives it up after
END_SECONDS and goes on, or stops, without it. The process touches nothing after that call.
"""

from __future__ import annotations

import asyncio
import logging
import os
import pickle
import signal
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Sequence
from contextlib import suppress

from odradek.storage.recovering.task import RecoveryTask

from .frames import LENGTH, framed
from .messages import (
    CleanerSettings,
    CleaningFailed,
    FromCleaner,
    FromRecovery,
    Progress,
    Ready,
    RecoveryEnding,
    RecoveryFailed,
    Unusable,
)

logger = logging.getLogger("odradek.processes")

END_SECONDS = 5.0  # the time that a killed process has before the broker gives it up
CLEANER_START_SECONDS = 60.0
# The longest time that `stop_now` blocks. Most processes end within a millisecond.
STOP_SECONDS = 1.0
STOP_POLL_SECONDS = 0.001


def command_of(module: str) -> tuple[str, ...]:
    """The command line that runs a module of this package as a process."""
    # -P keeps the current directory out of sys.path.
    return (sys.executable, "-P", "-m", f"{__package__}.{module}")


CLEANER_COMMAND = command_of("cleaner_process")
RECOVERY_COMMAND = command_of("recovery_process")
WALK_COMMAND = command_of("walk_process")


async def start_process(command: Sequence[str]) -> Process:
    """Start a process with pipes to the broker. Raises OSError."""
    return await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE)


class WorkerLostError(Exception):
    """The process has ended, or sends nothing any more; the message says which."""


class WorkerProcess:
    """A process that works for the broker. `end` must be called."""

    def __init__(self, process: Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._to = process.stdin
        self._from = process.stdout
        self._loop = asyncio.get_running_loop()
        self._given_up_at: float | None = None  # in the loop's time; set by `kill`
        self._is_given_up = False

    @property
    def is_alive(self) -> bool:
        return self._process.returncode is None

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, message: object, content: bytes = b"") -> None:
        """Queue a message, followed by raw bytes. Does nothing if the process has ended."""
        if self.is_alive:
            self._to.write(framed(message))
            if content:
                self._to.write(content)

    async def read_pickle(self) -> bytes:
        """Read the pickle of the next message.

        Raises IncompleteReadError and ConnectionError: the process has ended.
        """
        (length,) = LENGTH.unpack(await self._from.readexactly(LENGTH.size))
        return await self._from.readexactly(length)

    async def describe_end(self) -> str:
        """Wait for the end of a process whose pipe is closed, and say in words how it ended."""
        self.kill()  # it may only have closed its end of the pipe
        code = await self._exit_code()
        if code is None:
            return "was killed and does not end"
        return f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"

    def kill(self) -> None:
        """Kill the process; `end` waits until it is gone. Any thread."""
        if not self.is_alive:
            return
        with suppress(ProcessLookupError):
            os.kill(self._process.pid, signal.SIGKILL)
        if self._given_up_at is None:
            self._given_up_at = self._loop.time() + END_SECONDS
            # Messages already in the pipe are still read until then. The pipe of a process that
            # hangs stays open, so a reader must be released.
            self._loop.call_soon_threadsafe(
                self._loop.call_at, self._given_up_at, self._from.feed_eof
            )

    async def _exit_code(self) -> int | None:
        """Wait for the end of a killed process. None: it was given up."""
        try:
            async with asyncio.timeout_at(self._given_up_at):
                return await self._process.wait()
        except TimeoutError:
            if not self._is_given_up:
                self._is_given_up = True
                text = "process %d was killed and does not end: it may wait for a disk that hangs"
                logger.error(text, self.pid)
            return None

    async def end(self) -> None:
        """Kill the process. Returns when it has ended or was given up. May be called twice."""
        self.kill()
        self._to.close()
        if await self._exit_code() is not None:
            with suppress(ConnectionError):
                await self._to.wait_closed()


class CleanerWorker(WorkerProcess):
    """A cleaning process. Made by `start`; `end` must be called."""

    def __init__(self, process: Process, settings: CleanerSettings) -> None:
        super().__init__(process)
        self.settings = settings

    @classmethod
    async def start(
        cls, settings: CleanerSettings, command: Sequence[str] = CLEANER_COMMAND
    ) -> CleanerWorker:
        """Start a process and wait until it is ready for a task. Raises WorkerLostError."""
        try:
            process = await start_process(command)
        except OSError as error:
            raise WorkerLostError(f"{command[0]} cannot be started: {error}") from error
        worker = cls(process, settings)
        try:
            worker.send(settings)
            reply = await worker.receive(CLEANER_START_SECONDS)
            if isinstance(reply, Ready):
                return worker
            reason = reply.reason if isinstance(reply, Unusable) else repr(reply)
            raise WorkerLostError(f"the cleaning process did not start: {reason}")
        except BaseException:
            await worker.end()
            raise

    async def receive(self, timeout_seconds: float) -> FromCleaner:
        """Wait for the next message. Raises WorkerLostError, also on a timeout."""
        try:
            async with asyncio.timeout(timeout_seconds):
                content = await self.read_pickle()
        except TimeoutError:
            reason = f"the cleaning process has been silent for {timeout_seconds:g} seconds"
            raise WorkerLostError(reason) from None
        except (asyncio.IncompleteReadError, ConnectionError):
            raise WorkerLostError(f"the cleaning process {await self.describe_end()}") from None
        try:
            message: FromCleaner = pickle.loads(content)
        except Exception as error:  # noqa: BLE001  unpickling may raise anything
            return CleaningFailed(f"the cleaning process sent an invalid message: {error!r}")
        return message


class RecoveryWorker(WorkerProcess):
    """A recovery process. Made by `start`; `end` must be called."""

    @classmethod
    async def start(cls) -> RecoveryWorker:
        """Start a process. Raises OSError."""
        return cls(await start_process(RECOVERY_COMMAND))

    async def recover(self, task: RecoveryTask, report: Callable[[str], None]) -> RecoveryEnding:
        """Recover one log. Returns RecoveryFailed if the process has ended."""
        self.send(task)
        try:
            while isinstance(message := await self._receive(), Progress):
                report(message.line)
        except (asyncio.IncompleteReadError, ConnectionError):
            return RecoveryFailed(f"the recovery process {await self.describe_end()}")
        return message

    async def _receive(self) -> FromRecovery:
        message: FromRecovery = pickle.loads(await self.read_pickle())
        return message

    def stop_now(self) -> None:
        """Kill the process and wait until it touches no file any more. Any thread.

        Returns after STOP_SECONDS at the latest. A process that has not ended by then can only
        complete the system call that it is in.
        """
        self.kill()
        deadline = time.monotonic() + STOP_SECONDS
        while self._is_running():
            if time.monotonic() > deadline:
                logger.error("the recovery process %d was killed and does not end", self.pid)
                return
            time.sleep(STOP_POLL_SECONDS)

    def _is_running(self) -> bool:
        try:
            state = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
        except ChildProcessError:
            return False
        return state is None
