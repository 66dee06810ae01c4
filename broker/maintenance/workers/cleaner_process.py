"""The process that cleans logs for a broker; the broker starts it with `python -m`.

It walks records in Python, which would cost the broker's event loop its latency (see LogCleaner,
which starts and ends it). It knows no more than its tasks tell, holds nothing worth keeping, and
may be killed at any time. It gives way to everybody else on the machine.
"""

from __future__ import annotations

import errno
import logging
import os
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread

from odradek.broker.maintenance.throttle import Throttle
from odradek.storage.batch_scan import CorruptBatchError
from odradek.storage.cleaning.cleaner import Cleaner, SegmentOverflowError
from odradek.storage.cleaning.task import CleaningTask
from odradek.storage.files import Files

from .cleaner_messages import (
    CleanerSettings,
    CleaningFailed,
    Ending,
    FromProcess,
    Moved,
    Rate,
    Ready,
    SplitUp,
    ToProcess,
    Unusable,
)
from .process_pipe import listen, pipe_to_broker, read_message

BEAT_SECONDS = 1.0
NO_LIMIT = -1.0


class Telling:
    """Hears of every read and write: holds back who is too fast, and tells the broker of them."""

    def __init__(
        self,
        send: Callable[[FromProcess], None],
        *,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.throttle = Throttle(NO_LIMIT, now=now, sleep=self._rest)
        self._send = send
        self._now = now
        self._sleep = sleep
        self._untold_bytes = 0
        self._told = now()

    def moved(self, size_bytes: int) -> None:
        """So many bytes were read or written."""
        self._untold_bytes += size_bytes
        self._beat()
        self.throttle.moved(size_bytes)

    def _rest(self, seconds: float) -> None:
        self._sleep(seconds)
        self._beat()

    def _beat(self) -> None:
        if self._now() - self._told >= BEAT_SECONDS:
            self._send(Moved(self._untold_bytes))
            self._untold_bytes, self._told = 0, self._now()


def main() -> None:
    """Work for the broker at the other end of stdin until it goes."""
    send = pipe_to_broker()
    give_way()
    logging.disable()  # what is worth a line is in the messages
    try:
        settings = read_message(sys.stdin.buffer)
    except EOFError:
        return
    assert isinstance(settings, CleanerSettings)
    telling = Telling(send)
    try:
        cleaner = make_cleaner(settings, telling)
    except (ValueError, MemoryError) as error:
        send(Unusable(str(error) or "there is not enough memory for the keys"))
        return
    tasks: SimpleQueue[CleaningTask] = SimpleQueue()
    take = sorted_out(tasks, telling.throttle)
    Thread(target=listen, args=(sys.stdin.buffer, take), daemon=True).start()
    send(Ready())
    try:
        while True:
            send(work_on(tasks.get(), cleaner, send))
    except BaseException:  # noqa: BLE001  nothing can follow: the thread holds on to stdin
        traceback.print_exc()
        os._exit(1)


def give_way() -> None:
    """Let everybody else have the processors first."""
    with suppress(OSError):
        os.nice(10)
    if sys.platform == "linux":
        with suppress(OSError):  # not even its waking up interrupts others
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def sorted_out(tasks: SimpleQueue[CleaningTask], throttle: Throttle) -> Callable[[ToProcess], None]:
    """Where what the broker says goes."""

    def take(message: ToProcess) -> None:
        if isinstance(message, Rate):
            throttle.bytes_per_second = message.bytes_per_second
        elif isinstance(message, CleaningTask):
            tasks.put(message)

    return take


def make_cleaner(settings: CleanerSettings, telling: Telling) -> Cleaner:
    """Raises ValueError for a buffer that is too small."""
    return Cleaner(
        Files(),
        dedupe_buffer_bytes=settings.dedupe_buffer_bytes,
        load_factor=settings.load_factor,
        io_buffer_bytes=settings.io_buffer_bytes,
        on_io=telling.moved,
    )


def work_on(task: CleaningTask, cleaner: Cleaner, send: Callable[[FromProcess], None]) -> Ending:
    """One round. Groups are sent as they are finished; returns how it ended."""
    try:
        try:
            return cleaner.clean(task, send)
        except SegmentOverflowError as error:
            send(cleaner.split(task, error.base_offset))
            return SplitUp(str(error))
    except CorruptBatchError as error:
        return CleaningFailed(str(error))
    except OSError as error:
        return CleaningFailed(str(error), error=error)
    except MemoryError:
        reason = "there is not enough memory"
        return CleaningFailed(reason, error=OSError(errno.ENOMEM, reason))
    except Exception as error:  # noqa: BLE001  the root of the process: the broker names it
        reason = f"{type(error).__name__}: {error}"
        return CleaningFailed(reason, traceback=traceback.format_exc())


if __name__ == "__main__":
    main()
