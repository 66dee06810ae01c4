"""The process that cleans logs. LogCleaner starts it with `python -m` and ends it.

Cleaning walks records in Python, which would block the broker's event loop. The process knows only
what its tasks say, keeps no state, and may be killed at any time. It runs at a low priority.
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

from odradek.broker.disk.throttle import Throttle
from odradek.storage.batch_scan import CorruptBatchError
from odradek.storage.cleaning.cleaner import Cleaner, SegmentOverflowError
from odradek.storage.cleaning.task import CleaningTask
from odradek.storage.files import Files

from .messages import (
    CleanerSettings,
    CleaningEnding,
    CleaningFailed,
    FromCleaner,
    Moved,
    Rate,
    Ready,
    SplitUp,
    ToCleaner,
    Unusable,
)
from .process_pipe import listen, pipe_to_broker, read_message

REPORT_SECONDS = 1.0
NO_LIMIT = -1.0


class IoReporter:
    """Counts bytes read and written: sleeps to keep the rate, and reports to the broker."""

    def __init__(
        self,
        send: Callable[[FromCleaner], None],
        *,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.throttle = Throttle(NO_LIMIT, now=now, sleep=self._sleep_and_report)
        self._send = send
        self._now = now
        self._sleep = sleep
        self._unreported_bytes = 0
        self._reported_at = now()

    def moved(self, size_bytes: int) -> None:
        """Count bytes that were read or written. May sleep."""
        self._unreported_bytes += size_bytes
        self._report_if_due()
        self.throttle.moved(size_bytes)

    def _sleep_and_report(self, seconds: float) -> None:
        self._sleep(seconds)
        self._report_if_due()

    def _report_if_due(self) -> None:
        if self._now() - self._reported_at >= REPORT_SECONDS:
            self._send(Moved(self._unreported_bytes))
            self._unreported_bytes, self._reported_at = 0, self._now()


def main() -> None:
    """Clean the logs that the broker sends over stdin, until the broker is gone."""
    send = pipe_to_broker()
    lower_priority()
    logging.disable()  # the messages carry what the broker logs
    try:
        settings = read_message(sys.stdin.buffer)
    except EOFError:
        return
    assert isinstance(settings, CleanerSettings)
    reporter = IoReporter(send)
    try:
        cleaner = make_cleaner(settings, reporter)
    except (ValueError, MemoryError) as error:
        send(Unusable(str(error) or "there is not enough memory for the keys"))
        return
    tasks: SimpleQueue[CleaningTask] = SimpleQueue()
    on_message = message_handler(tasks, reporter.throttle)
    listen(on_message)
    send(Ready())
    try:
        while True:
            send(work_on(tasks.get(), cleaner, send))
    except BaseException:  # noqa: BLE001  a plain exit would wait for the thread that reads stdin
        traceback.print_exc()
        os._exit(1)


def lower_priority() -> None:
    """Yield the processors to the other processes of the machine."""
    with suppress(OSError):
        os.nice(10)
    if sys.platform == "linux":
        with suppress(OSError):  # a batch process does not preempt others when it wakes
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def message_handler(
    tasks: SimpleQueue[CleaningTask], throttle: Throttle
) -> Callable[[ToCleaner], None]:
    """Return a function that applies a Rate at once and queues a CleaningTask."""

    def on_message(message: ToCleaner) -> None:
        if isinstance(message, Rate):
            throttle.bytes_per_second = message.bytes_per_second
        elif isinstance(message, CleaningTask):
            tasks.put(message)

    return on_message


def make_cleaner(settings: CleanerSettings, reporter: IoReporter) -> Cleaner:
    """Create the cleaner. Raises ValueError if the buffer is too small."""
    return Cleaner(
        Files(),
        dedupe_buffer_bytes=settings.dedupe_buffer_bytes,
        load_factor=settings.load_factor,
        io_buffer_bytes=settings.io_buffer_bytes,
        on_io=reporter.moved,
    )


def work_on(
    task: CleaningTask, cleaner: Cleaner, send: Callable[[FromCleaner], None]
) -> CleaningEnding:
    """Run one round. Sends each group when its files are finished; returns how it ended."""
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
    except Exception as error:  # noqa: BLE001  the root of the process: the broker reports it
        reason = f"{type(error).__name__}: {error}"
        return CleaningFailed(reason, traceback=traceback.format_exc())


if __name__ == "__main__":
    main()
