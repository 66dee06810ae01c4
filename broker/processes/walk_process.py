"""The process that walks large batches. RecordWalks starts it with `python -m` and ends it.

A walk in Python would block the broker's event loop. The process keeps no state between batches
and may be killed at any time. It runs at a lower priority than the broker.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from queue import SimpleQueue

from odradek.protocol.batch_header import TooManyRecordsError
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.storage.record_walk import RecordsRefusedError

from .messages import Refused, TooLong, Walked, WalkEnding, WalkFailed, WalkTask
from .process_pipe import listen, pipe_to_broker


def main() -> None:
    """Walk the batches that the broker sends over stdin, until the broker is gone."""
    send = pipe_to_broker()
    with suppress(OSError):
        os.nice(10)
    tasks: SimpleQueue[tuple[WalkTask, bytes]] = SimpleQueue()

    def on_message(task: WalkTask) -> None:
        tasks.put((task, sys.stdin.buffer.read(task.batch_bytes)))

    listen(on_message)
    while True:
        send(work_on(*tasks.get()))


def work_on(task: WalkTask, batch: bytes) -> WalkEnding:
    """Run one walk; returns how it ended."""
    try:
        return Walked(task.walk(batch, limits=task.limits))
    except TooManyRecordsError as error:
        return TooLong(str(error))
    except RecordsRefusedError as error:
        return Refused(error.code, error.message, error.record_errors)
    except ApiError as error:
        return Refused(error.code, error.message)
    except MemoryError:
        return Refused(ErrorCode.MESSAGE_TOO_LARGE, "there is not enough memory to unpack it")
    except Exception as error:  # noqa: BLE001  the root of the process: the broker reports it
        return WalkFailed(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
