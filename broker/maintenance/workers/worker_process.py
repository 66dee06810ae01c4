"""The broker's end of a process that works for it: start, say, hear, end.

A process that is no longer wanted is killed, at whatever it is: it holds nothing. When the broker
dies first, its pipes close, and that ends the process (process_pipe.py).
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from contextlib import suppress

from .process_pipe import LENGTH, pack


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
        code = await self._process.wait()
        return f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"

    def kill(self) -> None:
        """End it at once; `end` waits for that. Any thread."""
        if self.is_alive:
            with suppress(ProcessLookupError):
                os.kill(self._process.pid, signal.SIGKILL)

    async def end(self) -> None:
        """It is gone when this returns. Twice is harmless."""
        self.kill()
        self._to.close()
        await self._process.wait()
        with suppress(ConnectionError):
            await self._to.wait_closed()
