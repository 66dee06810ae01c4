"""The process that recovers large logs: `python -m odradek.broker.recovery_process`.

It walks batches in Python, which would cost the broker's event loop its latency (see LogRecovery,
which starts and ends it). It knows no more than its tasks tell and may be killed at any time: what
it has not finished is recovered again.

A thread waits for what the broker says and ends the process at once when the broker is gone: one
that starts again on the same directory must not meet a stranger who still writes there. Signals
that a terminal or a service manager sends to all are the broker's to answer.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from typing import BinaryIO

from ..protocol.batch_header import CorruptRecordError
from ..storage.files import Files
from ..storage.found_log import RecoveryTask, recover
from .recovery_messages import (
    Ending,
    FromProcess,
    Progress,
    Recovered,
    RecoveryFailed,
    pack,
    read_task,
)


class _ToBroker(logging.Handler):
    """What is worth a line in the broker's log is sent to it."""

    def __init__(self, send: Callable[[FromProcess], None]) -> None:
        super().__init__(logging.WARNING)
        self._send = send

    def emit(self, record: logging.LogRecord) -> None:
        self._send(Progress(record.getMessage()))


def main() -> None:
    """Recover what the broker at the other end of stdin says, until it goes."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    to_broker = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # what is printed by mistake is no message

    def send(message: FromProcess) -> None:
        try:
            _write_all(to_broker, pack(message))
        except BrokenPipeError:
            os._exit(0)

    root = logging.getLogger("odradek")
    root.propagate = False
    root.addHandler(_ToBroker(send))
    tasks: SimpleQueue[RecoveryTask] = SimpleQueue()
    Thread(target=listen, args=(sys.stdin.buffer, tasks), daemon=True).start()
    while True:
        send(work_on(tasks.get(), send))


def listen(stream: BinaryIO, tasks: SimpleQueue[RecoveryTask]) -> None:
    """Take in what the broker says; when it is gone, so are we."""
    try:
        while True:
            tasks.put(read_task(stream))
    finally:
        os._exit(0)


def work_on(task: RecoveryTask, send: Callable[[FromProcess], None]) -> Ending:
    """Recover one log; how it ended."""
    try:
        return Recovered(recover(task, Files(), lambda line: send(Progress(line))))
    except OSError as error:
        return RecoveryFailed(str(error), error)
    except CorruptRecordError as error:
        return RecoveryFailed(str(error))
    except Exception as error:  # noqa: BLE001  the root of the process: the broker names it
        return RecoveryFailed(f"{type(error).__name__}: {error}")


def _write_all(stream: BinaryIO, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[stream.write(view) :]


if __name__ == "__main__":
    main()
