"""The process that cleans logs for a broker: `python -m odradek.broker.cleaner_process`.

It walks records in Python, which would cost the broker's event loop its latency (see LogCleaner,
which starts and ends it). It knows no more than its tasks tell, holds nothing worth keeping, and
may be killed at any time. It gives way to everybody else on the machine.

A thread listens to the broker and ends the process at once when the broker is gone, whatever the
other one is doing: a broker that starts again on the same directory must not meet a stranger who
still writes there. Signals that a terminal or a service manager sends to all are the broker's to
answer.
"""

from __future__ import annotations

import errno
import logging
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import BinaryIO

from ..storage.batch_scan import CorruptBatchError
from ..storage.cleaner import Cleaner, SegmentOverflowError
from ..storage.cleaning_task import CleaningTask
from ..storage.files import Files
from .cleaner_messages import (
    CleanerSettings,
    CleaningFailed,
    Ending,
    FromProcess,
    Moved,
    Rate,
    Ready,
    SplitUp,
    Unusable,
    pack,
    read_message,
)
from .throttle import Throttle

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
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    give_way()
    to_broker = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # what is printed by mistake is no message

    def send(message: FromProcess) -> None:
        try:
            _write_all(to_broker, pack(message))
        except BrokenPipeError:
            os._exit(0)

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
    Thread(target=listen, args=(sys.stdin.buffer, tasks, telling.throttle), daemon=True).start()
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


def listen(stream: BinaryIO, tasks: SimpleQueue[CleaningTask], throttle: Throttle) -> None:
    """Take in what the broker says; when it is gone, so are we."""
    try:
        while True:
            message = read_message(stream)
            if isinstance(message, Rate):
                throttle.bytes_per_second = message.bytes_per_second
            elif isinstance(message, CleaningTask):
                tasks.put(message)
    finally:
        os._exit(0)


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


def _write_all(stream: BinaryIO, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[stream.write(view) :]


if __name__ == "__main__":
    main()
