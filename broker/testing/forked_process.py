"""The processes of brokers for tests.

The first one starts a template: a process that imports what a broker needs, which takes a quarter
of a second. Each broker is a fork of it, which takes milliseconds. The template ends with this
process.
"""

from __future__ import annotations

import atexit
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

import msgspec

from .template import Fork, Kill, Order, Poll

# With -m, Python would import runpy and what that needs.
TEMPLATE = "from odradek.broker.testing.process import main; main()"
POLL_SECONDS = 0.002
STOP_SECONDS = 10.0

_lock = threading.Lock()
_template: _TemplateProcess | None = None


class ForkedProcess:
    """A process with pipes to its standard input and output. `pid`: its process id."""

    def __init__(self, log: IO[bytes], modules: Sequence[str] = ()) -> None:
        """Start it. Its standard error is `log`. Raises OSError.

        `modules` are imported before, and are there for all later ones.
        """
        inputs, outputs = os.pipe(), os.pipe()
        self.stdin, self.stdout = os.fdopen(inputs[1], "wb"), os.fdopen(outputs[0], "rb")
        try:
            files = [inputs[0], outputs[1], log.fileno()]
            order = Fork(os.fsencode(Path.cwd()), dict(os.environb), modules)
            self._template = _template_of_this_process(log)
            self.pid = self._template.obey(order, files)
            if self.pid < 0:
                raise OSError(-self.pid, os.strerror(-self.pid))
        except BaseException:
            self.close()
            raise
        finally:
            os.close(inputs[0])
            os.close(outputs[1])

    @property
    def is_running(self) -> bool:
        """Whether it runs."""
        try:
            return bool(self._template.obey(Poll(self.pid)))
        except OSError:
            return False  # without its template it has ended, or ends within a second

    def wait(self, seconds: float) -> None:
        """Wait until it ends, or the time is over."""
        deadline = time.monotonic() + seconds
        while self.is_running and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)

    def kill(self) -> None:
        """Kill it, and wait for its end."""
        with suppress(OSError):  # without a template, it has ended or ends within a second
            self._template.obey(Kill(self.pid))

    def close(self) -> None:
        """Close the pipes."""
        for pipe in (self.stdin, self.stdout):
            with suppress(OSError):  # what was not written to a process that has ended
                pipe.close()


class _TemplateProcess:
    """The template of this process. `owner` is this process's id."""

    def __init__(self, log: IO[bytes]) -> None:
        self.owner = os.getpid()
        self._connection, theirs = socket.socketpair()
        self._answers = self._connection.makefile("rb")
        self._count = 0
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", TEMPLATE],  # -P: a queue.py here is not Python's
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=log,
                start_new_session=True,
            )
        atexit.register(self._close)

    @property
    def is_running(self) -> bool:
        """Whether it runs."""
        return self._process.poll() is None

    def obey(self, order: Order, files: Sequence[int] = ()) -> int:
        """Send an order with files, and return the answer.

        Raises OSError if the template ended, or if it is that of a process of which this is a fork.
        """
        if self.owner != os.getpid():
            raise ChildProcessError("another process has started this one's template")
        with _lock:
            self._count += 1  # an answer that an interrupted call did not read is skipped
            number = self._count
            data = msgspec.json.encode((number, order)) + b"\n"
            sent = socket.send_fds(self._connection, [data], files)
            self._connection.sendall(data[sent:])
            while line := self._answers.readline():
                answered, value = msgspec.json.decode(line, type=tuple[int, int])
                if answered == number:
                    return value
        raise ConnectionResetError("the process that starts brokers has ended")

    def _close(self) -> None:
        if self.owner != os.getpid():
            return
        # Closing alone would not tell the template: a fork of this process may have a copy.
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._answers.close()
        self._connection.close()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _template_of_this_process(log: IO[bytes]) -> _TemplateProcess:
    global _template  # one for the process, whoever starts brokers in it
    with _lock:
        if _template is None or not _template.is_running:
            _template = _TemplateProcess(log)
        return _template


def _begin_in_fork() -> None:
    """A fork has a template of its own. Another thread may have held the lock at the fork."""
    global _lock, _template
    _lock, _template = threading.Lock(), None


os.register_at_fork(after_in_child=_begin_in_fork)
