"""The broker's end of a process that works for it: start, say, hear, end.

A process that is no longer wanted is killed, at whatever it is: it holds nothing. When the broker
dies first, its pipes close, and that ends the process (process_pipe.py).

A killed process may go on in a system call, because a disk hangs. It is given up after END_SECONDS:
it will touch nothing after that call, and the broker goes on, and stops, without it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from contextlib import suppress

from .process_pipe import LENGTH, pack

logger = logging.getLogger("odradek.processes")

END_SECONDS = 5.0  # which a killed process has until it is given up


def command_of(module: str) -> tuple[str, ...]:
    """What starts a module of this room as a process."""
    # -P: what lies in the current directory is not looked at when modules are imported.
    return (sys.executable, "-P", "-m", f"{__package__}.{module}")


async def start_process(command: Sequence[str]) -> Process:
    """A process with pipes to the broker. Raises OSError."""
    return await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE)


class WorkerProcess:
    """What all kinds of workers have in common. `end` must be called."""

    def __init__(self, process: Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._to = process.stdin
        self._from = process.stdout
        self._loop = asyncio.get_running_loop()
        self._given_up_at: float | None = None  # in the loop's time, once it was killed
        self._is_given_up = False

    @property
    def is_alive(self) -> bool:
        return self._process.returncode is None

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, message: object, content: bytes = b"") -> None:
        """Say something, with bytes that follow it as they are; waits for nothing.

        To one who is gone nothing is said.
        """
        if self.is_alive:
            self._to.write(pack(message))
            if content:
                self._to.write(content)

    async def hear(self) -> bytes:
        """The pickle of what it says next. IncompleteReadError, ConnectionError: it has ended."""
        (length,) = LENGTH.unpack(await self._from.readexactly(LENGTH.size))
        return await self._from.readexactly(length)

    async def how_it_ended(self) -> str:
        """In words, once it has."""
        self.kill()  # it may only have closed its end
        code = await self._exit_code()
        if code is None:
            return "was killed and does not end"
        return f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"

    def kill(self) -> None:
        """End it at once; `end` waits for that. Any thread."""
        if not self.is_alive:
            return
        with suppress(ProcessLookupError):
            os.kill(self._process.pid, signal.SIGKILL)
        if self._given_up_at is None:
            self._given_up_at = self._loop.time() + END_SECONDS
            # Until then it may still say something; a pipe of a process that hangs stays open.
            self._loop.call_soon_threadsafe(
                self._loop.call_at, self._given_up_at, self._from.feed_eof
            )

    async def _exit_code(self) -> int | None:
        """Wait for its end, once it was killed. None: it is given up."""
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
        """It is gone, or given up, when this returns. Twice is harmless."""
        self.kill()
        self._to.close()
        if await self._exit_code() is not None:
            with suppress(ConnectionError):
                await self._to.wait_closed()
