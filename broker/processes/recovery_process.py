"""The process that recovers large logs. LogRecovery starts it with `python -m` and ends it.

Recovery walks batches in Python, which would block the broker's event loop. The process knows only
what its tasks say. It may be killed at any time: an unfinished log is recovered again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from queue import SimpleQueue

from odradek.protocol.batch_header import CorruptRecordError
from odradek.storage.files import Files
from odradek.storage.recovering.task import RecoveryTask, recover

from .messages import FromRecovery, Progress, Recovered, RecoveryEnding, RecoveryFailed
from .process_pipe import listen, pipe_to_broker


class _BrokerLogHandler(logging.Handler):
    """Sends warnings and errors to the broker, for its log."""

    def __init__(self, send: Callable[[FromRecovery], None]) -> None:
        super().__init__(logging.WARNING)
        self._send = send

    def emit(self, record: logging.LogRecord) -> None:
        self._send(Progress(record.getMessage()))


def main() -> None:
    """Recover the logs that the broker sends over stdin, until the broker is gone."""
    send = pipe_to_broker()
    root = logging.getLogger("odradek")
    root.propagate = False
    root.addHandler(_BrokerLogHandler(send))
    tasks: SimpleQueue[RecoveryTask] = SimpleQueue()
    listen(tasks.put)
    while True:
        send(work_on(tasks.get(), send))


def work_on(task: RecoveryTask, send: Callable[[FromRecovery], None]) -> RecoveryEnding:
    """Recover one log; returns how that ended."""
    try:
        return Recovered(recover(task, Files(), lambda line: send(Progress(line))))
    except OSError as error:
        return RecoveryFailed(str(error), error)
    except CorruptRecordError as error:
        return RecoveryFailed(str(error))
    except Exception as error:  # noqa: BLE001  the root of the process: the broker reports it
        return RecoveryFailed(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
