"""The formats of the broker's log lines: one line each, as text or as JSON."""

import json
import logging
import sys
from datetime import UTC, datetime
from functools import partial


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


def log_format_in_use() -> str:
    """The format of the log lines, `text` or `json`."""
    handlers = logging.getLogger("odradek").handlers
    is_json = any(isinstance(each.formatter, JsonFormatter) for each in handlers)
    return "json" if is_json else "text"


def _add_prefix(prefix: str, record: logging.LogRecord) -> bool:
    record.msg = f"{prefix}{record.msg}"
    return True


def configure_logging(log_format: str, prefix: str = "") -> None:
    """Send the broker's log lines to standard error, in `text` or `json`.

    Each message begins with `prefix`: one without a percent sign.
    """
    # No format shows these, so logging need not look them up for every line.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if log_format == "json" else TextFormatter())
    if prefix:
        handler.addFilter(partial(_add_prefix, prefix))
    root = logging.getLogger("odradek")
    root.handlers = [handler]
    root.setLevel(logging.INFO)
    root.propagate = False
