"""The broker's log lines: their formats, one line each, as text or as JSON, and their limits.

Each client that sends something that is not a request has a line in the log, and so has each TLS
handshake that fails. A port scanner must not fill the disk with them. So there is a limit for the
lines of one client, and one for those of all clients. Lines that are left out are counted.
"""

import json
import logging
import sys
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime


class JsonFormatter(logging.Formatter):
    """One JSON object per line: time, level, logger, message, and a traceback if there is one."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line)


class TextFormatter(logging.Formatter):
    """Time in brackets, level, message, logger: Kafka's layout."""

    def __init__(self) -> None:
        super().__init__()
        self._second = -1
        self._local_time = ""

    def format(self, record: logging.LogRecord) -> str:
        line = (
            f"[{self._time_of(int(record.created))},{int(record.msecs):03d}] {record.levelname} "
            f"{record.getMessage()} ({record.name})"
        )
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line

    def _time_of(self, second: int) -> str:
        """Local time, cached for a second: a thousand members that join log as many lines."""
        if second != self._second:
            when = datetime.fromtimestamp(second, UTC).astimezone()
            self._second, self._local_time = second, f"{when:%Y-%m-%d %H:%M:%S}"
        return self._local_time


# Clients can cause the lines of these loggers by connecting. A line's first argument is the client.
CLIENT_LOGGERS = frozenset({"odradek.connection", "odradek.server"})
PERIOD_S = 10.0
# The most lines in a period, of: one reason and client, one client, all clients.
LINES_OF_REASON = 5
LINES_OF_CLIENT = 30
LINES_OF_ALL_CLIENTS = 100


class ClientLineLimit(logging.Filter):
    """Lets a limited number of lines about clients pass in a period, and counts the others.

    The first line after the period says how many were left out. `timer_s` is monotonic.
    """

    def __init__(self, timer_s: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._timer_s = timer_s
        self._period_ends_s = 0.0
        self._lines: Counter[tuple[str, ...]] = Counter()
        self._omitted = 0
        self._omitted_before = 0  # in the periods before, and not reported yet

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the line is written. The line of a new period gets the number of omitted ones."""
        if record.name not in CLIENT_LOGGERS:
            return True
        now_s = self._timer_s()
        if now_s >= self._period_ends_s:
            self._period_ends_s = now_s + PERIOD_S
            self._lines.clear()
            self._omitted_before += self._omitted
            self._omitted = 0
        client, reason = _client_and_reason(record)
        limits = {
            (client, reason): LINES_OF_REASON,
            (client,): LINES_OF_CLIENT,
            (): LINES_OF_ALL_CLIENTS,
        }
        if any(self._lines[key] >= limit for key, limit in limits.items()):
            self._omitted += 1
            return False
        self._lines.update(limits.keys())
        if self._omitted_before:
            omitted = f"{self._omitted_before} lines about clients were left out before this one"
            record.msg = f"{record.msg} ({omitted})"
            self._omitted_before = 0
        return True


def _client_and_reason(record: logging.LogRecord) -> tuple[str, str]:
    """The client's address in a line, and the rest of the line without numbers."""
    first, *others = record.args if isinstance(record.args, tuple) and record.args else [""]
    texts = [str(each) for each in others if not isinstance(each, int)]
    return str(getattr(first, "peer_host", first)), " ".join([str(record.msg), *texts])


def configure_logging(log_format: str) -> None:
    """Send the broker's log lines to standard error, in `text` or `json`."""
    # No format shows these, so logging need not look them up for every line.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if log_format == "json" else TextFormatter())
    handler.addFilter(ClientLineLimit())
    root = logging.getLogger("odradek")
    root.handlers = [handler]
    root.setLevel(logging.INFO)
    root.propagate = False
