"""The process whose forks are the brokers of tests, seen from its own side: see forked_process.py.

It has imported what a broker needs, and runs nothing. Each fork is a broker within milliseconds.
"""

from __future__ import annotations

import errno
import os
import select
import signal
import socket
import time
from collections.abc import Callable, Mapping, Sequence

import msgspec
from msgspec import Struct

CHECK_EVERY_S = 1.0
READ_BYTES = 1 << 16
FILES = 3  # standard input, output and error of a fork


class Fork(Struct, tag=True):
    """Import modules and fork. The order carries FILES descriptors.

    The answer is the process id, or the negative number of the error (errno).

    `modules` are those that this broker needs and others do not: the next one that needs them finds
    them imported.
    """

    directory: bytes  # bytes, because these need not be UTF-8
    environment: Mapping[bytes, bytes]
    modules: Sequence[str] = ()


class Poll(Struct, tag=True):
    """The answer is 1 if a fork runs, else 0."""

    pid: int


class Kill(Struct, tag=True):
    """Kill a fork. The answer, 0, comes when it has ended."""

    pid: int


Order = Fork | Poll | Kill


class Template:
    """Obeys orders until the connection ends or the parent has ended.

    An order is a line of JSON, a number and one of the above. The answer has the same number.
    """

    def __init__(
        self,
        connection: socket.socket,
        import_modules: Callable[[Sequence[str]], None],
        serve: Callable[[], None],
    ) -> None:
        self._connection = connection
        self._import = import_modules
        self._serve = serve
        self._decoder = msgspec.json.Decoder(tuple[int, Order])
        self._running: set[int] = set()
        self._parent = os.getppid()

    def run(self) -> None:
        """Obey. Returns in the template at the end, and in a fork when `serve` has returned."""
        while (found := self._next()) is not None:
            line, files = found
            number, order = self._decoder.decode(line)
            answer = 0
            match order:
                case Fork():
                    self._import(order.modules)
                    try:
                        answer = os.fork()
                    except OSError as error:  # too many processes: the others run on
                        answer = -(error.errno or errno.EAGAIN)
                    if not answer:
                        self._connection.close()
                        _become(order, files)
                        self._serve()
                        return
                    for file in files:
                        os.close(file)
                    if answer > 0:
                        self._running.add(answer)
                case Poll(pid):
                    answer = int(self._is_running(pid))
                case Kill(pid):
                    self._kill(pid)
            self._connection.sendall(msgspec.json.encode((number, answer)) + b"\n")

    def _next(self) -> tuple[bytes, list[int]] | None:
        """The next line and its descriptors; None at the end."""
        line, files = b"", list[int]()
        while not line.endswith(b"\n"):
            while not select.select([self._connection], [], [], CHECK_EVERY_S)[0]:
                if os.getppid() != self._parent:  # a fork of it may hold the connection open
                    return None
            data, received, _, _ = socket.recv_fds(self._connection, READ_BYTES, FILES)
            if not data:
                return None
            line += data
            files += received
        return line, files

    def _kill(self, pid: int) -> None:
        if self._is_running(pid):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            self._running.remove(pid)

    def _is_running(self, pid: int) -> bool:
        """Whether a fork runs. Its id is used for no other process until this has seen its end."""
        if pid in self._running and os.waitpid(pid, os.WNOHANG)[0]:
            self._running.remove(pid)
        return pid in self._running


def _become(order: Fork, files: list[int]) -> None:
    """Be the process that the parent would have started: with its directory and environment."""
    os.setsid()  # control-C is for the tests, which then end the broker
    for number, file in enumerate(files):
        os.dup2(file, number)
    os.closerange(FILES, max(files) + 1)
    os.chdir(order.directory)
    os.environ.clear()
    os.environb.update(order.environment)
    time.tzset()
