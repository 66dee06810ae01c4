"""The last warnings and errors of the broker's log."""

from __future__ import annotations

from odradek.broker.console.calls import Call
from odradek.broker.console.endpoints import Endpoint, Nothing, View
from odradek.broker.console.recent_lines import LogEntry

EVERY_S = 2.0


class LogEntries(View):
    """The newest first. Nothing is here from before the start."""

    entries: list[LogEntry]


def log_entries(call: Call, _: Nothing) -> LogEntries:
    """List the lines. Needs DESCRIBE on the cluster."""
    call.check_cluster()
    return LogEntries(entries=call.recent_lines.entries())


ENDPOINTS = (
    Endpoint(
        method="GET",
        template="/log",
        summary="The last warnings and errors of the broker's log.",
        handle=log_entries,
        response=LogEntries,
        every_s=EVERY_S,
    ),
)
