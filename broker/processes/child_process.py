"""The broker's end of its other processes: start, send, receive, end.

All processes are started here. Each does one task at a time (process_pipe.py). When the broker dies
first, the channel closes and the process exits.

A process that is no longer wanted is killed, whatever it is doing: it keeps no state of its own.

A killed process may stay in a system call if a disk hangs. The broker gives it up after
END_SECONDS and goes on, or stops, without it. The process touches nothing after that call.
"""

from __future__ import annotations

import asyncio
import logging
import pickle
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

from odradek.storage.recovering.task import RecoveryTask

from .channel import Channel, ChannelClosedError
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
from .signals import blocked_signals_of_all

logger = logging.getLogger("odradek.processes")

END_SECONDS = 5.0  # the time that a killed process has before the broker gives it up
CLEANER_START_SECONDS = 60.0
# The longest time that `stop_now` blocks. Most processes end within a millisecond.
STOP_SECONDS = 1.0
STOP_POLL_SECONDS = 0.001
# How often the end of a process is looked for, whose channel is closed.
POLL_SECONDS = 0.005


def command_of(module: str) -> tuple[str, ...]:
    """The command line that runs a module as a process."""
    # -P keeps the current directory out of sys.path.
    return (sys.executable, "-P", "-m", module)


CLEANER_COMMAND = command_of("odradek.broker.processes.cleaner_process")
RECOVERY_COMMAND = command_of("odradek.broker.processes.recovery_process")
WALK_COMMAND = command_of("odradek.broker.processes.walk_process")


async def start_process(command: Sequence[str]) -> tuple[subprocess.Popen[bytes], Channel]:
    """Start a process, whose stdin and stdout are its end of the channel. Raises OSError."""
    ours, theirs = socket.socketpair()
    with theirs:
        try:
            process = _start(command, theirs)
        except OSError:
            ours.close()
            raise
    try:
        return process, await Channel.open(ours)
    except BaseException:  # cancelled, too: nobody would end the process
        ours.close()
        process.kill()
        process.wait()
        raise


def _start(command: Sequence[str], theirs: socket.socket) -> subprocess.Popen[bytes]:
    # Blocked until the process ignores them: a terminal sends control-C to all processes.
    with blocked_signals_of_all():
        return subprocess.Popen(command, stdin=theirs.fileno(), stdout=theirs.fileno())


class WorkerLostError(Exception):
    """The process has ended, or sends nothing any more; the message says which."""


class ChildProcess:
    """A process that works for the broker, and the channel to it. `end` must be called."""

    def __init__(self, process: subprocess.Popen[bytes], channel: Channel) -> None:
        self.channel = channel
        self._process = process
        self._loop = asyncio.get_running_loop()
        self._given_up_at: float | None = None  # in the loop's time; set by `kill`
        self._is_given_up = False

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, message: object, content: bytes = b"") -> None:
        """Queue a message, followed by raw bytes. Does nothing if the process has ended."""
        self.channel.send(message, content)

    async def wait(self) -> int:
        """Wait for the end of the process. Returns its exit code."""
        while (code := self._process.poll()) is None:  # noqa: ASYNC110 # there is no event
            await asyncio.sleep(POLL_SECONDS)
        return code

    async def describe_end(self) -> str:
        """Wait for the end of a process whose channel is closed, and say in words how it ended."""
        self.kill()  # it may only have closed its end of the channel
        code = await self._exit_code()
        if code is None:
            return "was killed and does not end"
        return f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"

    def kill(self) -> None:
        """Kill the process; `end` waits until it is gone. Any thread."""
        self._process.kill()
        if self._given_up_at is None:
            self._given_up_at = self._loop.time() + END_SECONDS
            # Messages that it has sent are still read until then. The channel of a process that
            # hangs stays open, so a reader must be released.
            self._loop.call_soon_threadsafe(
                self._loop.call_at, self._given_up_at, self.channel.release_reader
            )

    async def _exit_code(self) -> int | None:
        """Wait for the end of a killed process. None: it was given up."""
        try:
            async with asyncio.timeout_at(self._given_up_at):
                return await self.wait()
        except TimeoutError:
            if not self._is_given_up:
                self._is_given_up = True
                text = "process %d was killed and does not end: it may wait for a disk that hangs"
                logger.error(text, self.pid)
            return None

    async def end(self) -> None:
        """Kill the process. Returns when it has ended or was given up. May be called twice."""
        self.kill()
        self.channel.abort()
        await self._exit_code()


class CleanerWorker(ChildProcess):
    """A cleaning process. Made by `start`; `end` must be called."""

    def __init__(
        self, process: subprocess.Popen[bytes], channel: Channel, settings: CleanerSettings
    ) -> None:
        super().__init__(process, channel)
        self.settings = settings

    @classmethod
    async def start(
        cls, settings: CleanerSettings, command: Sequence[str] = CLEANER_COMMAND
    ) -> CleanerWorker:
        """Start a process and wait until it is ready for a task. Raises WorkerLostError."""
        try:
            worker = cls(*await start_process(command), settings)
        except OSError as error:
            raise WorkerLostError(f"{command[0]} cannot be started: {error}") from error
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
                content = await self.channel.read_pickle()
        except TimeoutError:
            reason = f"the cleaning process has been silent for {timeout_seconds:g} seconds"
            raise WorkerLostError(reason) from None
        except ChannelClosedError:
            raise WorkerLostError(f"the cleaning process {await self.describe_end()}") from None
        try:
            message: FromCleaner = pickle.loads(content)
        except Exception as error:  # noqa: BLE001  unpickling may raise anything
            return CleaningFailed(f"the cleaning process sent an invalid message: {error!r}")
        return message


class RecoveryWorker(ChildProcess):
    """A recovery process. Made by `start`; `end` must be called."""

    @classmethod
    async def start(cls) -> RecoveryWorker:
        """Start a process. Raises OSError."""
        return cls(*await start_process(RECOVERY_COMMAND))

    async def recover(self, task: RecoveryTask, report: Callable[[str], None]) -> RecoveryEnding:
        """Recover one log. Returns RecoveryFailed if the process has ended."""
        self.send(task)
        try:
            while isinstance(message := await self._receive(), Progress):
                report(message.line)
        except ChannelClosedError:
            return RecoveryFailed(f"the recovery process {await self.describe_end()}")
        return message

    async def _receive(self) -> FromRecovery:
        message: FromRecovery = await self.channel.receive()
        return message

    def stop_now(self) -> None:
        """Kill the process and wait until it touches no file any more. Any thread.

        Returns after STOP_SECONDS at the latest. A process that has not ended by then can only
        complete the system call that it is in.
        """
        self.kill()
        deadline = time.monotonic() + STOP_SECONDS
        while self.is_alive:
            if time.monotonic() > deadline:
                logger.error("the recovery process %d was killed and does not end", self.pid)
                return
            time.sleep(STOP_POLL_SECONDS)
