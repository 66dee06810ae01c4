"""The broker's log lines, as text and as JSON."""

import json
import logging
import sys
from datetime import datetime

import pytest

from odradek.broker.common.log_lines import (
    LINES_OF_ALL_CLIENTS,
    LINES_OF_CLIENT,
    LINES_OF_REASON,
    PERIOD_S,
    ClientLineLimit,
    JsonFormatter,
    TextFormatter,
    configure_logging,
)
from odradek.broker.security.session import Session
from odradek.config.broker_config import BrokerConfig

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


class Lines:
    """What the limit lets pass, at the times that the test says."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.limit = ClientLineLimit(lambda: self.now_s)

    def write(self, count: int, *args: object, logger: str = "odradek.connection") -> list[str]:
        """Write a line that often; returns those that pass."""
        passed = []
        for _ in range(count):
            text = "closed %s: %s"
            line = logging.LogRecord(logger, logging.WARNING, "x.py", 1, text, args, None)
            if self.limit.filter(line):
                passed.append(line.getMessage())
        return passed


def session(host: str, port: int) -> Session:
    (listener,) = BrokerConfig.from_texts({"listeners": "PLAINTEXT://:0"}).open_listeners
    return Session(listener, (host, port))


def test_a_client_that_connects_again_and_again_has_a_few_lines_in_each_period() -> None:
    lines = Lines()
    passed = [
        line
        for port in range(1000)
        for line in lines.write(1, session("10.0.0.1", port), "no request")
    ]
    assert passed == [f"closed 10.0.0.1:{port}: no request" for port in range(LINES_OF_REASON)]
    assert lines.write(1, session("10.0.0.1", 7), "another") == ["closed 10.0.0.1:7: another"]
    assert lines.write(1, session("10.0.0.2", 7), "x") == ["closed 10.0.0.2:7: x"]
    lines.now_s += PERIOD_S
    assert lines.write(2, session("10.0.0.1", 8), "x%s") == [
        f"closed 10.0.0.1:8: x%s ({1000 - LINES_OF_REASON} lines about clients were left out before"
        " this one)",
        "closed 10.0.0.1:8: x%s",
    ]


def test_a_client_with_many_reasons_has_a_limit() -> None:
    lines = Lines()
    passed = [lines.write(1, "10.0.0.1", f"byte {reason}") for reason in range(1000)]
    assert sum(map(len, passed)) == LINES_OF_CLIENT


def test_many_clients_share_a_limit() -> None:
    lines = Lines()
    passed = [lines.write(1, f"10.0.{host}.1", "x") for host in range(2 * LINES_OF_ALL_CLIENTS)]
    assert sum(map(len, passed)) == LINES_OF_ALL_CLIENTS


def test_lines_about_anything_else_have_no_limit() -> None:
    lines = Lines()
    assert len(lines.write(1000, "t-0", "x", logger="odradek.topics")) == 1000


def test_the_limit_is_in_force_when_the_log_is_written(
    capfd: pytest.CaptureFixture[str],
) -> None:
    root = logging.getLogger("odradek")
    before = root.handlers, root.level, root.propagate
    try:
        configure_logging("text")
        for _ in range(1000):
            logging.getLogger("odradek.connection").warning("closed %s: %s", "10.0.0.1", "x")
    finally:
        root.handlers, root.level, root.propagate = before
    assert capfd.readouterr().err.count("closed 10.0.0.1: x") == LINES_OF_REASON
