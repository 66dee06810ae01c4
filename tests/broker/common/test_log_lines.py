"""The broker's log lines, as text and as JSON."""

import json
import logging
import sys
from datetime import datetime

from odradek.broker.common.log_lines import JsonFormatter, TextFormatter

MORNING_S = 1_700_000_000


def record(created: float, *, failed: bool = False) -> logging.LogRecord:
    """A line of that time; `failed`: with the exception under way."""
    exc_info = sys.exc_info() if failed else None
    made = logging.LogRecord("odradek.x", logging.INFO, "x.py", 1, "%d is done", (7,), exc_info)
    made.created = created
    made.msecs = round(created % 1 * 1000)
    return made


def local(second: int) -> str:
    return f"{datetime.fromtimestamp(second):%Y-%m-%d %H:%M:%S}"  # noqa: DTZ006 - lines are local


def test_text_lines_tell_the_local_time_of_each() -> None:
    formatter = TextFormatter()
    moments = [
        MORNING_S + 0.25,
        MORNING_S + 0.75,
        MORNING_S + 1,
        MORNING_S + 86_400.5,
        MORNING_S,
    ]
    for moment in moments:
        line = formatter.format(record(moment))
        when = f"{local(int(moment))},{round(moment % 1 * 1000):03d}"
        assert line == f"[{when}] INFO 7 is done (odradek.x)"


def test_a_text_line_of_a_failure_ends_with_its_traceback() -> None:
    try:
        raise ValueError("no")
    except ValueError:
        line = TextFormatter().format(record(MORNING_S, failed=True))
    assert line.splitlines()[-1] == "ValueError: no"


def test_json_lines_are_one_object_each() -> None:
    line = JsonFormatter().format(record(MORNING_S + 0.25))
    assert json.loads(line) == {
        "time": "2023-11-14T22:13:20.250+00:00",
        "level": "INFO",
        "logger": "odradek.x",
        "message": "7 is done",
    }
