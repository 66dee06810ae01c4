"""The process that recovers large logs; the broker starts it with `python -m`.

It walks batches in Python, which would cost the broker's event loop its latency (see LogRecovery,
which starts and ends it). It knows no more than its tasks tell and may be killed at any time: what
it has not finished is recovered again.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread

from odradek.protocol.batch_header import CorruptRecordError
from odradek.storage.files import Files
from odradek.storage.recovering.task import RecoveryTask, recover

from .process_pipe import listen, pipe_to_broker
from .recovery_messages import Ending, FromProcess, Progress, Recovered, RecoveryFailed


class _ToBroker(logging.Handler):
    """What is worth a line in the broker's log is sent to it."""

    def __init__(self, send: Callable[[FromProcess], None]) -> None:
        super().__init__(logging.WARNING)
        self._send = send

    def emit(self, record: logging.LogRecord) -> None:
        self._send(Progress(record.getMessage()))


def main() -> None:
    """Recover what the broker at the other end of stdin says, until it goes."""
    send = pipe_to_broker()
    root = logging.getLogger("odradek")
    root.propagate = False
    root.addHandler(_ToBroker(send))
    tasks: SimpleQueue[RecoveryTask] = SimpleQueue()
    Thread(target=listen, args=(sys.stdin.buffer, tasks.put), daemon=True).start()
    while True:
        send(work_on(tasks.get(), send))


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


if __name__ == "__main__":
    main()
