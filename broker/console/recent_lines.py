"""The last warnings and errors of the broker's log, which the console shows.

They are collected only while there is a console. A client can cause log lines just by connecting.
The lines of such loggers (CLIENT_LOGGERS) have a buffer of their own, so that they cannot displace
the broker's own lines.
"""

from __future__ import annotations

import logging
import traceback
from collections import deque
from itertools import count
from operator import itemgetter

from odradek.broker.common.log_lines import CLIENT_LOGGERS

from .view import View

MAX_LINES = 150
MAX_CLIENT_LINES = 50
MAX_CHARACTERS = 4000  # of one line
_ROOT = "odradek"


class LogEntry(View):
    """A line of the log, with the traceback if it has one."""

    timestamp_ms: int
    level: str
    logger: str
    text: str


class RecentLines(logging.Handler):
    """Collects lines from `install` to `remove`. Any thread may log one."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        # Each line has a number: many may have the same timestamp, and a clock may be set back.
        self._numbers = count()
        self._lines: deque[tuple[int, LogEntry]] = deque(maxlen=MAX_LINES)
        self._client_lines: deque[tuple[int, LogEntry]] = deque(maxlen=MAX_CLIENT_LINES)

    def install(self) -> None:
        """Start collecting."""
        logging.getLogger(_ROOT).addHandler(self)

    def remove(self) -> None:
        """Stop collecting."""
        logging.getLogger(_ROOT).removeHandler(self)
        self.close()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            text = record.getMessage()
        except Exception:  # noqa: BLE001 # wrong arguments of a call: logging reports them
            self.handleError(record)
            return
        if record.exc_info and record.exc_info[1] is not None:
            text += "\n" + "".join(traceback.format_exception(record.exc_info[1]))
        if len(text) > MAX_CHARACTERS:
            text = f"{text[: MAX_CHARACTERS // 2]} … {text[-MAX_CHARACTERS // 2 :]}"
        lines = self._client_lines if record.name in CLIENT_LOGGERS else self._lines
        entry = LogEntry(
            timestamp_ms=round(record.created * 1000),
            level=record.levelname,
            logger=record.name,
            text=text,
        )
        lines.append((next(self._numbers), entry))

    def entries(self) -> list[LogEntry]:
        """The lines that were kept, the newest first."""
        # deque.copy is atomic, and iterating is not: another thread may log a line meanwhile.
        kept = [*self._lines.copy(), *self._client_lines.copy()]
        return [entry for _, entry in sorted(kept, key=itemgetter(0), reverse=True)]
