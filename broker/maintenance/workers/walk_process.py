"""The process that walks large batches for a broker; the broker starts it with `python -m`.

It walks records in Python, which would hold the broker's event loop (see RecordWalks, which starts
and ends it). It keeps nothing from one batch to the next, and may be killed at any time. It gives
way to the broker.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread

from odradek.protocol.batch_header import TooManyRecordsError
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.storage.record_walk import RecordsRefusedError

from .process_pipe import listen, pipe_to_broker
from .walk_messages import Ending, Refused, TooLong, Walked, WalkFailed, WalkTask


def main() -> None:
    """Walk what the broker at the other end of stdin sends, until it goes."""
    send = pipe_to_broker()
    with suppress(OSError):
        os.nice(10)
    tasks: SimpleQueue[tuple[WalkTask, bytes]] = SimpleQueue()

    def take(task: WalkTask) -> None:
        tasks.put((task, sys.stdin.buffer.read(task.batch_bytes)))

    Thread(target=listen, args=(sys.stdin.buffer, take), daemon=True).start()
    while True:
        send(work_on(*tasks.get()))


def work_on(task: WalkTask, batch: bytes) -> Ending:
    """One walk; how it ended."""
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
    except Exception as error:  # noqa: BLE001  the root of the process: the broker names it
        return WalkFailed(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
